"""Which files of a day are to become one, and which days are to go.

In: names and a time. Out: groups of paths; days. Called by ``store.samples.compaction`` and ``retention``. An
hour's rounds become one file once the hour is over, a day's files once the day is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta

# A round may be written some time after it began.
SETTLED = timedelta(minutes=5)
# Of each file something is held while they are merged.
MOST_FILES = 64


def merges(day: date, files: Mapping[str, frozenset[str]], now: datetime) -> list[tuple[str, ...]]:
    """Groups of two files and more that are to become one each; none when the day is as it should be.

    ``files`` are those that count, each with its rounds. More files than can be merged at once take several passes.
    """
    ordered = sorted(files, key=lambda path: (min(files[path]), path))
    over = now >= _midnight(day) + timedelta(days=1) + SETTLED
    if over and len(ordered) <= MOST_FILES:
        return _parts(ordered)
    # A day of many rounds becomes a day of hours first: else most of its rows would be written several times.
    hours: dict[int, list[str]] = {}
    for path in ordered:
        if len(files[path]) == 1:
            hours.setdefault(int(min(files[path])[:2]), []).append(path)
    settled = [group for hour, group in hours.items() if now >= _midnight(day) + timedelta(hours=hour + 1) + SETTLED]
    groups = [part for group in settled for part in _parts(group)]
    return groups or (_parts(ordered) if over else [])


def expired(days: Collection[date], keep: int, today: date) -> list[date]:
    """The days to remove, so that the newest ``keep`` that have samples stay.

    Days with samples are counted, not those of the calendar: a clock that runs ahead for a moment must not take the
    history along. Days after tomorrow, which such a clock has left, are neither counted nor removed.
    """
    past = sorted(day for day in days if day <= today + timedelta(days=1))
    return past[: max(0, len(past) - keep)]


def astray(days: Collection[date], today: date) -> list[date]:
    """Days that are yet to come: a clock has jumped."""
    return sorted(day for day in days if day > today + timedelta(days=1))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _parts(group: list[str]) -> list[tuple[str, ...]]:
    parts = [tuple(group[start : start + MOST_FILES]) for start in range(0, len(group), MOST_FILES)]
    return [part for part in parts if len(part) > 1]
