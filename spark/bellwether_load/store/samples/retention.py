"""Retention: remove the samples of days that are older than the configured age.

In: a store, the number of days, a date. Out: what was removed. Called by ``bellwether sample``, in addition to
compaction. Other files, and folders that contain them, are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import date

from bellwether_load.store.filesystems import TEMPORARY, Store
from bellwether_load.store.samples import compaction_plan, filenames
from bellwether_load.store.samples.manifest import manifest_path


def expire(store: Store, keep_days: int, today: date, said: Callable[[date, str], None]) -> tuple[date, ...]:
    """Keep the newest ``keep_days`` days that have samples; the days that went. Raises StoreError.

    ``said`` is called for days in the future: they are ignored until they are past, or are moved manually.
    """
    samples: dict[date, list[str]] = defaultdict(list)
    foreign: set[date] = set()
    for file in (*store.list(filenames.FOLDER), *store.list(filenames.FOLDER, temporary=True)):
        day = filenames.day_of(file.path)
        if day is None:
            continue
        if filenames.is_round(file.path) or filenames.is_compacted(file.path):
            samples[day].append(file.path)
        elif filenames.name_of(file.path).startswith(TEMPORARY):
            samples.setdefault(day, []).append(file.path)
        else:
            foreign.add(day)
    for day in compaction_plan.astray(samples, today):
        said(
            day,
            f"{store.where(filenames.folder(day))}: is in the future, so a clock was wrong: move it out of the store",
        )
    going = compaction_plan.expired(samples, keep_days, today)
    for day in going:
        store.delete(manifest_path(day))  # first: it must not name files that are gone
        for path in samples[day]:
            store.delete(path)
        if day not in foreign:
            store.delete_directory(filenames.folder(day))
    return tuple(going)
