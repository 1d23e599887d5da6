"""Count probe results against thresholds by consecutive results; texts and comparisons that several probes share.

In: one result after another, with its time. Out: a reading (``Passing``, ``Failing``, or ``Unknown`` while too little
has been seen) and since when. Pure values; thresholds are arguments: a changed policy counts from the next result on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from bellwether.core.detection.harm import PROBES_LOST, HarmCounter, lost_words
from bellwether.core.signals import Reading, Signal


class Thresholds(Protocol):
    """Settings of a signal type that is counted by consecutive results."""

    @property
    def failure_threshold(self) -> int:
        """Failures in a row that make it ``Failing``."""

    @property
    def success_threshold(self) -> int:
        """Successes in a row that make it ``Passing``."""


@dataclass(frozen=True, slots=True)
class Streak:
    """Consecutive counting, as Kubernetes counts its own probes; ``since`` is when the reading became what it is."""

    reading: Reading = Reading.UNKNOWN
    since: datetime | None = None
    successes: int = 0
    failures: int = 0

    def seen(self, ok: bool, now: datetime, thresholds: Thresholds) -> Streak:
        """The streak after one more result."""
        counted = replace(self, successes=self.successes + 1 if ok else 0, failures=0 if ok else self.failures + 1)
        if counted.failures >= max(1, thresholds.failure_threshold):
            return counted.turned(Reading.FAILING, now)
        if counted.successes >= max(1, thresholds.success_threshold):
            return counted.turned(Reading.PASSING, now)
        return counted

    def turned(self, reading: Reading, now: datetime) -> Streak:
        """The same counts under a reading; the time of a reading that was there before stays."""
        return self if reading is self.reading else replace(self, reading=reading, since=now)

    def lost(self, now: datetime) -> Streak:
        """Nothing is known any more; a streak that was unknown already has been so since then."""
        unknown = self.reading is Reading.UNKNOWN and self.since is not None
        return Streak(Reading.UNKNOWN, self.since if unknown else now)


def signal_of(counted: Streak, broker: int, type_: str, source: str, **evidence: Any) -> Signal | None:
    """The signal to report, with further fields of it; ``None`` while nothing has been judged."""
    if counted.since is None:
        return None
    return Signal(broker, type_, source, counted.reading, counted.since, **evidence)


def apart(now: float, before: float, floor: float, ratio: float) -> bool:
    """Whether two figures are more than ``ratio`` apart; figures below ``floor`` count as equal to it."""
    found = max(now, floor) / max(before, floor)
    return found > ratio or found < 1 / ratio


def times(count: int) -> str:
    """How often, for the end of a sentence; empty for once."""
    return f" {count} times" if count > 1 else ""


def lost_text(counter: HarmCounter) -> str:
    """What probes lost in this episode, for the beginning of a sentence about a failing source.

    Without its duration where that is shorter than the loss: the prober's clock was set back meanwhile.
    """
    began, lasted = counter.since or counter.reading_since, counter.counted_until
    if began is None or lasted is None:
        return f"{PROBES_LOST} nothing yet"
    seconds, lost = (
        (lasted - began).total_seconds(),
        f"{PROBES_LOST} {lost_words(counter.lost_seconds, counter.earlier_seconds)}",
    )
    return f"{lost} of the last {seconds:.0f} s" if seconds >= counter.lost_seconds else lost
