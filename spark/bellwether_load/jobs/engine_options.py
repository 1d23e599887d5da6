"""The options of the loads job that say where it runs, and the engine that they mean.

Out: a decorator for commands, and ``opened``. Spark is imported only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from bellwether.extras import needed_extra
from bellwether.ports.errors import Terminal
from bellwether_load.engines.engine import Engine, ProcessEngine

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
        from bellwether_load.engines.spark import SparkEngine  # noqa: PLC0415
        from bellwether_load.jobs.sessions import session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Terminal(f"--engine spark {needed_extra(error)}; or use --engine process") from None
    with session(name, master=master, memory=memory or HEAP) as spark:
        tell(f"Spark {spark.version} started")
        yield SparkEngine(spark)
