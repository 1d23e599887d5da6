"""The loads job on both engines, from the sampler's files to the store, against the arithmetic alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether_load.histories.samples import UNKNOWN
from bellwether_load.jobs import load_parts
from bellwether_load.jobs import loads as job
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.rollup_files import list_rollups
from testkit.loads.load_histories import MIDNIGHT, deleted, led, measured, steady
from testkit.loads.sample_files import Histories, write_rounds
from testkit.loads.sample_rounds import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bellwether_load.jobs.engines import Engine

HISTORIES: Histories = {
    **{("apples", n): steady(70, messages=10 * n, each=100) for n in range(20)},
    ("pears", 0): led(steady(70, messages=60, each=9), 20, leader=2, larger=10**6),
    ("pears", 1): deleted(steady(70, messages=600, each=5), 20, size=10**4),
    ("pears", 2): steady(1),
    ("plums", 0): [sample for sample in steady(70) if not 10 <= sample.at // 60 < 15],
}
NOW = datetime.fromtimestamp(MIDNIGHT + 7200, UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store.open(str(tmp_path))
    write_rounds(found, HISTORIES)
    return found


def run(engine: Engine, store: Store, name: str = "now") -> load_parts.Counts:
    return job.run(engine, str(store), name, job.DAYS, NOW, lambda _: None)


def written(store: Store, folder: str) -> list[dict[str, Any]]:
    return [row for file in store.list(folder) for row in read_table(store, file.path).to_pylist()]


def test_samples_become_loads(engine: Engine, store: Store):
    counts = run(engine, store)
    assert (counts.partitions, counts.loads, counts.too_few_samples, counts.without_sizes) == (24, 23, 1, 0)
    found = measured(*(HISTORIES[key] for key in sorted(HISTORIES)))
    rows = written(store, "loads/now")
    there = [number for number, key in enumerate(sorted(HISTORIES)) if key != ("pears", 2)]
    assert [(row["topic"], row["partition"]) for row in rows] == [sorted(HISTORIES)[number] for number in there]
    for level in ("median", "p95", "peak"):
        np.testing.assert_array_equal(
            [row[f"produce_{level}"] for row in rows], getattr(found.produce, level)[there], err_msg=level
        )
    assert [row["samples"] for row in rows] == found.samples[there].tolist()
    assert [row["covered_seconds"] for row in rows] == found.covered[there].tolist()
    known = found.produce_hours[there][:, (found.produce_hours != UNKNOWN).any(axis=0)]
    assert [row["produce_hours"] for row in rows] == known.tolist()


def test_ranges_of_partitions_do_not_change_a_load(engine: Engine, store: Store, monkeypatch: pytest.MonkeyPatch):
    counts = run(engine, store)
    once = written(store, "loads/now")
    monkeypatch.setattr(job, "RANGE", 5)
    assert run(engine, store) == counts
    assert len(store.list("loads/now")) == 5
    assert written(store, "loads/now") == once


@pytest.mark.spark
def test_both_engines_write_the_same_bytes(engine: Engine, store: Store, spark: SparkSession):
    from bellwether_load.jobs.engines import SparkEngine

    def contents(chosen: Engine) -> list[bytes]:
        store.delete_directory("rollups")
        run(chosen, store)
        return [store.read_bytes(file.path) for folder in ("rollups", "loads") for file in store.list(folder)]

    assert contents(engine) == contents(SparkEngine(spark))


@pytest.mark.spark
@pytest.mark.parametrize("kind", [Terminal, Transient])
def test_an_error_of_a_task_is_named(spark: SparkSession, kind: type[BellwetherError]):
    from bellwether_load.jobs.engines import SparkEngine

    def work(number: int) -> int:
        if number == 2:
            raise kind("part 2 cannot be read: upgrade it")
        return number

    engine = SparkEngine(spark)
    assert engine.run(work, [0, 1]) == [0, 1]
    assert engine.run(work, []) == []
    with pytest.raises(kind, match=r"^part 2 cannot be read: upgrade it$"):
        engine.run(work, [0, 1, 2])


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["process"], indirect=True)
def test_spark_reads_rollups_as_a_table(engine: Engine, store: Store, spark: SparkSession, tmp_path: Path):
    run(engine, store)
    rows = spark.read.parquet((tmp_path / "rollups").as_uri()).groupBy("topic").sum("messages").collect()
    tables = [read_table(store, file.path) for file in list_rollups(store)]
    for row in rows:
        total = sum(r["messages"] for table in tables for r in table.to_pylist() if r["topic"] == row["topic"])
        assert row["sum(messages)"] == total
    assert {row["topic"] for row in rows} == {"apples", "pears", "plums"}
