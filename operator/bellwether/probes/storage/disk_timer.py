"""Time one disk operation after another, on a thread of its own that may hang with the disk.

In: the operation, which times itself. Out: samples as they end, and for how long the present operation has not ended.
The asking thread never touches the disk. Called by ``write_probe`` and ``read_probe``.

A ``StallDetector`` says how long this process itself did not run meanwhile: starved by its CPU limit, frozen, or
suspended with its machine. A thread that does nothing but wake up again and again notices how late it wakes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bellwether.ports.clock import Clock
from bellwether.probes.storage.write_latency import Sample

TICK_SECONDS = 0.005
LONGEST_TICK_SECONDS = 0.1
LATE_SECONDS = 0.015
"""A thread of a healthy process may wake so late; later, and the process was not running."""
_SETTLE_SECONDS = 0.25
_TICKS_PER_SPAN = 10


@dataclass(slots=True)
class Absences:
    """When this process was away since ``began``: pure, fed with the times at which it found itself awake."""

    began: float
    awake: float = field(init=False)
    away: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.awake = self.began

    @property
    def tick(self) -> float:
        """How long to sleep now: the longer it lasts already, the less often it is worth while to look."""
        return min(LONGEST_TICK_SECONDS, max(TICK_SECONDS, (self.awake - self.began) / _TICKS_PER_SPAN))

    def woke(self, now: float) -> None:
        """Awake again after having slept for a ``tick``."""
        expected = self.awake + self.tick
        if now - expected > LATE_SECONDS:
            self.away.append((expected, now))
        self.awake = max(now, self.awake)

    def within(self, start: float, end: float) -> float:
        """The seconds of a stretch that it was away."""
        return sum(max(0.0, min(end, stop) - max(start, since)) for since, stop in self.away)


class StallDetector:
    """Watches this process while something is being timed; safe to ask from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._absences: Absences | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="pauses", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Work no more."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def begin(self) -> float:
        """Something is being timed from now on; the time that it began."""
        with self._changed:
            began = self._clock.monotonic()
            self._absences = Absences(began)
            self._changed.notify_all()
            return began

    def end(self) -> None:
        """Nothing is being timed any more."""
        with self._changed:
            self._absences = None

    def lost(self, end: float) -> float:
        """The seconds until ``end`` that this process was away, of what is being timed; 0 when nothing is."""
        with self._changed:
            found = self._absences
            if found is None or end - found.began <= TICK_SECONDS + LATE_SECONDS:
                return 0.0
            # Both threads were stopped together: the other one may not have run yet.
            self._changed.wait_for(lambda: found.awake >= end or found is not self._absences, _SETTLE_SECONDS)
            return found.within(found.began, end)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._absences is not None)
                if self._stopping:
                    return
                found = self._absences
            if found is None:
                continue
            self._clock.sleep(found.tick)
            with self._changed:
                found.woke(self._clock.monotonic())
                self._changed.notify_all()


class DiskTimer:
    """``operate`` is called again and again, ``at_end`` once. ``pause`` gives the seconds from one call's beginning to
    the next one's, by what it found; a call that takes longer delays the next one.
    """

    def __init__(
        self,
        name: str,
        operate: Callable[[], Sample],
        pause: Callable[[Sample], float],
        clock: Clock,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._operate = operate
        self._pause = pause
        self._at_end = at_end
        self._clock = clock
        self._samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
        self._stalls = StallDetector(clock)
        self.began: float | None = None
        """When the present operation began; None between two."""
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
        began = self.began
        if began is None:
            return 0.0
        now = self._clock.monotonic()
        waited = now - began - self._stalls.lost(now)
        return waited if self.began == began else 0.0

    def _run(self) -> None:
        due = self._clock.monotonic()
        while not self._stop.is_set():
            self.began = self._stalls.begin()
            sample = self._operate()
            lost = self._stalls.lost(self._clock.monotonic())
            self.began = None
            self._stalls.end()
            self._samples.put(replace(sample, away=min(lost, sample.seconds)))
            due = max(due + self._pause(sample), self._clock.monotonic())
            self._stop.wait(due - self._clock.monotonic())
        self._at_end()
