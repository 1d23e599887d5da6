"""Compute loads from hourly rollups and write them: ``loads/<name>/part-NNNNN.parquet``, a range of partitions each.

A task reads its partitions from all rollups of the period, a day at a time, and writes their loads. In: rollups, the
hours of the week that they know. Out: parts, and counts of what they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from bellwether_load.histories.loads import WEEK, Levels, Loads, LoadSums, filled
from bellwether_load.histories.rollups import HOUR
from bellwether_load.histories.samples import UNKNOWN, Bools
from bellwether_load.store.filesystems import Store
from bellwether_load.store.key_ranges import KEY, Key, KeyRange, encoded, read_range
from bellwether_load.store.plans.load_hours import LISTS, of_hours
from bellwether_load.store.plans.problem_files import KEY_FIELDS
from bellwether_load.store.rollups.rollup_files import SCHEMA as ROLLUPS
from bellwether_load.store.rollups.rollup_files import RollupFile, rows_of

FOLDER = "loads"
RANGE = 8_192
"""Partitions that a task computes: their sketches are matrices of some 60 MB."""
_THURSDAY = 72
"""Hour of the week in which 1970 began."""

SCHEMA = pa.schema(
    [
        *KEY_FIELDS,
        *(pa.field(f"produce_{level}", pa.float64(), nullable=False) for level in ("median", "p95", "peak")),
        *(pa.field(f"consume_{level}", pa.float64()) for level in ("median", "p95", "peak")),
        pa.field("samples", pa.int32(), nullable=False),
        pa.field("covered_seconds", pa.int64(), nullable=False),
        *LISTS,
    ]
)


@dataclass(frozen=True, slots=True)
class PartTask:
    """Partitions to compute: the number of their part, and where."""

    number: int
    within: KeyRange


@dataclass(frozen=True, slots=True)
class Counts:
    """Of measured partitions: how many have a load, and why others have none; bytes in the logs of both.

    ``by_hours``: bytes in the logs of those with a load, by the number of hours of the week that are known of each.
    """

    partitions: int = 0
    loads: int = 0
    too_few_samples: int = 0
    without_sizes: int = 0
    samples: int = 0
    log_bytes: int = 0
    log_bytes_without_load: int = 0
    by_hours: tuple[int, ...] = (0,) * (WEEK + 1)

    def __add__(self, other: Counts) -> Counts:
        *numbers, _ = fields(self)
        total = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in numbers}
        return Counts(**total, by_hours=tuple(a + b for a, b in zip(self.by_hours, other.by_hours, strict=True)))


def hour_of_week(hour: int) -> int:
    """The hour of the week of a second since 1970."""
    return (hour // HOUR + _THURSDAY) % WEEK


def part_path(name: str, number: int) -> str:
    """The file of a part."""
    return f"{FOLDER}/{name}/part-{number:05}.parquet"


def write_part(uri: str, name: str, files: Sequence[RollupFile], hours: Sequence[int], task: PartTask) -> Counts:
    """Compute the loads of some partitions, and write them as a part. Raises StoreError."""
    store = Store.open(uri)
    keys, found = measured(store, files, task.within)
    loaded = (found.samples >= 2) & (found.covered > 0) & found.sized
    few = (found.samples < 2) | (found.covered == 0)
    table = _table(keys, found, hours).filter(pa.array(loaded)).sort_by([(name, "ascending") for name in KEY])
    table = table.cast(SCHEMA).replace_schema_metadata(of_hours(hours))
    store.write_table(part_path(name, task.number), table, compression="zstd", row_group_size=100_000)
    return Counts(
        partitions=len(keys),
        loads=int(loaded.sum()),
        too_few_samples=int(few.sum()),
        without_sizes=int((~few & ~loaded).sum()),
        samples=int(found.samples.sum()),
        log_bytes=int(found.log_bytes[loaded].sum()),
        log_bytes_without_load=int(found.log_bytes[~loaded].sum()),
        by_hours=_by_hours(found, loaded),
    )


def _by_hours(found: Loads, loaded: Bools) -> tuple[int, ...]:
    """See ``Counts``. An empty log counts as a byte, so that partitions are counted where no size is known."""
    known = (found.produce_hours != UNKNOWN).sum(axis=1)[loaded]
    weights = np.zeros(WEEK + 1, np.int64)
    np.add.at(weights, known, np.maximum(found.log_bytes[loaded], 1))
    return tuple(weights.tolist())


def measured(store: Store, files: Sequence[RollupFile], within: KeyRange) -> tuple[list[Key], Loads]:
    """The partitions that these rollups, in order of time, have in a range, and their loads. Raises StoreError.

    Those that no rollup of the last 24 hours has are left out: of topics that were deleted or recreated.
    """
    newest = [file for file in files if file.hour > files[-1].hour - 24 * HOUR]
    there = {key for file in newest for key in _distinct(_read(store, [file], KEY, within))[0]}
    numbers = {key: number for number, key in enumerate(sorted(there))}
    sums = LoadSums(len(numbers))
    for _, day in groupby(files, key=lambda file: file.hour // HOUR // 24):
        table = _read(store, day, ROLLUPS.names, within)
        keys, where = _distinct(table)
        owner = np.array([numbers.get(key, -1) for key in keys], np.int64)[where]
        if (gone := owner < 0).any():
            table, owner = table.filter(pa.array(~gone)).combine_chunks(), owner[~gone]
        at = table.column("hour").cast(pa.int64()).to_numpy()
        sums.add(owner, (at // HOUR + _THURSDAY) % WEEK, rows_of(table))
    return list(numbers), sums.loads()


def _read(store: Store, files: Iterable[RollupFile], columns: list[str], within: KeyRange) -> Any:
    schema = pa.schema([ROLLUPS.field(name) for name in columns])
    tables = [schema.empty_table()]
    for file in files:
        with store.parquet(file.path) as parquet, store.reading(file.path):
            tables.append(read_range(parquet, columns, within).cast(schema))
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _distinct(table: Any) -> tuple[list[Key], Any]:
    """The partitions of a table, and for each row which it is."""
    (topics, topic), (ids, topic_id) = encoded(table.column("topic")), encoded(table.column("topic_id"))
    partition = table.column("partition").to_numpy().astype(np.int64)
    _, first, where = np.unique(
        ((topic * len(ids) + topic_id) << 32) | partition, return_index=True, return_inverse=True
    )
    return [(topics[topic[row]], ids[topic_id[row]], int(partition[row])) for row in first.tolist()], where


def _table(keys: Sequence[Key], found: Loads, which: Sequence[int]) -> Any:
    topics, topic_ids, partitions = zip(*keys, strict=True) if keys else ((), (), ())
    known = np.isfinite(found.consume.p95)
    produce = filled(found.produce_hours, which, found.produce.p95)
    consume = filled(found.consume_hours, which, found.consume.p95)
    asked = found.request_hours
    measured_requests = (asked != UNKNOWN).any(axis=1)
    requests = filled(asked, which, asked.max(axis=1, initial=0))
    return pa.table(
        {
            "topic": pa.array(topics, pa.string()),
            "topic_id": pa.array(topic_ids, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            **_columns("produce", found.produce),
            **_columns("consume", found.consume),
            "samples": found.samples.astype(np.int32),
            "covered_seconds": found.covered,
            LISTS[0].name: _lists(produce, np.ones(len(keys), np.bool_)),
            LISTS[1].name: _lists(consume, known),
            LISTS[2].name: _lists(requests, measured_requests),
        }
    )


def _columns(name: str, levels: Levels) -> dict[str, Any]:
    values = {"median": levels.median, "p95": levels.p95, "peak": levels.peak}
    return {f"{name}_{level}": pa.array(value, from_pandas=True) for level, value in values.items()}


def _lists(rates: Any, there: Any) -> Any:
    ends = np.concatenate([[0], np.where(there, rates.shape[1], 0).cumsum()]).astype(np.int32)
    return pa.ListArray.from_arrays(ends, rates[there].ravel(), mask=pa.array(~there))
