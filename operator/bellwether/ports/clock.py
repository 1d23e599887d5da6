"""Port to the clocks: wall-clock time, monotonic time and waiting; jitter of waits.

Implemented by ``adapters.clocks``; tests set a clock of their own.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Protocol

SHARE = 0.25
"""A wait with jitter is longer or shorter by up to this share of it."""


def jittered(seconds: float) -> float:
    """About that many seconds: retries of many clients that failed together are spread."""
    return seconds * random.uniform(1 - SHARE, 1 + SHARE)  # noqa: S311 - guards no secret


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """Wall-clock time, UTC, with time zone."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
