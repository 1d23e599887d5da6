"""One probe round under way: the questions to a broker's listeners, and what to make of their answers.

In: requests that were put to the ``WorkerPool``. Out: a ``ProbeRound`` for each external listener. Called by
``broker_watch``.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.reachability.reachability_state import ProbeRound, in_time
from bellwether.probes.reachability.round_scheduler import WorkItem

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


# Extra time for a request to be scheduled and to report its own timeout.
GRACE_SECONDS = 0.3


def no_answer(message: str, seconds: float) -> ProbeAnswer:
    """The result of a request that did not return: a name lookup, for example, has no timeout."""
    return ProbeAnswer(False, seconds, "Connect", message)


@dataclass(frozen=True, slots=True)
class Question:
    """One request to one address; ``item`` is None where no address is known."""

    address: str = ""
    item: WorkItem[ProbeAnswer] | None = None

    @property
    def error(self) -> Exception | None:
        """What the request raised."""
        return self.item.error if self.item is not None else None

    def over(self, now: float, seconds: float) -> bool:
        """Whether it was answered, or not within that time; one that was not sent yet counts as neither."""
        if self.item is None or self.item.done:
            return True
        return self.item.began is not None and now >= self.item.began + seconds + GRACE_SECONDS

    def answer(self, seconds: float) -> ProbeAnswer | None:
        """The answer to a question that is over; without one, that it did not come within that time."""
        if self.item is None or self.item.done:
            return self.item.result if self.item is not None else None
        return no_answer(f"{self.address}: no answer within {seconds} s", seconds)


@dataclass(frozen=True, slots=True)
class AskedRound:
    """The questions of a round, to the external listeners by name, and to the internal one as their control."""

    outside: Mapping[str, Question]
    inside: Question
    questions: tuple[Question, ...]
    """All of them."""
    timeout: float
    late_before: float
    seconds: float
    """Seconds that the round represents: since the round before it, at most a period."""
    slow: frozenset[str] = frozenset()
    """Listeners that are slow from here, and so are asked with requests of a client's size."""

    @property
    def began(self) -> bool:
        """Whether all requests were sent."""
        return all(q.item is None or q.item.began is not None for q in self.questions)

    def over(self, now: float) -> bool:
        """Whether every request was answered or timed out."""
        return all(q.over(now, self.timeout) for q in self.questions)

    def over_at(self, name: str, answer: ProbeAnswer | None, control: ProbeAnswer | None, trouble: str) -> ProbeRound:
        """What the round that is over shows of one listener."""
        address, slow = self.outside[name].address, name in self.slow
        return ProbeRound(address, answer, control, trouble, elsewhere=self._elsewhere(name), slow=slow)

    def if_it_times_out(self, name: str, now: float, limit: float) -> ProbeRound | None:
        """What the round would show of one listener if what has not been answered for ``limit`` seconds never is.

        None while the request to it is not late, or after a problem of this process.
        """
        asked = self.outside.get(name)
        if asked is None or asked.error is not None or self.inside.error is not None or not asked.over(now, limit):
            return None
        answer = asked.answer(limit)
        if answer is None or answer.ok:
            return None
        control = self.inside.answer(limit) if self.inside.over(now, limit) else None
        return ProbeRound(asked.address, answer, control, elsewhere=self._elsewhere(name), slow=name in self.slow)

    def _elsewhere(self, name: str) -> bool:
        """Whether another external listener answered in time."""
        if len(self.outside) < 2:
            return False
        others = [q.item.result for n, q in self.outside.items() if n != name and q.item is not None and q.item.done]
        return any(answer is not None and in_time(answer) for answer in others)
