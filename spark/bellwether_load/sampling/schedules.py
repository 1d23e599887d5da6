"""When rounds begin: at whole multiples of the period, by the wall clock, so that restarts and replicas fall in step.

In: the wall clock's time, again and again. Out: begin now, or wait so long. A round that would begin late is left out
and counted, so no two rounds have the same time. Called by ``sampler``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# A clock that was set back by so little is waited for: times in samples go on from where they were.
PATIENCE = timedelta(minutes=5)
# How often the clock is looked at, which may be set at any time.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """What to do now: begin a round (``begin`` is its time, in whole seconds), or wait ``wait`` seconds.

    ``missed`` rounds were skipped. ``set_back``: by how many seconds the clock went back, if that is not
    waited for.
    """

    begin: datetime | None = None
    wait: float = 0.0
    missed: int = 0
    set_back: float = 0.0


class Schedule:
    """The rounds of one process; ``period_seconds`` is at least 1."""

    def __init__(self, period_seconds: int) -> None:
        self._period = timedelta(seconds=period_seconds)
        # A wake-up later than this no longer measures the time of its round.
        self._tolerated = max(timedelta(seconds=1), self._period / 20)
        self._due: datetime | None = None

    def next_step(self, now: datetime) -> ScheduleStep:
        """What to do at this time (UTC)."""
        if self._due is None:
            self._due = self._next(now - timedelta(microseconds=1))
        set_back = self._due - self._period - now
        if set_back > PATIENCE:
            self._due = self._next(now)
            return ScheduleStep(set_back=set_back.total_seconds())
        if now < self._due:
            return ScheduleStep(wait=min(_LOOK_SECONDS, (self._due - now).total_seconds()))
        late = now - self._due
        if late > self._tolerated:
            self._due = self._next(now)
            return ScheduleStep(missed=1 + late // self._period)
        self._due = self._next(now)
        return ScheduleStep(begin=now.replace(microsecond=0))

    def _next(self, now: datetime) -> datetime:
        """The first multiple of the period after a time."""
        since = now - datetime.fromtimestamp(0, UTC)
        return datetime.fromtimestamp(0, UTC) + (since // self._period + 1) * self._period
