"""Names of sample files: what a file is, and of when, shows in its path.

    samples/date=2026-11-21/120100-1a2b3c4d.parquet                   one round, begun at 12:01:00 UTC
    samples/date=2026-11-21/compacted-1200-1259-5e6f7a8b.parquet      many rounds in one file

A round's id is its name without the ending. Called by everything that reads or writes samples.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime, time

FOLDER = "samples"
ENDING = ".parquet"

_DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)")
_ROUND = re.compile(r"([01]\d|2[0-3])[0-5]\d[0-5]\d-[0-9a-f]{8}")
_COMPACTED = re.compile(r"compacted-(?:[01]\d|2[0-3])[0-5]\d-(?:[01]\d|2[0-3])[0-5]\d-[0-9a-f]{8}")


def folder(day: date) -> str:
    """Where the samples of a day (UTC) are."""
    return f"{FOLDER}/date={day.isoformat()}"


def day_of(path: str) -> date | None:
    """The day whose folder a path is, or lies in; None for a path that is of no day."""
    head, _, rest = path.partition("/")
    found = _DATE.fullmatch(rest.partition("/")[0]) if head == FOLDER else None
    if found is None:
        return None
    try:
        return date.fromisoformat(found[1])
    except ValueError:
        return None


def round_path(at: datetime, tag: str) -> str:
    """The file of a round that began at ``at``; ``tag`` is eight unique hexadecimal digits."""
    utc = at.astimezone(UTC)
    return f"{folder(utc.date())}/{utc:%H%M%S}-{tag}{ENDING}"


def compacted_path(day: date, rounds: Collection[str], tag: str) -> str:
    """The file that takes the place of these rounds."""
    first, last = min(rounds)[:4], max(rounds)[:4]
    return f"{folder(day)}/compacted-{first}-{last}-{tag}{ENDING}"


def name_of(path: str) -> str:
    """A file's name without its ending: for a round, its id."""
    return path.rsplit("/", 1)[-1].removesuffix(ENDING)


def is_round(path: str) -> bool:
    """Whether this is one round's file."""
    return path.endswith(ENDING) and day_of(path) is not None and _ROUND.fullmatch(name_of(path)) is not None


def is_compacted(path: str) -> bool:
    """Whether this is the file of many rounds."""
    return path.endswith(ENDING) and day_of(path) is not None and _COMPACTED.fullmatch(name_of(path)) is not None


def span(path: str) -> tuple[datetime, datetime]:
    """When the first and the last round of a file began; of a file of many rounds to the minute."""
    day, name = day_of(path) or date.min, name_of(path)
    times = name.split("-")[1:3] if is_compacted(path) else [name[:6]] * 2
    first, last = (time(int(t[:2]), int(t[2:4]), int(t[4:6] or 0)) for t in times)
    return datetime.combine(day, first, UTC), datetime.combine(day, last, UTC)


def is_round_id(name: str) -> bool:
    """Whether this can be a round's id."""
    return _ROUND.fullmatch(name) is not None


def days(paths: Iterable[str]) -> tuple[date, ...]:
    """The days that have a file, in order."""
    return tuple(sorted({day for path in paths if (day := day_of(path)) is not None}))
