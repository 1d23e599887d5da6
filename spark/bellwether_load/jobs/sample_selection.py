"""Select the sample files that a job reads: by day, by footer, and of one Kafka cluster.

In: a store and a period. Out: the files, and a message for each requested file or day that is missing. Only the footers
of files are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from bellwether.ports.errors import Terminal
from bellwether_load.jobs.sample_reader import Source, Window
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import compaction_plan, filenames
from bellwether_load.store.samples import compaction_rules as coverage
from bellwether_load.store.samples.sample_files import days as days_with_samples
from bellwether_load.store.samples.sample_files import readable

_FUTURE = "is in the future, so a clock was wrong: move it out of the store"
# A week contains every hour of every weekday once.
USUAL_DAYS = 7


@dataclass(frozen=True, slots=True)
class Period:
    """Requested period. A moment without a time of day: the whole day, the last one included.

    ``count``: so many days from ``start``, or up to ``end``, or up to the newest day that has samples and
    is not in the future.
    """

    start: date | datetime | None = None
    end: date | datetime | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise Terminal(f"--days must be at least 1, and is {self.count}")
        if None not in (self.start, self.end, self.count):
            raise Terminal("--from, --to and --days cannot be used together: omit one of them")
        if self.start is not None and self.end is not None and _first(self.start) >= _last(self.end):
            raise Terminal(f"--from {self.start} is not before --to {self.end}")


@dataclass(frozen=True, slots=True)
class Choice:
    """Files to read, oldest first; missing days; skipped files with the reason."""

    sources: tuple[Source, ...]
    window: Window
    cluster_id: str
    days: tuple[date, ...]
    missing: tuple[date, ...]
    skipped: tuple[str, ...]

    def span(self) -> tuple[int, int] | None:
        """The first and the last round of the files inside the window, in seconds since 1970; None without any."""
        spans = [filenames.span(source.path) for source in self.sources]
        if not spans:
            return None
        first, last = (int(at.timestamp()) for at in (min(a for a, _ in spans), max(b for _, b in spans)))
        return max(first, self.window.start or first), min(last, self.window.end or last)


def moment(text: str) -> date | datetime:
    """A day (2026-11-21) or a moment (2026-11-21T12:00:00, UTC where it names no zone). Raises ValueError."""
    if len(text) == len("2026-11-21"):
        return date.fromisoformat(text)
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def choose(store: Store, period: Period, today: date, cluster_id: str | None = None) -> Choice:
    """Select the files of a period. Raises StoreError; Terminal if they are of several clusters and none is given.

    Days after tomorrow count for nothing: a clock was wrong.
    """
    found_days = days_with_samples(store)
    future = compaction_plan.astray(found_days, today)
    there = tuple(day for day in found_days if day not in future)
    window = Window(*_bounds(period, there))
    wanted = _days(window, there, clip=period.start is None and period.count is None)
    sources: list[Source] = []
    skipped = [f"{store.where(filenames.folder(day))}: {_FUTURE}" for day in future]
    missing: list[date] = []
    clusters: dict[str, str] = {}
    for day in wanted:
        found = _of_day(store, day, skipped.append, cluster_id) if day in there else {}
        for path, (source, cluster) in found.items():
            sources.append(source)
            clusters.setdefault(cluster, path)
        if not found:
            missing.append(day)
    if len(clusters) > 1:
        named = ", ".join(f"{cluster} ({path})" for cluster, path in sorted(clusters.items()))
        raise Terminal(f"{store}: has samples of several Kafka clusters: {named}. Select one with --cluster")
    return Choice(tuple(sources), window, next(iter(clusters), ""), wanted, tuple(missing), tuple(skipped))


def _of_day(
    store: Store, day: date, said: Callable[[str], None], cluster_id: str | None
) -> dict[str, tuple[Source, str]]:
    files = readable(store, day, lambda _path, why: said(why), cluster_id=cluster_id)
    return {
        path: (Source(path, files[path].rows, filenames.is_compacted(path)), files[path].cluster_id)
        for path in coverage.current({path: file.rounds for path, file in files.items()})
    }


def _bounds(period: Period, there: tuple[date, ...]) -> tuple[int | None, int | None]:
    """Start and end (exclusive) in seconds since 1970; None if neither the options nor the files give one."""
    start = None if period.start is None else _first(period.start)
    end = None if period.end is None else _last(period.end)
    count = timedelta(days=period.count or USUAL_DAYS)
    if end is None and start is not None and period.count is not None:
        end = start + count
    if end is None and there:
        end = _last(there[-1])
    if start is None and end is not None:
        start = end - count
    return tuple(None if at is None else int(at.timestamp()) for at in (start, end))  # type: ignore[return-value]


def _days(window: Window, there: tuple[date, ...], *, clip: bool) -> tuple[date, ...]:
    """Days of a window; with ``clip`` without those before the first day that has samples."""
    if window.start is None or window.end is None or window.end <= window.start:
        return ()
    first = datetime.fromtimestamp(window.start, UTC).date()
    last = datetime.fromtimestamp(window.end - 1, UTC).date()
    if clip and there:
        first = max(first, there[0])
    return tuple(first + timedelta(days=n) for n in range((last - first).days + 1))


def _first(asked: date | datetime) -> datetime:
    return asked if isinstance(asked, datetime) else datetime.combine(asked, time(), UTC)


def _last(asked: date | datetime) -> datetime:
    return asked if isinstance(asked, datetime) else datetime.combine(asked + timedelta(days=1), time(), UTC)
