"""One Spark session for all tests that need one: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from bellwether_load.jobs.sessions import session

    with session("tests", master="local[2]", memory="1g", settings={"spark.sql.shuffle.partitions": "2"}) as found:
        yield found
