"""Merge sample files into one that is sorted by (topic, partition, at), a few row groups at a time.

In: files that are sorted by (topic, partition), each opened once and read from beginning to end. Out: tables in order,
to be written one after the other. One row group of each file is in memory, so memory does not grow with the number of
rows. Called by ``compaction``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.sample_files import SCHEMA

Key = tuple[str, int]

# Parquet has no type for whole seconds: files contain milliseconds, and so do tables that are copied between files.
AS_STORED = SCHEMA.set(0, SCHEMA.field("at").with_type(pa.timestamp("ms", tz="UTC")))


class _Stream:
    """One file, read a row group at a time."""

    def __init__(self, store: Store, path: str, file: Any) -> None:
        self._store = store
        self._path = path
        self._file = file
        self._next = 0
        self._held = AS_STORED.empty_table()
        self._last: Key | None = None

    @property
    def unread(self) -> bool:
        """Whether the file has more rows than those in memory."""
        return self._next < int(self._file.num_row_groups)

    @property
    def last(self) -> Key | None:
        """Key of the last row in memory."""
        return self._last

    @property
    def rows(self) -> int:
        """Number of rows in memory."""
        return int(self._held.num_rows)

    def read(self) -> None:
        """Read one more row group. Raises StoreError."""
        with self._store.reading(self._path):
            group = self._file.read_row_group(self._next).replace_schema_metadata(None).cast(AS_STORED)
        self._next += 1
        if group.num_rows:
            self._held = pa.concat_tables([self._held, group]) if self._held.num_rows else group
            self._last = _key(group, group.num_rows - 1)

    def take(self, bound: Key | None) -> Any:
        """Drop the rows before a key, or all."""
        held = self._held
        end = held.num_rows if bound is None else bisect_left(range(held.num_rows), bound, key=lambda i: _key(held, i))
        self._held = held.slice(end)
        return held.slice(0, end)


def merged(store: Store, paths: Sequence[str]) -> Iterator[Any]:
    """The rows of these files as sorted tables in order. Raises StoreError."""
    with ExitStack() as files:
        streams = [_Stream(store, path, files.enter_context(store.parquet(path))) for path in paths]
        while True:
            for stream in streams:
                while not stream.rows and stream.unread:
                    stream.read()
            bounds = [(stream.last, stream) for stream in streams if stream.unread and stream.last is not None]
            bound = min((last for last, _ in bounds), default=None)
            parts = [part for stream in streams if (part := stream.take(bound)).num_rows]
            if parts:
                yield _sorted(parts)
            elif bound is None:
                return
            else:
                # All rows in memory have the key of the bound, and more may follow in the next group.
                for last, stream in bounds:
                    if last == bound:
                        stream.read()


def _key(table: Any, row: int) -> Key:
    return table.column(1)[row].as_py(), table.column(3)[row].as_py()


def _sorted(parts: list[Any]) -> Any:
    whole = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    if not whole.num_rows:
        return whole
    topics = whole.column("topic").chunk(0)
    order = {name: rank for rank, name in enumerate(sorted(topics.dictionary.to_pylist()))}
    ranks = pa.array([order[name] for name in topics.dictionary.to_pylist()], pa.int64()).take(topics.indices)
    # One number for topic and partition: comparing numbers is many times faster than comparing names.
    key = pc.add(pc.shift_left(ranks, 32), whole.column("partition").chunk(0).cast(pa.int64()))
    at = whole.column("at").chunk(0).cast(pa.int64())
    keys = pa.table({"key": key, "at": at})
    return whole.take(pc.sort_indices(keys, sort_keys=[("key", "ascending"), ("at", "ascending")]))
