"""Spark session of a job: on the given master, on that of spark-submit, or local.

In: a master, memory and further settings. Out: a session that is stopped at the end of the block. Raises NoJava if no
JVM can be started. Called by every job.
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
# The job's messages go to stderr; Spark's logs are limited to failures.
LOGGING = Path(__file__).with_name("log4j2.properties")
# Set by spark-submit, which has already started the JVM: the port of the JVM.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
# It ends in about a second; a heap full of blocks takes longer.
JVM_PATIENCE_SECONDS = 30.0

_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # Rows are long: thousands of samples each.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}


@contextmanager
def session(
    name: str, *, master: str | None = None, memory: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session for one job.

    ``master`` None: that of spark-submit, else ``local[*]``. ``memory``: the driver's heap as Spark writes it (``2g``),
    which is all memory in ``local``; under spark-submit the JVM is already running and it has no effect.
    ``settings`` are Spark settings and override the defaults. Raises NoJava.
    """
    # mapInArrow warns about pandas, which it does not use.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    given = dict(settings or {})
    if SUBMITTED in os.environ:
        # Only with a connection to the JVM does SparkConf contain the settings of spark-submit.
        SparkContext._ensure_initialized()
    else:
        find_java()
        # Workers use this interpreter; Spark's scripts find Spark by it, too.
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
    """Stop the JVM that PySpark started and wait for its end; PySpark would stop it only at process exit."""
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process.stdin.close()  # the JVM exits when its input is closed
    try:
        process.wait(JVM_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def defaults(master: str, memory: str | None) -> dict[str, str]:
    """Default settings, where neither the user nor spark-submit has set one."""
    found = dict(_ALWAYS)
    if memory is not None:
        found["spark.driver.memory"] = memory
    if SUBMITTED not in os.environ:
        found["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    if master.startswith("local"):
        # No other host connects to it, and the host name may not resolve.
        found |= {
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
    return found
