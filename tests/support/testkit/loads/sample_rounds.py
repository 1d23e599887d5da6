"""Rounds of samples made up from a few words, and what a store holds of them.

In: how many partitions, when. Out: ``Rows``, and what is read again.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import Rows

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
# Long past: files are younger than the times that tests speak of.
MIDNIGHT = datetime(2021, 11, 21, tzinfo=UTC)

Sample = tuple[int, str, int, int | None]
"""When (seconds since the epoch), topic, partition, end offset."""


def rows(minute: int = 0, partitions: int = 6, *, cluster_id: str = CLUSTER, seconds: int = 0) -> Rows:
    """A round of that minute of the day: two topics, whose logs have grown by as many records as minutes have gone."""
    names = sorted((f"topic-{n % 2}", n // 2) for n in range(partitions))
    return Rows(
        cluster_id=cluster_id,
        at=MIDNIGHT + timedelta(minutes=minute, seconds=seconds),
        topic=[topic for topic, _ in names],
        topic_id=[f"{topic:_<22}" for topic, _ in names],
        partition=[partition for _, partition in names],
        leader=[partition % 3 for _, partition in names],
        leader_epoch=[7] * len(names),
        end_offset=[None if n % 5 == 4 else 1000 * n + minute for n in range(len(names))],
        log_bytes=[None if n % 5 == 3 else 10_000 * n + 100 * minute for n in range(len(names))],
        consume=[None if n % 2 else 1.5 * n for n in range(len(names))],
        requests=[0.25 * n if n % 2 else None for n in range(len(names))],
    )


def noted(one: Rows) -> Counter[Sample]:
    """The samples of a round."""
    at = int(one.at.timestamp())
    return Counter(zip([at] * len(one), one.topic, one.partition, one.end_offset, strict=True))


def held(store: Store) -> Counter[Sample]:
    """Every sample of a store, as often as it is there."""
    found: Counter[Sample] = Counter()
    for file in sample_files.list_rounds(store).rounds:
        found.update(read(store, file.path))
    return found


def read(store: Store, path: str) -> list[Sample]:
    """The samples of one file, in its order."""
    table: Any = read_table(store, path)
    columns = [table.column(name).to_pylist() for name in ("at", "topic", "partition", "end_offset")]
    return [(int(at.timestamp()), topic, partition, end) for at, topic, partition, end in zip(*columns, strict=True)]


def read_table(store: Store, path: str) -> Any:
    """A Parquet file of a store as a table. Raises StoreError."""
    with store.parquet(path) as file, store.reading(path):
        return file.read()
