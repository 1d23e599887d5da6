"""Clock of a reconcile: wall-clock time without the steps that the machine's wall clock makes while the process runs.

In: the clock, its reading in the last reconcile, and whether a timer ran since. Out: a clock whose ``now`` goes on as
monotonic time does while a timer runs, so that none ends early or late; otherwise it returns slowly to the wall clock,
so that written times are right again. Only what a person wrote down, the end of an override, is compared with ``wall``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bellwether.ports.clock import Clock

LEAST_STEP = timedelta(seconds=1)
"""A smaller difference is followed: the wall clock is slewed, and steps are larger."""

LONGEST_STEP = timedelta(days=1)
"""A time in the record that is further ahead is not believed."""

SLEW = 0.1
"""Share of the time by which this clock is fast or slow while it returns to the wall clock: an hour takes ten."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Both clocks at one moment, and by how much the steps of the wall clock differ from it so far."""

    wall: datetime
    monotonic: float
    taken_out: timedelta = timedelta(0)


class SteadyClock:
    """``ports.clock.Clock`` without steps, since the ``last`` reading of this process.

    The first reading is not before ``past``, the last moment that another process has recorded. ``slews``: it may
    return to the wall clock.
    """

    def __init__(
        self, clock: Clock, last: ClockReading | None, past: datetime | None = None, *, slews: bool = False
    ) -> None:
        self._clock = clock
        wall, monotonic = clock.now(), clock.monotonic()
        taken_out = timedelta(0)
        if last is not None:
            passed = timedelta(seconds=monotonic - last.monotonic)
            step, most = wall - last.wall - passed, passed * SLEW * slews
            taken_out = last.taken_out - max(-most, min(last.taken_out, most))
            taken_out -= step if abs(step) > LEAST_STEP else timedelta(0)
        elif past is not None and LEAST_STEP < past - wall < LONGEST_STEP:
            taken_out = past - wall
        self.reading = ClockReading(wall, monotonic, taken_out)

    def now(self) -> datetime:
        """Wall-clock time without its steps, UTC."""
        return self._clock.now() + self.reading.taken_out

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        self._clock.sleep(seconds)
