"""One Spark session for all tests that need one: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session", autouse=True)
def java() -> str:
    """A Java that runs Spark; without one these tests are skipped, and say what to install."""
    from bellwether_load.jobs.java import NoJava, find_java

    try:
        return find_java()
    except NoJava as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(java: str) -> Iterator[SparkSession]:
    from bellwether_load.jobs.sessions import session

    with session("tests", master="local[2]", memory="1g", settings={"spark.sql.shuffle.partitions": "2"}) as found:
        yield found
