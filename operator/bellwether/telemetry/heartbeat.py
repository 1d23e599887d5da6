"""Heartbeat of a thread, and what its absence means.

In: a beat for each pass of a loop and each completed request. Out: seconds since the last beat. A caller that waits
for Kafka or the Kubernetes API waits for a bounded time and beats between two requests, so that slow is not stuck.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

STUCK_SECONDS = 120.0
"""How long a thread may show no sign of life; a single request, or a computation between two, is far shorter."""


class Heartbeat:
    """The last sign of life of one thread, in seconds of a monotonic clock. Safe to read from any other thread.

    Of one that has not ``begun`` nothing is expected before its first beat.
    """

    def __init__(self, what: str, monotonic: Callable[[], float] = time.monotonic, *, begun: bool = True) -> None:
        self.what = what
        self._monotonic = monotonic
        self._last = monotonic() if begun else math.inf

    def beat(self) -> None:
        """Still there."""
        self._last = self._monotonic()

    def rest(self) -> None:
        """Nothing is expected before the next beat."""
        self._last = math.inf

    def unhealthy_reason(self, bound_seconds: float = STUCK_SECONDS) -> str | None:
        """In words, that nothing was heard for longer than the bound; None while all is well."""
        silent = self._monotonic() - self._last
        if silent <= bound_seconds:
            return None
        return f"{self.what} has been stuck for {silent:.0f} s (bound: {bound_seconds:g} s)"

    def wait(self, event: threading.Event, seconds: float, most_seconds: float = 5.0) -> bool:
        """Wait for an event as ``Event.wait`` does, with signs of life."""
        end = self._monotonic() + seconds
        while True:
            self.beat()
            left = end - self._monotonic()
            if left <= 0 or event.wait(min(left, most_seconds)):
                return event.is_set()


class WithHeartbeat:
    """Any object; each call of a method of it is a sign of life, before and after."""

    def __init__(self, inner: object, beat: Callable[[], None]) -> None:
        self._inner = inner
        self._beat = beat

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def attended(*arguments: Any, **named: Any) -> Any:
            self._beat()
            try:
                return found(*arguments, **named)
            finally:
                self._beat()

        return attended
