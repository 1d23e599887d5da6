"""Where the tasks of a job run: in this process or on Spark, with the same functions and results.

In: the options of a command. Out: an engine. Spark is imported only where it is asked for.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click
import pyarrow as pa

from bellwether.extras import needed_extra
from bellwether.ports.errors import Terminal, Transient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs the same function for many tasks, each on its own.

    A task reads and writes the store itself and returns little, so nothing is shuffled, broadcast or collected, and a
    task that is repeated after the loss of an executor does no harm: it writes the same file again.
    """

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """The results, in the order of the tasks. Raises what ``work`` raises: BellwetherError as it is."""
        ...


class ProcessEngine:
    """Implements ``Engine`` in this process, one task after the other."""

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """See ``Engine``."""
        return [work(task) for task in tasks]


class SparkEngine:
    """Implements ``Engine`` on a session: each task is a partition of a DataFrame, on an executor. No SparkContext, so
    Spark Connect will do."""

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


SPARK, PROCESS = "spark", "process"
HEAP = "2g"

Command = TypeVar("Command", bound=Callable[..., Any])


def engine_options(command: Command) -> Command:
    """Add ``--engine``, ``--master`` and ``--memory``: arguments ``kind``, ``master`` and ``memory``."""
    options = (
        click.option(
            "--engine",
            "kind",
            type=click.Choice([SPARK, PROCESS]),
            default=SPARK,
            show_default=True,
            help="Where the job runs: on Spark, or in this process alone, without Java. The results are the same.",
        ),
        click.option("--master", metavar="URL", help="Spark master.  [default: that of spark-submit, or local[*]]"),
        click.option("--memory", metavar="SIZE", help=f"Heap of Spark's driver, such as 2g.  [default: {HEAP}]"),
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def opened(
    kind: str, name: str, master: str | None, memory: str | None, tell: Callable[[str], None]
) -> Iterator[Engine]:
    """The engine of one job. Raises Terminal: no Java, no Spark, or options that exclude each other."""
    if kind == PROCESS:
        if master or memory:
            raise Terminal("--master and --memory are Spark's: leave them out with --engine process")
        yield ProcessEngine()
        return
    try:
        from bellwether_load.jobs.sessions import session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Terminal(f"--engine spark {needed_extra(error)}; or use --engine process") from None
    with session(name, master=master, memory=memory or HEAP) as spark:
        tell(f"Spark {spark.version} started")
        yield SparkEngine(spark)
