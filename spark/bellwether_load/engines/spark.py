"""Frames on Spark: each part is a task on an executor. Spark's errors are raised as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.storagelevel import StorageLevel

from bellwether_load.engines.frames import Batches, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkFrame:
    """Implements ``frames.Frame``."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows

    def map(self, work: Work, schema: str) -> SparkFrame:
        """See ``Frame``."""
        return SparkFrame(self.rows.mapInArrow(work, schema))

    def numbered(self, work: Callable[[int, Batches], Batches], schema: str) -> SparkFrame:
        """See ``Frame``."""

        def run(batches: Batches) -> Batches:
            return work(TaskContext.get().partitionId(), batches)  # type: ignore[union-attr]

        return self.map(run, schema)

    def grouped(self, parts: int, *keys: str) -> SparkFrame:
        """See ``Frame``."""
        return SparkFrame(self.rows.repartition(parts, *keys))

    def ordered(self, parts: int, *keys: str) -> SparkFrame:
        """See ``Frame``."""
        spread = self.rows.coalesce(1) if parts == 1 else self.rows.repartitionByRange(parts, *keys)
        return SparkFrame(spread.sortWithinPartitions(*keys))

    def kept(self) -> SparkFrame:
        """See ``Frame``."""
        return SparkFrame(self.rows.persist(StorageLevel.MEMORY_AND_DISK))

    def drop(self) -> None:
        """See ``Frame``."""
        self.rows.unpersist()

    def batches(self) -> Batches:
        """See ``Frame``."""
        yield from self.rows.toArrow().to_batches()


class SparkEngine:
    """Implements ``frames.Engine`` on a session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def each(self, count: int, read: Callable[[int], Batches], schema: str) -> SparkFrame:
        """See ``Engine``."""

        def run(batches: Batches) -> Batches:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    yield from read(number)

        return SparkFrame(self._session.range(0, count, 1, max(1, count)).mapInArrow(run, schema))

    def messages(self) -> AccumulatedMessages:
        """See ``Engine``."""
        return AccumulatedMessages(self._session.sparkContext.accumulator(frozenset[str](), _Union()))


class AccumulatedMessages:
    """Implements ``frames.Messages``."""

    def __init__(self, accumulator: Accumulator[frozenset[str]]) -> None:
        self._accumulator = accumulator

    def add(self, message: str) -> None:
        """See ``Messages``."""
        self._accumulator.add(frozenset({message}))

    def found(self) -> frozenset[str]:
        """See ``Messages``."""
        return self._accumulator.value


class _Union(AccumulatorParam[frozenset[str]]):
    def zero(self, value: frozenset[str]) -> frozenset[str]:
        """No message."""
        return value & frozenset()

    def addInPlace(self, value1: frozenset[str], value2: frozenset[str]) -> frozenset[str]:  # noqa: N802 - Spark's name
        """Both."""
        return value1 | value2
