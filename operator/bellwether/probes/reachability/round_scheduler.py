"""Schedule the probe rounds of all brokers on one thread: start them when due and collect their results.

In: watches. Out: calls of their ``begin`` and ``collect``. Called by ``reachability_probe``. Nothing here waits for a
broker: questions block on threads of a ``WorkerPool``.

A question that has just begun holds one of a few lanes, so that many brokers together cannot starve each other of this
process's time; one that has waited for longer costs nothing but its thread, and gives its lane back: a broker that does
not answer delays no other request.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from bellwether.ports.clock import Clock

T = TypeVar("T")

LANES = 48
# A question that is not answered within this time is waiting, not working; unless the whole process is slow.
WORKING_SECONDS = 0.02
_WORKING_WHEN_SLOW_SECONDS = 0.5
_IDLE_SECONDS = 10.0
MOST_THREADS, LEAST_THREADS = 4096, 16
"""Threads of all pools of a process, some 20 KB each while it waits; beyond them a pool still has the least, or its
equal share if that is more, and its further requests are queued."""


class WorkItem(Generic[T]):
    """One call and what became of it. ``began`` is ``None`` until a thread has taken it up."""

    __slots__ = ("_call", "began", "done", "error", "holds_lane", "result")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self.began: float | None = None
        self.done = False
        self.result: T | None = None
        self.error: Exception | None = None
        self.holds_lane = False

    def run(self) -> None:
        """Call, and keep what it returns or raises."""
        try:
            self.result = self._call()
        except Exception as error:
            self.error = error  # the caller decides what it means
        self.done = True


class ThreadShares:
    """Threads of all pools of a process: one whose brokers do not answer takes none from the others."""

    def __init__(self, most: int = MOST_THREADS, least: int = LEAST_THREADS) -> None:
        self._most, self._least = most, least
        self._lock = threading.Lock()
        self._total = self._pools = 0

    def take(self, has: int) -> bool:
        """Whether a pool that has so many threads may begin one more, which is then counted."""
        with self._lock:
            if self._total >= self._most and has >= self._share():
                return False
            self._total += 1
            self._pools += has == 0
            return True

    def give(self, had: int) -> None:
        """A thread of a pool that had so many has ended."""
        with self._lock:
            self._total -= 1
            self._pools -= had == 1

    def exceeded(self, has: int) -> bool:
        """Whether others may need a thread of a pool that has so many."""
        with self._lock:
            return self._total >= self._most and has > self._share()

    def _share(self) -> int:
        return max(self._least, self._most // max(1, self._pools))


_OF_PROCESS = ThreadShares()


class WorkerPool:
    """Threads that are made when they are needed and end when they are not."""

    def __init__(
        self,
        clock: Clock,
        *,
        lanes: int = LANES,
        working_seconds: float = WORKING_SECONDS,
        shares: ThreadShares = _OF_PROCESS,
    ) -> None:
        self._shares = shares
        self._clock = clock
        self._lanes = lanes
        self._working_seconds = working_seconds
        self._changed = threading.Condition()
        self._waiting: deque[WorkItem[object]] = deque()
        self._working: deque[WorkItem[object]] = deque()
        self._held = 0
        self._idle = 0
        self._threads = 0

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return self._threads

    def put(self, question: WorkItem[T]) -> None:
        """Queue a request."""
        with self._changed:
            self._waiting.append(question)  # type: ignore[arg-type]
            self._hand_out()

    def tend(self, *, slow: bool = False) -> None:
        """Take the lanes back of those that only wait; to be called every now and then.

        ``slow``: this process is behind, so requests that seem to wait may be running.
        """
        overdue = self._clock.monotonic() - (_WORKING_WHEN_SLOW_SECONDS if slow else self._working_seconds)
        with self._changed:
            while self._working and (not self._working[0].holds_lane or (self._working[0].began or 0.0) < overdue):
                self._release(self._working.popleft())
            self._hand_out()

    def clear(self) -> None:
        """Drop requests that are not started yet."""
        with self._changed:
            self._waiting.clear()

    def _hand_out(self) -> None:
        """Under the lock: see to it that there is a thread for each question that has a lane."""
        wanted = min(len(self._waiting), self._lanes - self._held)
        if wanted <= 0:
            return
        if self._idle:
            self._changed.notify(wanted)
        for _ in range(wanted - self._idle):
            if not self._shares.take(self._threads):
                break
            self._threads += 1
            threading.Thread(target=self._work, name="question", daemon=True).start()

    def _release(self, question: WorkItem[object]) -> None:
        if question.holds_lane:
            question.holds_lane = False
            self._held -= 1

    def _work(self) -> None:
        while (question := self._next()) is not None:
            question.run()
            with self._changed:
                self._release(question)

    def _next(self) -> WorkItem[object] | None:
        with self._changed:
            if (self._idle >= self._lanes and not self._may_begin()) or self._shares.exceeded(self._threads):
                self._end()  # left over from a time when many waited, or when fewer others did
                return None
            self._idle += 1
            try:
                if not self._changed.wait_for(self._may_begin, _IDLE_SECONDS):
                    self._end()
                    return None
            finally:
                self._idle -= 1
            question = self._waiting.popleft()
            question.began = self._clock.monotonic()
            question.holds_lane = True
            self._held += 1
            self._working.append(question)
            return question

    def _end(self) -> None:
        self._shares.give(self._threads)
        self._threads -= 1

    def _may_begin(self) -> bool:
        return bool(self._waiting) and self._held < self._lanes


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

    @property
    def waiting(self) -> bool:
        """Whether answers are out."""

    def begin(self) -> float:
        """Begin what is due; returns when to come again, on the monotonic clock."""

    def collect(self) -> float | None:
        """Take what has been answered; returns when to begin again if that has changed."""


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
