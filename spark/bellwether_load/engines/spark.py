"""Frames on Spark: each part is a task on an executor.

Raises ``Refused`` with the text that a task raised it with; Spark's other errors as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.storagelevel import StorageLevel

from bellwether_load.engines.frames import Batches, Sent, Work
from bellwether_load.planning.choices import Refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

MOST_HERE = 2_000_000
"""Partitions with a choice that are balanced in the driver: some 300 MB. A plan reads all of them hundreds of times,
and each time as tasks takes a tenth of a second more."""


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

    def select(self, *columns: str) -> SparkFrame:
        """See ``Frame``."""
        return SparkFrame(self.rows.select(*columns))

    def grouped(self, parts: int, *keys: str) -> SparkFrame:
        """See ``Frame``."""
        return SparkFrame(self.rows.repartition(parts, *keys))

    def ordered(self, parts: int, *keys: str) -> SparkFrame:
        """See ``Frame``."""
        spread = self.rows.coalesce(1) if parts == 1 else self.rows.repartitionByRange(parts, *keys)
        return SparkFrame(spread.sortWithinPartitions(*keys))

    def union(self, other: SparkFrame) -> SparkFrame:
        """See ``Frame``."""
        return SparkFrame(self.rows.union(other.rows))

    def kept(self) -> SparkFrame:
        """See ``Frame``."""
        return SparkFrame(self.rows.persist(StorageLevel.MEMORY_AND_DISK))

    def drop(self) -> None:
        """See ``Frame``."""
        self.rows.unpersist()

    def batches(self) -> Batches:
        """See ``Frame``."""
        try:
            yield from self.rows.toArrow().to_batches()
        except PySparkException as error:
            raise refused(error) from None

    def streamed(self, parts: int, key: str) -> Batches:
        """See ``Frame``. The driver's heap holds two of these parts, several times each."""
        try:
            for row in self.rows.repartition(parts, key).toLocalIterator(prefetchPartitions=True):
                yield pa.RecordBatch.from_pylist([row.asDict()])
        except (PySparkException, Py4JJavaError) as error:  # those of a last stage are not translated
            raise refused(error) from None


class SparkEngine:
    """Implements ``frames.Engine`` on a session."""

    def __init__(self, session: SparkSession, most_here: int = MOST_HERE) -> None:
        self._session = session
        self.most_here = most_here

    def each(self, count: int, read: Callable[[int], Batches], schema: str) -> SparkFrame:
        """See ``Engine``."""

        def run(batches: Batches) -> Batches:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    yield from read(number)

        return SparkFrame(self._session.range(0, count, 1, max(1, count)).mapInArrow(run, schema))

    def send(self, value: T) -> Sent[T]:
        """See ``Engine``."""
        return self._session.sparkContext.broadcast(value)

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


def refused(error: Exception) -> Exception:
    """A task's ``Refused`` from the text of Spark's error; the error itself where it is another."""
    said = re.search(r"\.Refused: (.+)", str(error))
    return Refused(said.group(1).strip()) if said else error
