"""Worker pool for blocking requests to brokers: few start at once, and one that waits does not delay the others.

In: callables. Out: their results, by ``Question``. Called by ``broker_watch``. A question that has just begun holds one
of a few lanes, so that many brokers together cannot starve each other of this process's time; one that has waited for
longer costs nothing but its thread, and gives its lane back: a broker that does not answer delays no other request.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from bellwether.ports.clock import Clock

T = TypeVar("T")

LANES = 48
# A question that is not answered within this time is waiting, not working; unless the whole process is slow.
WORKING_SECONDS = 0.02
_SLOW_SECONDS = 0.5
_IDLE_SECONDS = 10.0
# Beyond this many threads, requests are queued.
_MOST_THREADS = 8192


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


class WorkerPool:
    """Threads that are made when they are needed and end when they are not."""

    def __init__(self, clock: Clock, *, lanes: int = LANES, working_seconds: float = WORKING_SECONDS) -> None:
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
        overdue = self._clock.monotonic() - (_SLOW_SECONDS if slow else self._working_seconds)
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
        for _ in range(min(wanted - self._idle, _MOST_THREADS - self._threads)):
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
            if self._idle >= self._lanes and not self._may_begin():
                self._threads -= 1  # left over from a time when many waited
                return None
            self._idle += 1
            try:
                if not self._changed.wait_for(self._may_begin, _IDLE_SECONDS):
                    self._threads -= 1
                    return None
            finally:
                self._idle -= 1
            question = self._waiting.popleft()
            question.began = self._clock.monotonic()
            question.holds_lane = True
            self._held += 1
            self._working.append(question)
            return question

    def _may_begin(self) -> bool:
        return bool(self._waiting) and self._held < self._lanes
