"""The machine's clocks, the one place that reads them. Composition roots use it; tests pass a clock of their own."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """``ports.clock.Clock`` on this machine.

    The monotonic reading counts the time that the machine slept, where the system reports it (``CLOCK_BOOTTIME``): a
    process that was suspended past its Lease must see that its Lease is over.
    """

    def now(self) -> datetime:
        """Wall-clock time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed point, never going back."""
        boottime = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boottime is None else time.clock_gettime(boottime)

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        time.sleep(seconds)
