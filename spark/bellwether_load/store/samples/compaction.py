"""Compact sample files: the rounds of an hour into one file, the files of a day into one when the day is over.

In: a store. Out: compacted files that list their rounds, and a manifest per day that names the files that count; the
files that they replace are removed half an hour later. If it is killed at any point, every sample still counts once
(``sampling.coverage``), and the next run continues. Called by ``bellwether sample``, in a thread of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import pyarrow.parquet as pq

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import compaction_plan, filenames
from bellwether_load.store.samples import compaction_rules as coverage
from bellwether_load.store.samples.manifest import manifest_files, write_manifest
from bellwether_load.store.samples.merging import AS_STORED, merged
from bellwether_load.store.samples.sample_files import (
    LONG_RUNS,
    SHORT_RUNS,
    Said,
    SampleFile,
    described,
    holding,
    readable,
)
from bellwether_load.store.store_errors import StoreDamaged, StoreError, StoreMissing

# A reader that has listed the files may read them for this long.
LINGER = timedelta(minutes=30)
# An interrupted write leaves a file that is never read.
FORGOTTEN = timedelta(hours=6)
_TEMPORARY_PREFIX = filenames.FOLDER

# Hours are merged again, which loads a group of each. Days are read by many workers in parallel.
_SHORT_GROUP_ROWS, _LONG_GROUP_ROWS = 1 << 14, 1 << 20
_MANY_ROUNDS = 200


class Stopped(Exception):
    """Compaction was interrupted because the process is stopping."""


@dataclass(frozen=True, slots=True)
class Done:
    """Result of one run."""

    written: int = 0
    rows: int = 0
    bytes: int = 0
    removed: int = 0


class Compactor:
    """Keeps the number of sample files of one cluster low. For one thread; other processes may do the same."""

    def __init__(self, store: Store, cluster_id: str, said: Said, stopped: Callable[[], bool] = lambda: False) -> None:
        """``said`` is called with a path and why it is ignored; ``stopped`` returns whether to stop."""
        self._store = store
        self._cluster = cluster_id
        self._said = said
        self._stopped = stopped
        self._unreadable: set[str] = set()

    def run(self, now: datetime) -> Done:
        """Compact everything that is due, and bring the manifests up to date. Raises StoreError, Stopped."""
        done = Done()
        listed = [file.path for file in self._store.list(filenames.FOLDER)]
        for day in filenames.days(listed):
            files = {path for path in listed if filenames.day_of(path) == day}
            if len(files) > 1 or manifest_files(self._store, day) != files:
                done = _sum(done, self._day(day, now))
        for file in self._store.list(_TEMPORARY_PREFIX, temporary=True):
            if file.modified is not None and now - file.modified > FORGOTTEN:
                self._store.delete(file.path)
        return done

    def _day(self, day: date, now: datetime) -> Done:
        done = Done(removed=self._remove(day, now))
        while True:
            files = self._readable(day)
            counting = coverage.current({path: file.rounds for path, file in files.items()})
            write_manifest(self._store, day, self._cluster, (files[path] for path in counting))
            groups = compaction_plan.merges(day, {path: files[path].rounds for path in counting}, now)
            made = [self._merge(day, {path: files[path] for path in group}) for group in groups]
            if not any(one.written for one in made):
                return done
            done = _sum(done, *made)

    def _readable(self, day: date) -> dict[str, SampleFile]:
        found = readable(self._store, day, self._said, cluster_id=self._cluster)
        return {path: file for path, file in found.items() if path not in self._unreadable}

    def _remove(self, day: date, now: datetime) -> int:
        files = self._readable(day)
        going = coverage.superfluous({path: file.rounds for path, file in files.items()})
        # Left by a process that was killed before it named the compacted file: others may be reading by it.
        named = manifest_files(self._store, day)
        removed = 0
        for path in going.keys() - named:
            written = files[going[path]].stored.modified
            if written is not None and now - written >= LINGER:
                self._store.delete(path)
                removed += 1
        return removed

    def _merge(self, day: date, files: dict[str, SampleFile]) -> Done:
        """Replace several files by one, unless one of them cannot be read or no longer exists."""
        rounds = frozenset().union(*(file.rounds for file in files.values()))
        path = filenames.compacted_path(day, rounds, uuid.uuid4().hex[:8])
        try:
            self._write(path, rounds, files)
        except StoreMissing:
            return Done()  # another process has compacted them meanwhile
        except StoreDamaged as error:
            self._blame(files, error)
            return Done()
        size = sum(file.size for file in self._store.list(filenames.folder(day)) if file.path == path)
        return Done(1, sum(file.rows for file in files.values()), size)

    def _write(self, path: str, rounds: frozenset[str], files: dict[str, SampleFile]) -> None:
        schema = AS_STORED.with_metadata(described(self._cluster).metadata)
        many = len(rounds) > _MANY_ROUNDS
        group_rows, encoding = (_LONG_GROUP_ROWS, LONG_RUNS) if many else (_SHORT_GROUP_ROWS, SHORT_RUNS)
        written = 0
        with self._store.stream(path) as sink, pq.ParquetWriter(sink, schema, **encoding) as writer:
            for part in merged(self._store, sorted(files)):
                if self._stopped():
                    raise Stopped
                writer.write_table(part, row_group_size=group_rows)
                written += part.num_rows
            expected = sum(file.rows for file in files.values())
            if written != expected:
                raise StoreError(f"{self._store.where(path)}: has {written} rows instead of {expected}: not written")
            # Only now: pyarrow completes a file that is broken off, and in an object store it is there for a moment.
            writer.add_key_value_metadata(holding(rounds))

    def _blame(self, files: dict[str, SampleFile], error: StoreDamaged) -> None:
        """Ignore the file that the error names from now on."""
        for path in files:
            if str(error).startswith(f"{self._store.where(path)}: "):
                self._unreadable.add(path)
                self._said(path, str(error))


def _sum(*parts: Done) -> Done:
    return Done(
        sum(part.written for part in parts),
        sum(part.rows for part in parts),
        sum(part.bytes for part in parts),
        sum(part.removed for part in parts),
    )
