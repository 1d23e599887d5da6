"""A Spark session for a job: on the master that was asked for, on spark-submit's own, or on this machine alone.

In: a master, memory and further settings. Out: a session that is stopped at the end of the block. Raises NoJava where
no JVM can be started. Called by every job.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from bellwether_load.jobs.java import find_java

LOCAL = "local[*]"
# A job's own words go to stderr; Spark's are for when it fails.
LOGGING = Path(__file__).with_name("log4j2.properties")
# spark-submit has started the JVM already, and told us where it listens.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
# It ends in about a second; a heap full of blocks takes longer.
JVM_PATIENCE_SECONDS = 30.0

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # Rows here are long: thousands of samples each.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}


@contextmanager
def session(
    name: str, *, master: str | None = None, memory: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session for one job.

    ``master`` None: that of spark-submit, else ``local[*]``. ``memory``: the driver's heap as Spark writes it (``2g``),
    which in ``local`` is all there is; under spark-submit the JVM has it already and nothing can be changed.
    ``settings`` are Spark's and beat ours. Raises NoJava.
    """
    # mapInArrow asks for pandas and then does without it.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    given = dict(settings or {})
    if SUBMITTED in os.environ:
        # Without the connection to the JVM a SparkConf knows nothing of what spark-submit was told.
        SparkContext._ensure_initialized()
    else:
        find_java()
        # Workers run what runs this; also how Spark's scripts find Spark.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf()
    chosen = master or conf.get("spark.master", LOCAL) or LOCAL
    for key, value in {**defaults(chosen, memory), **given}.items():
        if key in given or not conf.contains(key):
            conf.set(key, value)
    spark = SparkSession.builder.appName(f"bellwether {name}").master(chosen).config(conf=conf).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
        _end_jvm()


def _end_jvm() -> None:
    """End the JVM that PySpark started for us, and see it gone: PySpark leaves that to the end of the process."""
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process.stdin.close()  # the JVM ends when nobody holds the other end
    try:
        process.wait(JVM_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def defaults(master: str, memory: str | None) -> dict[str, str]:
    """Our settings for what neither the user nor spark-submit has said."""
    found = dict(_ALWAYS)
    if memory is not None:
        found["spark.driver.memory"] = memory
    if SUBMITTED not in os.environ:
        found["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    if master.startswith("local"):
        # Nobody else need reach it, and the machine's name need not lead anywhere.
        found |= {
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
    return found
