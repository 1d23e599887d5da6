"""Port to the clocks: wall-clock time, monotonic time and waiting.

Implemented by ``adapters.clocks``; tests set a clock of their own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """Wall-clock time, UTC, with time zone."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...
