"""Both engines for the jobs' tests. One Spark session for all of them: starting it takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from bellwether_load.jobs.engines import Engine, ProcessEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    from bellwether_load.jobs.sessions import LOGGING, session

    # Jobs of a second do not repay what the second compiler costs.
    java = f"-Dlog4j2.configurationFile={LOGGING.as_uri()} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": java}
    with session("tests", master="local[2]", memory="1g", settings=settings) as found:
        yield found


@pytest.fixture(params=["process", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "process":
        yield ProcessEngine()
        return
    from bellwether_load.jobs.engines import SparkEngine

    yield SparkEngine(request.getfixturevalue("spark"))
