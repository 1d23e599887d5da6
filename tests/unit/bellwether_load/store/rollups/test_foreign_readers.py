"""Readers that know nothing of Bellwether read samples and rollups by a glob: each row once."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from bellwether_load.histories.sketches import ERROR
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.samples.sample_files import list_rounds
from testkit.loads.load_histories import steady
from testkit.loads.sample_files import Histories, write_rounds

HISTORIES: Histories = {
    ("apples", 0): steady(130, messages=60, each=10),
    ("pears", 3): steady(40, messages=600, each=5),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = Store.open(str(tmp_path))
    # Late samples: the first hour is rolled up twice.
    for histories in ({key: history[:50] for key, history in HISTORIES.items()}, HISTORIES):
        write_rounds(store, histories)
        for due in due_hours(store, list_rounds(store)):
            roll_hour(str(tmp_path), due)
    store.write_bytes("rollups/_tmp-12345678-x.parquet", b"half")
    return tmp_path


def test_duckdb_reads_rollups_by_topic_and_their_sketches(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.execute(
        """SELECT topic, sum(messages)::BIGINT, sum(bytes_in)::BIGINT, sum(covered_seconds)::BIGINT, max(cluster)
            FROM read_parquet(?, hive_partitioning = true)
            GROUP BY topic ORDER BY topic""",
        [f"{folder}/rollups/cluster=*/date=*/*.parquet"],
    ).fetchall()
    assert [row[:4] for row in found] == [("apples", 129 * 60, 77_400, 7_740), ("pears", 39 * 600, 117_000, 2_340)]
    levels = duckdb.execute(
        """SELECT topic, if(level = 0, 0, pow(2, (level - 161) / 16)) AS rate, sum(seconds)::BIGINT
            FROM (SELECT topic, unnest(in_levels) AS level, unnest(in_seconds) AS seconds
                  FROM read_parquet(?))
            GROUP BY ALL ORDER BY topic""",
        [f"{folder}/rollups/cluster=*/date=*/*.parquet"],
    ).fetchall()
    (apples, pears) = levels
    assert (apples[2], pears[2]) == (7_740, 2_340)
    assert math.isclose(apples[1], 10, rel_tol=ERROR)
    assert math.isclose(pears[1], 50, rel_tol=ERROR)


def test_duckdb_reads_each_sample_once(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.execute(
        """SELECT topic, count(*), max(end_offset) - min(end_offset)
            FROM read_parquet(?) GROUP BY topic ORDER BY topic""",
        [f"{folder}/samples/cluster=*/hour=*/*.parquet"],
    ).fetchall()
    assert found == [("apples", 130, 129 * 60), ("pears", 40, 39 * 600)]


def test_arrow_reads_rollups_as_one_table(folder: Path) -> None:
    table = ds.dataset(folder / "rollups", partitioning="hive", exclude_invalid_files=False).to_table()
    assert table.num_rows == 4
    assert sum(table.column("messages").to_pylist()) == 129 * 60 + 39 * 600
