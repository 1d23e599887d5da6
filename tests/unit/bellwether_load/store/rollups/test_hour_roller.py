"""Rollups of made-up samples: which hours are due, what is read, and what a reader finds."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import pyarrow as pa
import pytest

from bellwether_load.histories.rollups import HOUR
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups import hour_roller
from bellwether_load.store.rollups.hour_roller import DueHour, Rolled, due_hours, roll_hour
from bellwether_load.store.rollups.rollup_files import list_rollups, read_about
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import list_rounds
from bellwether_load.store.store_errors import StoreDamaged, StoreNewer
from testkit.loads.load_histories import MIDNIGHT, steady
from testkit.loads.sample_files import Histories, write_rounds
from testkit.loads.sample_rounds import CLUSTER, read_table

HISTORIES: Histories = {
    ("apples", 0): steady(130, messages=60, each=10),
    ("apples", 1): steady(130, messages=600, each=5),
    ("pears", 0): steady(40),
}
NOW = datetime.fromtimestamp(MIDNIGHT, UTC) + timedelta(hours=3)
ROLLUP = f"rollups/cluster={CLUSTER}/date=2026-11-20"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    write_rounds(Store.open(str(tmp_path)), HISTORIES)
    return str(tmp_path)


def due(uri: str) -> list[DueHour]:
    store = Store.open(uri)
    return due_hours(store, list_rounds(store))


def rolled(uri: str) -> list[Rolled]:
    return [roll_hour(uri, one) for one in due(uri)]


def contents(uri: str) -> dict[str, bytes]:
    store = Store.open(uri)
    return {file.path: store.read_bytes(file.path) for file in list_rollups(store)}


def test_each_hour_has_a_row_for_each_partition_that_was_sampled(uri: str) -> None:
    assert [one.rows for one in rolled(uri)] == [3, 2, 2]
    first = read_table(Store.open(uri), f"{ROLLUP}/00.parquet").to_pylist()
    assert [(row["topic"], row["partition"], row["bytes_in"]) for row in first] == [
        ("apples", 0, 36_000),
        ("apples", 1, 180_000),
        ("pears", 0, 39_000),
    ]
    assert [row["covered_seconds"] for row in first] == [3600, 3600, 39 * 60]
    assert [row["samples"] for row in first] == [60, 60, 40]
    assert {row["hour"] for row in first} == {datetime(2026, 11, 20, tzinfo=UTC)}
    assert {row["bytes_out_estimate"] for row in first} == {None}


def test_the_seconds_of_hours_add_up_to_those_of_the_whole_history(uri: str) -> None:
    rolled(uri)
    tables = [read_table(Store.open(uri), file.path) for file in list_rollups(Store.open(uri))]
    rows = [row for table in tables for row in table.to_pylist() if row["topic"] == "apples"]
    assert sum(row["covered_seconds"] for row in rows) == 2 * 129 * 60
    assert sum(row["messages"] for row in rows) == 129 * 660


def test_an_hour_is_settled_once_its_last_samples_were_written(uri: str) -> None:
    assert [one.hour - MIDNIGHT for one in due(uri)] == [0, HOUR, 2 * HOUR]
    assert [one.settled(NOW) for one in due(uri)] == [True, True, False]
    assert [one.settled(NOW + timedelta(minutes=15)) for one in due(uri)] == [True] * 3


def test_what_was_rolled_up_is_not_due_again(uri: str) -> None:
    rolled(uri)
    assert due(uri) == []


def test_late_samples_roll_up_their_hour_again(uri: str) -> None:
    store = Store.open(uri)
    late = [file.path for file in list_rounds(store).rounds if MIDNIGHT + 1500 <= file.at < MIDNIGHT + 1800]
    held_back = {path: store.read_bytes(path) for path in late}
    whole = (rolled(uri), contents(uri))[1]
    for path in whole:
        store.delete(path)
    for path in late:
        store.delete(path)
    rolled(uri)
    assert contents(uri) != whole
    for path, data in held_back.items():
        store.write_bytes(path, data)
    assert [one.hour - MIDNIGHT for one in due(uri)] == [0]
    rolled(uri)
    assert contents(uri) == whole


def test_samples_that_decide_on_the_next_hour_roll_up_both(uri: str) -> None:
    rolled(uri)
    write_rounds(Store.open(uri), {("apples", 0): [replace(steady(1)[0], at=HOUR - 30)]})
    assert [one.hour - MIDNIGHT for one in due(uri)] == [0, HOUR]


def test_an_hour_whose_samples_were_removed_keeps_its_rollup(uri: str) -> None:
    rolled(uri)
    store, before = Store.open(uri), contents(uri)
    for file in list_rounds(store).rounds[:20]:
        store.delete(file.path)
    write_rounds(store, {("apples", 0): [replace(steady(1)[0], at=1805)]})
    assert due(uri) == []
    assert contents(uri) == before


def test_a_task_that_finds_samples_removed_writes_no_rollup(uri: str) -> None:
    late, store = due(uri)[0], Store.open(uri)
    rolled(uri)
    before = contents(uri)
    for file in late.files:
        store.delete(file.path)
        assert roll_hour(uri, late) == Rolled(0, 0, ())
    assert contents(uri) == before


def test_a_process_rolls_up_one_hour_at_a_time(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, roll = [0], [0], hour_roller.roll

    def counted(*arguments: Any) -> Any:
        at_once[0] += 1
        most.append(at_once[0])
        sleep(0.05)
        at_once[0] -= 1
        return roll(*arguments)

    monkeypatch.setattr(hour_roller, "roll", counted)
    with ThreadPoolExecutor(3) as threads:
        assert sum(one.rows for one in threads.map(partial(roll_hour, uri), due(uri))) == 7
    assert max(most) == 1


def test_pieces_do_not_change_what_is_rolled_up(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rolled(uri)
    tables = [read_table(Store.open(uri), path) for path in contents(uri)]
    Store.open(uri).delete_directory("rollups")
    monkeypatch.setattr(hour_roller, "PIECE", 1)
    rolled(uri)
    assert [read_table(Store.open(uri), path) for path in contents(uri)] == tables


def test_a_rollup_says_what_it_rests_on(uri: str) -> None:
    rolled(uri)
    store = Store.open(uri)
    about = read_about(store, list_rollups(store)[1])
    assert (about.since, about.until, about.covered) == (MIDNIGHT + HOUR, MIDNIGHT + 2 * HOUR - 60, 3600)
    assert (about.rows, len(about.sources)) == (2, 20 + 60 + 10)


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-20], lambda _: b"", lambda data: data[:4] + bytes(400) + data[404:]]
)
def test_a_damaged_file_is_named_and_the_others_count(uri: str, spoil: Callable[[bytes], bytes]) -> None:
    store = Store.open(uri)
    path = list_rounds(store).rounds[7].path
    store.write_bytes(path, spoil(store.read_bytes(path)))
    first, *_ = rolled(uri)
    (said,) = first.skipped
    assert f"{store.where(path)}: is damaged or not a Parquet file" in said
    assert first.rows == 3
    assert due(uri) == []


@pytest.mark.parametrize("missing", ["topic_id", "end_offset"])
def test_a_file_without_a_column_is_named_and_skipped(uri: str, missing: str) -> None:
    store = Store.open(uri)
    path = list_rounds(store).rounds[7].path
    table = read_table(store, path)
    store.write_table(path, table.drop_columns([missing]))
    first, *_ = rolled(uri)
    assert first.skipped == (f"{store.where(path)}: has no column {missing}. Move it out of the store",)
    assert first.rows == 3


def test_a_damaged_file_that_was_removed_does_not_end_an_hour(uri: str) -> None:
    store = Store.open(uri)
    *_, damaged, late = [file.path for file in list_rounds(store).rounds if file.at < MIDNIGHT + HOUR]
    held_back = store.read_bytes(late)
    store.delete(late)
    store.write_bytes(damaged, b"half")
    rolled(uri)
    store.delete(damaged)
    store.write_bytes(late, held_back)
    assert [one.hour - MIDNIGHT for one in due(uri)] == [0, HOUR]
    assert rolled(uri)[0].skipped == ()
    assert due(uri) == []


def test_added_columns_are_read_and_a_later_format_is_an_error(uri: str) -> None:
    store = Store.open(uri)
    file, other = list_rounds(store).rounds[3:5]
    table = read_table(store, file.path)
    wider = table.append_column("messages", pa.nulls(len(table), pa.int64()))
    store.write_table(file.path, wider.replace_schema_metadata(table.schema.metadata))
    assert [one.skipped for one in rolled(uri)] == [(), (), ()]
    metadata = {**table.schema.metadata, sample_files.FORMAT_KEY: b"samples/4"}
    store.write_table(other.path, read_table(store, other.path).replace_schema_metadata(metadata))
    store.delete_directory("rollups")
    with pytest.raises(StoreNewer, match=r"has format samples/4, .*upgrade"):
        rolled(uri)


def test_a_rollup_of_a_later_release_is_no_damage(uri: str) -> None:
    rolled(uri)
    store = Store.open(uri)
    file = list_rollups(store)[0]
    table = read_table(store, file.path)
    metadata = {**table.schema.metadata, sample_files.FORMAT_KEY: b"rollups/3"}
    store.write_table(file.path, table.replace_schema_metadata(metadata))
    with pytest.raises(StoreNewer, match="upgrade"):
        due(uri)


def test_a_damaged_rollup_is_made_again(uri: str) -> None:
    rolled(uri)
    before, store = contents(uri), Store.open(uri)
    store.write_bytes(f"{ROLLUP}/01.parquet", b"half")
    with pytest.raises(StoreDamaged):
        read_about(store, list_rollups(store)[1])
    rolled(uri)
    assert contents(uri) == before


def test_numbers_that_no_broker_gives_are_unknown(tmp_path: Path) -> None:
    history = [replace(s, end=-5 if s.at == 60 else s.end, consume=float("nan")) for s in steady(10)]
    write_rounds(Store.open(str(tmp_path)), {("apples", 0): history})
    rolled(str(tmp_path))
    store = Store.open(str(tmp_path))
    assert read_table(store, f"{ROLLUP}/00.parquet").column("samples").to_pylist() == [9]


def test_two_clusters_have_rollups_of_their_own(uri: str) -> None:
    write_rounds(Store.open(uri), {("apples", 0): steady(5, messages=999)}, "another")
    rolled(uri)
    assert {file.cluster_id for file in list_rollups(Store.open(uri))} == {CLUSTER, "another"}
    assert read_table(Store.open(uri), f"{ROLLUP}/00.parquet").column("messages")[0].as_py() == 3600
