"""Count probe results against thresholds: consecutive results, and k bad ones of the last n.

In: one result after another, with its time. Out: a reading (``Passing``, ``Failing``, or ``Unknown`` while too little
has been seen) and since when. Pure values; thresholds are arguments: a changed policy counts from the next result on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from bellwether.core.signals import Reading


@dataclass(frozen=True, slots=True)
class Streak:
    """Consecutive counting, as Kubernetes counts its own probes; ``since`` is when the reading became what it is."""

    reading: Reading = Reading.UNKNOWN
    since: datetime | None = None
    successes: int = 0
    failures: int = 0

    def seen(self, ok: bool, now: datetime, *, failure_threshold: int, success_threshold: int) -> Streak:
        """The streak after one more result."""
        counted = replace(self, successes=self.successes + 1 if ok else 0, failures=0 if ok else self.failures + 1)
        if counted.failures >= max(1, failure_threshold):
            return counted.turned(Reading.FAILING, now)
        if counted.successes >= max(1, success_threshold):
            return counted.turned(Reading.PASSING, now)
        return counted

    def turned(self, reading: Reading, now: datetime) -> Streak:
        """The same counts under a reading; the time of a reading that was there before stays."""
        return self if reading is self.reading else replace(self, reading=reading, since=now)

    def lost(self, now: datetime) -> Streak:
        """Nothing is known any more; a streak that was unknown already has been so since then."""
        unknown = self.reading is Reading.UNKNOWN and self.since is not None
        return Streak(Reading.UNKNOWN, self.since if unknown else now)


@dataclass(frozen=True, slots=True)
class Window:
    """k bad results of the last n make ``Failing``; so many good ones in a row make ``Passing``.

    Turning to ``Passing`` forgets the bad results before it: only new ones make it ``Failing`` again.
    """

    reading: Reading = Reading.UNKNOWN
    since: datetime | None = None
    bad: tuple[bool, ...] = ()
    successes: int = 0

    def seen(self, ok: bool, now: datetime, *, samples: int, failure_threshold: int, success_threshold: int) -> Window:
        """The window after one more result. A ``failure_threshold`` above ``samples`` means all of them."""
        samples = max(1, samples)
        counted = replace(self, bad=(*self.bad, not ok)[-samples:], successes=self.successes + 1 if ok else 0)
        if not ok and sum(counted.bad) >= min(samples, max(1, failure_threshold)):
            return counted.failed(now)
        if counted.successes >= max(1, success_threshold):
            return counted._passed(now)
        return counted

    def failed(self, now: datetime) -> Window:
        """Failing at once, whatever was counted (a write that never ends is no matter of counting)."""
        if self.reading is Reading.FAILING:
            return self
        return replace(self, reading=Reading.FAILING, since=now)

    def _passed(self, now: datetime) -> Window:
        if self.reading is Reading.PASSING:
            return self
        return replace(self, reading=Reading.PASSING, since=now, bad=())
