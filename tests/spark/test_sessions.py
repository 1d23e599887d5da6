from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_session_of_this_machine_listens_to_nobody_else_and_shows_no_page(spark: SparkSession):
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert conf.get("spark.ui.enabled") == "false"
    assert spark.sparkContext.uiWebUrl is None


def test_times_are_utc(spark: SparkSession):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_what_was_asked_for_is_there(spark: SparkSession):
    assert spark.sparkContext.master == "local[2]"
    assert spark.conf.get("spark.driver.memory") == "1g"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_workers_are_the_python_that_runs_this(spark: SparkSession):
    import sys

    def told(batches):  # type: ignore[no-untyped-def]
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"where": [sys.executable]})

    assert {row["where"] for row in spark.range(1).mapInArrow(told, "where string").collect()} == {sys.executable}
