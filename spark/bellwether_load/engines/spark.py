"""Tasks on Spark: each is a partition of a DataFrame, on an executor. No SparkContext, so Spark Connect will do."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from bellwether.ports.errors import Terminal, Transient
from bellwether_load.engines.engine import Result, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine:
    """Implements ``Engine`` on a session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """See ``Engine``. Spark repeats a task that ended with an unexpected error."""
        if not tasks:
            return []

        def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    try:
                        result: object = work(tasks[number])
                    except (Terminal, Transient) as error:  # Spark would wrap it in its own, with a traceback
                        result = error
                    columns = [pa.array([number]), pa.array([pickle.dumps(result)])]
                    yield pa.RecordBatch.from_arrays(columns, ["number", "result"])

        rows = self._session.range(0, len(tasks), 1, len(tasks)).mapInArrow(each, "number long, result binary")
        found = {row.number: pickle.loads(row.result) for row in rows.collect()}  # noqa: S301 - written by ``each``
        for result in found.values():
            if isinstance(result, (Terminal, Transient)):
                raise result
        return [found[number] for number in range(len(tasks))]
