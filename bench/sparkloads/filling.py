"""A store with a day of samples, in compacted files as the sampler writes them.

In: a made-up cluster and an empty directory. Out: one file, as of a day that is over, or a file an hour, as of today;
and how many rows and bytes there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bellwether_load.store.samples import filenames
from bellwether_load.store.samples.sample_files import LONG_RUNS, SCHEMA, SHORT_RUNS, described
from sparkloads.traffic import MIDNIGHT, MINUTES, Cluster, Seen

CLUSTER_ID = "bWFkZS11cC1jbHVzdGVyLQ"
HOURS = range(24)


@dataclass(frozen=True, slots=True)
class Filled:
    """What a store holds."""

    rows: int
    bytes: int
    files: int


def fill_day(directory: Path, cluster: Cluster) -> Filled:
    """One file with all hours of each partition together."""
    days = (table(cluster, rows, [cluster.hour(number, rows) for number in HOURS]) for rows in cluster.parts())
    return _write(directory, list(HOURS), days, 1 << 20, LONG_RUNS)


def fill_hours(directory: Path, cluster: Cluster) -> Filled:
    """A file for each hour."""
    found = []
    for number in HOURS:
        hours = (table(cluster, rows, [cluster.hour(number, rows)]) for rows in cluster.parts())
        found.append(_write(directory, [number], hours, 1 << 14, SHORT_RUNS))
    return Filled(sum(one.rows for one in found), sum(one.bytes for one in found), len(found))


def table(cluster: Cluster, rows: slice, hours: list[Seen]) -> Any:
    """Some hours of some partitions as the sampler's schema has it, sorted by topic, partition and time."""
    at, leader, epoch, end, size = (
        np.concatenate([getattr(hour, column) for hour in hours], axis=1).ravel()
        for column in ("at", "leader", "epoch", "end", "size")
    )
    minutes = len(hours) * MINUTES
    columns = [
        pa.array(at).cast(SCHEMA.field("at").type),
        _names(cluster.topics, cluster.topic[rows], minutes),
        _names(cluster.topic_ids, cluster.topic[rows], minutes),
        pa.array(np.repeat(cluster.partition[rows], minutes).astype(np.int32)),
        pa.array(leader.astype(np.int32)),
        pa.array(epoch.astype(np.int32)),
        pa.array(end, mask=end < 0),
        pa.array(size, mask=size < 0),
        pa.nulls(len(at), pa.float32()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _names(names: list[str], numbers: np.ndarray[Any, Any], minutes: int) -> Any:
    low, high = int(numbers[0]), int(numbers[-1]) + 1
    codes = np.repeat(numbers - low, minutes).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names[low:high]))


def _write(
    directory: Path, hours: list[int], tables: Iterable[Any], group_rows: int, encoding: dict[str, Any]
) -> Filled:
    rounds = frozenset(
        f"{hour:02}{minute:02}00-{_tag(hour * MINUTES + minute)}" for hour in hours for minute in range(MINUTES)
    )
    day = datetime.fromtimestamp(MIDNIGHT, UTC).date()
    path = directory / filenames.compacted_path(day, rounds, _tag(1_000_000 + hours[0]))
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    with pq.ParquetWriter(path, described(CLUSTER_ID, rounds), **encoding) as writer:
        for part in tables:
            writer.write_table(part, row_group_size=group_rows)
            rows += part.num_rows
    return Filled(rows, path.stat().st_size, 1)


def _tag(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:8]
