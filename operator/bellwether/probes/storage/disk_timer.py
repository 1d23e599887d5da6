"""Time one disk operation after another, on a thread of its own that may hang with the disk.

In: the operation, which times itself. Out: samples as they end, and for how long the present operation has not ended.
The asking thread never touches the disk. Called by ``read_probe``.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from bellwether.ports.clock import Clock
from bellwether.probes.storage.stall_detector import StallDetector
from bellwether.probes.storage.write_latency import Sample


class DiskTimer:
    """``operate`` is called once in each period; a call that takes longer delays the next one."""

    def __init__(self, name: str, operate: Callable[[], Sample], period_seconds: float, clock: Clock) -> None:
        self._operate = operate
        self._period = period_seconds
        self._clock = clock
        self._samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
        self._stalls = StallDetector(clock)
        self._began: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._stalls.start()
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Stop the thread; one that hangs with its disk is left behind."""
        self._stop.set()
        self._stalls.stop()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def alive(self) -> bool:
        """Whether the thread runs, which it does while it hangs."""
        return self._thread.is_alive()

    def ended(self, timeout_seconds: float) -> Sample | None:
        """The next operation that has ended; None if none ends in time."""
        try:
            return self._samples.get(timeout=timeout_seconds)
        except queue.Empty:
            return None

    def hanging_seconds(self) -> float:
        """Seconds since the present operation began, without those in which this process did not run; 0 between two."""
        began = self._began
        if began is None:
            return 0.0
        now = self._clock.monotonic()
        waited = now - began - self._stalls.lost(now)
        return waited if self._began == began else 0.0

    def _run(self) -> None:
        due = self._clock.monotonic()
        while not self._stop.is_set():
            self._began = self._stalls.begin()
            sample = self._operate()
            lost = self._stalls.lost(self._clock.monotonic())
            self._began = None
            self._stalls.end()
            self._samples.put(replace(sample, away=min(lost, sample.seconds)))
            due = max(due + self._period, self._clock.monotonic())
            self._stop.wait(due - self._clock.monotonic())
