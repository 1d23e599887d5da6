"""Base of the probes that measure on a thread of their own, with start, stop and liveness."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from bellwether.ports.clock import Clock


class MeasuringThread(ABC):
    """A thread that measures until it is stopped, and sets ``_beat`` in every round."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._clock = clock
        self._beat = clock.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start measuring."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Stop measuring; a call that hangs is left behind. Entries stay, and are stale once the Lease is."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def alive(self) -> bool:
        """Whether the thread is at work; a prober that measures nothing must not look fresh."""
        return self._thread.is_alive() and self._clock.monotonic() - self._beat < self._longest_round()

    def _longest_round(self) -> float:
        """Seconds that a round may take."""
        return 5.0

    @abstractmethod
    def _run(self) -> None:
        """Measure until ``_stop`` is set."""
