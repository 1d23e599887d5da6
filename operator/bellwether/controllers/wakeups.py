"""Wait between two reconciles: until time passes, or until something has changed that the next one would judge.

Called by ``policy_controller``. A watch that repeats what is known does not end the wait; a signal that has become too
old does, without any event.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from bellwether.ports.clock import Clock


class Wakeups:
    """Wake-ups of one policy. ``inputs`` is what a reconcile would judge now, as a value to compare.

    ``poll_seconds`` is how often it is compared while no event comes; ``beat`` is called as often.
    """

    def __init__(
        self, clock: Clock, poll_seconds: float, inputs: Callable[[], object], beat: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._inputs = inputs
        self._beat = beat
        self._event = threading.Event()
        self._stop = threading.Event()
        self._wanted = threading.Event()
        self._judged: object = None
        self._seen: object = None

    def notify(self) -> None:
        """Something may have changed: compare at once."""
        self._event.set()

    def reconcile(self) -> None:
        """Reconcile whatever has changed: a status that this process wrote, or an object that belongs to the policy."""
        self._wanted.set()
        self._event.set()

    def stop(self) -> None:
        """End this wait and every later one."""
        self._stop.set()
        self._event.set()

    def stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._stop.is_set()

    def judged(self, inputs: object) -> None:
        """A reconcile has succeeded on these inputs."""
        self._judged = inputs

    def wait(self, seconds: float, body: Callable[[], dict[str, Any]]) -> bool:
        """Wait for a change or for the time to pass; True when stopped. ``body`` is the policy's object as it is."""
        until = self._clock.monotonic() + seconds
        while not self._stop.is_set():
            self._beat()
            left = until - self._clock.monotonic()
            if left <= 0:
                break
            if self._event.wait(min(left, self._poll_seconds)):
                self._event.clear()
                if self.changed(body()) or self._wanted.is_set():
                    self._wanted.clear()
                    break
            elif self._judged is not None and self._judged != self._inputs():
                break  # a signal has become stale
        return self._stop.is_set()

    def changed(self, body: dict[str, Any]) -> bool:
        """Whether the policy, or what is judged, is other than at the last call and the last reconcile."""
        metadata = body["metadata"]
        seen = (metadata.get("generation"), metadata.get("deletionTimestamp"), str(metadata.get("annotations")))
        changed, self._seen = seen != self._seen, seen
        return changed or self._judged is None or self._judged != self._inputs()
