"""Find brokers that answer one vantage far more slowly than their peers do: their path has too little bandwidth.

In: how long good answers of each broker took, outside and inside. Out: which brokers are slow, and so are asked with a
request of a client's size. Called by ``broker_watch``. A small request still gets through where the batches of clients
wait.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass, field

SLOW_RATIO = 10.0
"""A broker whose answers take so many times as long as its peers' median, and as its own internal listener, is slow.

Distance changes a latency by a few times between brokers of one cluster, a queue by a hundred times.
"""

LEAST_SLOW_SECONDS = 0.1
"""An answer that is not later than its peers' by so much is not called slow, whatever the ratio."""

SLOW_IN_A_ROW = 3
"""A single late answer is a lost packet, or this process."""

CLIENT_BYTES = 16384
"""Bytes of a request of a client's size: ``batch.size`` of a producer, by default."""


@dataclass(frozen=True, slots=True)
class _Last:
    seconds: float
    slow: int = 0


@dataclass(slots=True)
class _Listener:
    """The last answers of one listener's brokers, and their times in order: one list serves all brokers."""

    last: dict[int, _Last] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def without(self, broker: int) -> _Last | None:
        """Take a broker out; what was known of it."""
        was = self.last.pop(broker, None)
        if was is not None:
            del self.seconds[bisect_left(self.seconds, was.seconds)]
        return was


class SlowAnswers:
    """The last good answers of all brokers of one vantage, by listener. Safe to share between threads: brokers are
    forgotten on another one than that of the rounds.
    """

    def __init__(self) -> None:
        self._listeners: defaultdict[str, _Listener] = defaultdict(_Listener)
        self._lock = threading.Lock()

    def answered(self, listener: str, broker: int, seconds: float, inside: float | None) -> None:
        """A request was answered in so many seconds, one over the internal listener in ``inside``."""
        with self._lock:
            here = self._listeners[listener]
            was, late = here.without(broker), False
            if peers := here.seconds:
                median = (peers[(len(peers) - 1) // 2] + peers[len(peers) // 2]) / 2
                usual = max(median, inside or 0.0)
                late = seconds >= max(SLOW_RATIO * usual, usual + LEAST_SLOW_SECONDS)
            here.last[broker] = _Last(seconds, (was.slow if was is not None else 0) + 1 if late else 0)
            insort(here.seconds, seconds)

    def slow(self, listener: str, broker: int) -> bool:
        """Whether a broker's last answers there took far longer than those of its peers."""
        with self._lock:
            last = self._listeners[listener].last.get(broker)
            return last is not None and last.slow >= SLOW_IN_A_ROW

    def forget(self, broker: int) -> None:
        """It is not watched any more."""
        with self._lock:
            for listener in self._listeners.values():
                listener.without(broker)
