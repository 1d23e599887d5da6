"""Make the rollups that are due: read the samples of an hour, roll them up, write its file.

In: a store and the time. Out: rollups. Run by the sampler for the hours that have ended, and by the loads job for all
that have samples which no rollup has, the present hour included. A run that is killed leaves the old file or the new
one; runs at once write the same bytes.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.histories.rollups import HOUR, LONGEST, MARGINS, roll
from bellwether_load.histories.samples import UNKNOWN, Ints, Samples
from bellwether_load.store.filesystems import Store
from bellwether_load.store.key_ranges import KeyRange, encoded, key_ranges, read_range
from bellwether_load.store.rollups.rollup_files import (
    RollupFile,
    list_rollups,
    read_about,
    table_of,
    write_rollup,
)
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import Listing, RoundFile, require_format
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

PIECE = 8_192
"""Partitions that are rolled up at a time, a row group of each round: with 90 rounds some 300 MB."""
SETTLED = LONGEST + 300
"""Seconds after an hour: its last intervals are decided by the samples after it, which may be written late."""

_ONE_HOUR = threading.Lock()
"""A process that samples several clusters needs the memory of one hour."""


@dataclass(frozen=True, slots=True)
class DueHour:
    """An hour to roll up, and the files that decide on it."""

    cluster_id: str
    hour: int
    files: tuple[RoundFile, ...]

    def settled(self, now: datetime) -> bool:
        """Whether the hour has ended, and the samples that decide on its last intervals are there."""
        return self.hour + HOUR + SETTLED <= now.timestamp()


@dataclass(frozen=True, slots=True)
class Rolled:
    """Result of one hour: rows, bytes (0: not written), and files that could not be read, with the cause."""

    rows: int
    bytes: int
    skipped: tuple[str, ...]


def due_hours(store: Store, listing: Listing) -> list[DueHour]:
    """The hours with samples that their rollup lacks, oldest first.

    An hour of which samples that were read are removed already is not rolled up again: it would lose them. Raises
    StoreError.
    """
    done = {(file.cluster_id, file.hour): file for file in list_rollups(store)}
    found = []
    for cluster_id in sorted({file.cluster_id for file in listing.rounds}):
        files = [file for file in listing.rounds if file.cluster_id == cluster_id]
        times = [file.at for file in files]
        for hour in sorted({at // HOUR * HOUR for at in times}):
            first, last = (bisect_left(times, at) for at in (hour - MARGINS[0], hour + HOUR + MARGINS[1] + 1))
            sources = {file.path for file in files[first:last]}
            rolled, skipped = _sources(store, done.get((cluster_id, hour)))
            if sources - rolled and rolled - skipped <= sources:
                found.append(DueHour(cluster_id, hour, tuple(files[first:last])))
    return sorted(found, key=lambda due: due.hour)


def _sources(store: Store, file: RollupFile | None) -> tuple[set[str], set[str]]:
    """The samples that a rollup names, and those of them that it skipped."""
    if file is None:
        return set(), set()
    try:
        about = read_about(store, file)
        return set(about.sources), set(about.skipped)
    except (StoreDamaged, StoreMissing):
        return set(), set()  # made again


def roll_hour(uri: str, due: DueHour) -> Rolled:
    """Roll up an hour, and write its file. Raises StoreError; StoreNewer for samples of a later release.

    Leaves the hour as it is if a sample file was removed since it was listed: a rollup that has it must not be replaced
    by one that lacks it.
    """
    try:
        with _ONE_HOUR:
            return _rolled(uri, due)
    except StoreMissing:
        return Rolled(0, 0, ())


def _rolled(uri: str, due: DueHour) -> Rolled:
    store, skipped = Store.open(uri), dict[str, str]()
    readable = {file: footer for file in due.files if (footer := _footer(store, file, skipped)) is not None}
    ranges = _ranges(store, readable, skipped)
    tables = [_piece(_read(store, readable, within, skipped), due.hour) for within in ranges]
    inside = [file.at for file in readable if due.hour <= file.at < due.hour + HOUR and file.path not in skipped]
    about = {
        "sources": [file.path for file in due.files],
        "skipped": sorted(skipped),
        "since": min(inside, default=0),
        "until": max(inside, default=0),
        "covered": max((pc.max(t.column("covered_seconds")).as_py() or 0 for t in tables if len(t)), default=0),
    }
    size = write_rollup(store, due.cluster_id, due.hour, tables, about)
    return Rolled(sum(len(t) for t in tables), size, tuple(skipped.values()))


def _piece(table: Any, hour: int) -> Any:
    """The rollup of some partitions. Nothing else is held."""
    keys, samples = to_samples(table)
    del table
    there, rows = roll(samples, hour)
    return table_of(keys.filter(pa.array(there)), hour, rows)


def _ranges(store: Store, files: Iterable[RoundFile], skipped: dict[str, str]) -> list[KeyRange]:
    """Of the largest file, which has the most partitions; the same ones for the same files."""
    for file in sorted(files, key=lambda file: (-file.size, file.path)):
        try:
            return key_ranges(store, file.path, PIECE)
        except StoreDamaged as error:
            skipped[file.path] = str(error)
    return [KeyRange()]


def _footer(store: Store, file: RoundFile, skipped: dict[str, str]) -> Any:
    """The Parquet metadata of a file of samples, which is read once; None if the file cannot be used."""
    try:
        with store.parquet(file.path) as parquet:
            where, names = store.where(file.path), parquet.schema_arrow.names
            require_format(parquet.metadata.metadata, sample_files.FORMAT, file.cluster_id, where)
            if missing := sorted(set(sample_files.SCHEMA.names).difference(names)):
                raise StoreDamaged(f"{where}: has no column {', '.join(missing)}. Move it out of the store")
            return parquet.metadata
    except StoreDamaged as error:
        skipped[file.path] = str(error)
        return None


def _read(store: Store, files: Mapping[RoundFile, Any], within: KeyRange, skipped: dict[str, str]) -> Any:
    """The samples of some partitions, in order of time; a file that cannot be read is left out from then on."""
    tables = [sample_files.SCHEMA.empty_table()]
    for file, footer in files.items():
        if file.path in skipped:
            continue
        try:
            with store.parquet(file.path, footer) as parquet, store.reading(file.path):
                table = read_range(parquet, sample_files.SCHEMA.names, within)
            tables.append(_conformed(table, store.where(file.path)))
        except StoreDamaged as error:
            skipped[file.path] = str(error)
    return pa.concat_tables(tables)


def _conformed(table: Any, where: str) -> Any:
    """A table with the columns of samples, and no others."""
    try:
        found = table.select(sample_files.SCHEMA.names).cast(sample_files.SCHEMA)
        if len(found) and (
            pc.min(found.column("partition")).as_py() < 0 or pc.min(found.column("at").cast(pa.int64())).as_py() < 0
        ):
            raise ValueError("it has negative partitions or times")
    except (pa.ArrowException, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise StoreDamaged(
            f"{where}: does not have the columns of samples: {reason}. Move it out of the store"
        ) from None
    return found


def to_samples(table: Any) -> tuple[Any, Samples]:
    """A table of samples as keys (a table of topic, topic id and partition, sorted) and samples in the same order.

    Numbers that no broker gives (negative, not a number, infinite) become unknown.
    """
    topics, topic = _ranked(table.column("topic"))
    ids, topic_id = _ranked(table.column("topic_id"))
    partition = table.column("partition").to_numpy().astype(np.int64)
    group = ((topic * len(ids) + topic_id) << 32) | partition
    order = np.argsort(group, kind="stable")
    firsts = np.flatnonzero(np.diff(group[order], prepend=-1))
    columns = {"topic": (topics, topic), "topic_id": (ids, topic_id)}
    keys = {name: pa.array(words).take(pa.array(codes[order][firsts])) for name, (words, codes) in columns.items()}
    samples = Samples(
        np.append(firsts, len(order)).astype(np.int64),
        table.column("at").cast(pa.int64()).to_numpy()[order],
        table.column("leader").to_numpy()[order],
        table.column("leader_epoch").to_numpy()[order],
        _known(table, "end_offset")[order],
        _known(table, "log_bytes")[order],
        _known_rates(table, "consume_bytes_per_second")[order],
        _known_rates(table, "requests_per_second")[order],
    )
    keys["partition"] = pa.array(partition[order][firsts].astype(np.int32))
    return pa.table(keys), samples


def _ranked(column: Any) -> tuple[list[str], Ints]:
    """The distinct strings of a column in order, and for each row which it is."""
    words, codes = encoded(column)
    order = sorted(range(len(words)), key=words.__getitem__)
    rank = np.empty(len(words), np.int64)
    rank[order] = np.arange(len(words))
    return [words[i] for i in order], rank[codes]


def _known_rates(table: Any, name: str) -> NDArray[np.float32]:
    """A column of rates with NaN for null and for what no rate is."""
    rates = table.column(name).fill_null(float("nan")).to_numpy()
    return np.where(np.isfinite(rates) & (rates >= 0), rates, np.float32("nan"))


def _known(table: Any, name: str) -> Ints:
    """A column with UNKNOWN for null and for what is below 0."""
    found: Ints = np.maximum(table.column(name).fill_null(UNKNOWN).to_numpy(), UNKNOWN)
    return found
