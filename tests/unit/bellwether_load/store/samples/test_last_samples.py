"""The last sample of a partition, wherever in the store it lies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bellwether.core.doctor.risks import LogEndSample
from bellwether.core.model.cluster import PartitionKey
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import last_samples as lastsamples
from bellwether_load.store.samples.last_samples import last_samples
from bellwether_load.store.samples.sample_files import Rows, write_round
from testkit.loads.sample_rounds import CLUSTER

ORDERS = PartitionKey("id-of-orders", 3)
OTHER = PartitionKey("id-of-other", 0)


def write(store: Store, at: datetime, end: int | None, *, key: PartitionKey = ORDERS, cluster: str = CLUSTER) -> None:
    row = Rows(cluster, at, ["t"], [key.topic_id], [key.partition], [1], [7], [end], [None], [None], [None])
    write_round(store, row, f"{at.minute:08x}")


def at(hour: int, minute: int = 0, day: int = 21) -> datetime:
    return datetime(2021, 11, day, hour, minute, tzinfo=UTC)


def test_the_newest_sample_is_found(store: Store) -> None:
    for minute, end in ((0, 10), (2, 30), (1, 20)):
        write(store, at(9, minute), end)
    assert last_samples(store, CLUSTER, {ORDERS}) == {ORDERS: LogEndSample(30, at(9, 2), 1, 7)}


def test_an_earlier_day_is_looked_into_where_the_last_one_has_nothing(store: Store) -> None:
    write(store, at(23, 59, day=20), 10)
    write(store, at(0, 1), 99, key=OTHER)
    assert last_samples(store, CLUSTER, {ORDERS, OTHER}) == {
        ORDERS: LogEndSample(10, at(23, 59, day=20), 1, 7),
        OTHER: LogEndSample(99, at(0, 1), 1, 7),
    }


def test_a_round_without_log_ends_is_ignored(store: Store) -> None:
    write(store, at(9, 0), 10)
    write(store, at(9, 1), None)
    assert last_samples(store, CLUSTER, {ORDERS})[ORDERS].end == 10


def test_samples_of_another_partition_or_another_cluster_are_none(store: Store) -> None:
    write(store, at(9, 0), 10, key=PartitionKey(ORDERS.topic_id, 4))
    write(store, at(9, 1), 20, cluster="another")
    assert last_samples(store, CLUSTER, {ORDERS}) == {}


def test_a_damaged_file_hides_no_earlier_sample(store: Store) -> None:
    write(store, at(9, 0), 10)
    write(store, at(9, 1), 20)
    store.write_bytes(store.list()[-1].path, b"half")
    assert last_samples(store, CLUSTER, {ORDERS})[ORDERS].end == 10


def test_no_more_files_are_read_than_are_needed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in range(5):
        write(store, at(9, minute), minute)
    read: list[str] = []
    real = lastsamples.batches
    monkeypatch.setattr(
        lastsamples, "batches", lambda where, path, schema: read.append(path) or real(where, path, schema)
    )
    last_samples(store, CLUSTER, {ORDERS})
    assert len(read) == 1


def test_the_search_for_what_was_never_sampled_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for minute in range(5):
        write(store, at(9, minute), minute)
    monkeypatch.setattr(lastsamples, "MOST_FILES", 2)
    assert last_samples(store, CLUSTER, {OTHER}) == {}


def test_nothing_wanted_reads_nothing(tmp_path: Path) -> None:
    assert last_samples(Store.open(str(tmp_path / "nowhere")), CLUSTER, set()) == {}
