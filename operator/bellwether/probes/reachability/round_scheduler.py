"""Schedule the probe rounds of all brokers on one thread: start them when due and collect their results.

In: watches. Out: calls of their ``begin`` and ``collect``. Called by ``reachability_probe``. Nothing here waits for a
broker: questions block on threads of ``worker_pool``.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from typing import Protocol

from bellwether.ports.clock import Clock
from bellwether.probes.worker_pool import WorkerPool

# How late an answer may be judged. Looking that often costs less than being woken by each answer.
TICK_SECONDS = 0.02
# How late a new broker is asked first.
IDLE_SECONDS = 0.2
# A tick this late means that the process has too much to do, or too little CPU.
_SLOW_SECONDS, _LATE_SECONDS = 0.02, 0.05


class ScheduledRound(Protocol):
    """What is done for one broker."""

    @property
    def stopped(self) -> bool:
        """Whether it is over."""
        ...

    @property
    def waiting(self) -> bool:
        """Whether answers are out."""
        ...

    def begin(self) -> float:
        """Begin what is due; returns when to come again, on the monotonic clock."""
        ...

    def collect(self) -> float | None:
        """Take what has been answered; returns when to begin again if that has changed."""
        ...


class Rounds:
    """One thread. Ends with ``stop``, and can be started again."""

    def __init__(self, questions: WorkerPool, clock: Clock) -> None:
        self._questions = questions
        self._clock = clock
        self._lock = threading.Lock()
        self._count = itertools.count()
        self._due: list[tuple[float, int, ScheduledRound]] = []
        self._current: dict[int, float] = {}
        self._late = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def late_seconds(self) -> float:
        """How long this process has been kept from its work since it began, added up."""
        return self._late

    def add(self, one: ScheduledRound, delay_seconds: float = 0.0) -> None:
        """Begin with one more, so many seconds from now."""
        with self._lock:
            due, number = self._clock.monotonic() + delay_seconds, next(self._count)
            self._current[number] = due
            heapq.heappush(self._due, (due, number, one))
            self._start()

    def stop(self, timeout_seconds: float) -> None:
        """End the thread; questions under way end by themselves."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_seconds)
        with self._lock:
            self._thread, self._due, self._current = None, [], {}
        self._questions.clear()

    def _start(self) -> None:
        """Under the lock: see to it that the thread runs."""
        if self._thread is None or not self._thread.is_alive():
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="rounds", daemon=True)
            self._thread.start()

    def _run(self, stop: threading.Event) -> None:
        waiting: dict[int, ScheduledRound] = {}
        before, worked, pause = self._clock.monotonic(), time.thread_time(), TICK_SECONDS
        while not stop.wait(pause):
            # Time beyond its own sleep and work was taken by other processes.
            now, work = self._clock.monotonic(), time.thread_time()
            late = now - before - pause - (work - worked)
            before, worked = now, work
            self._late += late if late > _LATE_SECONDS else 0.0
            self._questions.tend(slow=late > _SLOW_SECONDS)
            self.run_due(waiting)
            pause = self._pause(waiting)

    def _pause(self, waiting: dict[int, ScheduledRound]) -> float:
        """Seconds to sleep: a tick while answers are out, otherwise until a broker is due."""
        if waiting:
            return TICK_SECONDS
        with self._lock:
            left = self._due[0][0] - self._clock.monotonic() if self._due else IDLE_SECONDS
        return min(max(left, TICK_SECONDS), IDLE_SECONDS)

    def run_due(self, waiting: dict[int, ScheduledRound]) -> None:
        """Collect what has been answered to those in ``waiting``, begin what is due, and add it there."""
        for number, one in list(waiting.items()):
            again = one.collect()
            if again is not None:
                self._push(again, number, one)
            if not one.waiting:
                del waiting[number]
        for number, one in self._now_due():
            if one.stopped:
                waiting.pop(number, None)
            else:
                self._push(one.begin(), number, one)
                waiting[number] = one

    def _push(self, due: float, number: int, one: ScheduledRound) -> None:
        with self._lock:
            self._current[number] = due
            heapq.heappush(self._due, (due, number, one))

    def _now_due(self) -> list[tuple[int, ScheduledRound]]:
        now = self._clock.monotonic()
        found: list[tuple[int, ScheduledRound]] = []
        with self._lock:
            while self._due and self._due[0][0] <= now:
                due, number, one = heapq.heappop(self._due)
                if self._current.get(number) == due:  # else it was put off, or brought forward, meanwhile
                    del self._current[number]
                    found.append((number, one))
        return found
