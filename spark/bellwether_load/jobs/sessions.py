"""Spark session of a job: on the given master, on that of spark-submit or Spark Connect, or local.

In: a master, memory and further settings. Out: a session that is stopped at the end of the block. Raises NoJava if no
JVM can be started. PySpark's JVM ends with the process.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from bellwether.ports.errors import Terminal

LOCAL = "local[*]"
# The job's messages go to stderr; Spark's logs are limited to failures.
LOGGING = Path(__file__).with_name("log4j2.properties")
# Set where Spark runs already: by spark-submit the port of its JVM, and the address of a Spark Connect server.
RUNNING = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")


@contextmanager
def session(
    name: str, *, master: str | None = None, memory: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session for one job.

    ``master`` None: where Spark runs already, else ``local[*]``. ``memory``: the driver's heap as Spark writes it
    (``2g``), which is all memory in ``local``. ``settings`` are Spark's and override the defaults. Raises NoJava.
    """
    # mapInArrow warns about pandas, which it does not use.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = SparkSession.builder.appName(f"bellwether {name}")
    chosen = dict(settings or {})
    if not any(name in os.environ for name in RUNNING):
        # Workers use this interpreter; Spark's scripts find Spark by it, too.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        master = master or LOCAL
        chosen = {**defaults(master, memory), **chosen}
    if master is not None:
        builder = builder.master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getErrorClass() != "JAVA_GATEWAY_EXITED":
            raise
        raise NoJava(
            "Spark cannot start Java: what it printed says why. Install a full Java 17 or newer (on Debian:"
            " openjdk-17-jre-headless), and set JAVA_HOME to it"
        ) from None
    try:
        yield spark
    finally:
        spark.stop()


def defaults(master: str, memory: str | None) -> dict[str, str]:
    """Settings of a JVM that is started here."""
    found = {
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
    }
    if memory is not None:
        found["spark.driver.memory"] = memory
    if master.startswith("local"):
        # No other host connects to it, and the host name may not resolve.
        found |= {
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
    return found


class NoJava(Terminal):
    """There is no Java runtime that Spark can use."""
