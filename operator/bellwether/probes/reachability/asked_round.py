"""One probe round under way: the questions to a broker's listeners, and what to make of their answers.

In: requests that were put to the ``worker_pool``. Out: a ``ProbeRound`` for each external listener. Called by
``broker_watch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bellwether.core.signals import UnreachableCause
from bellwether.probes.reachability.reachability_state import ProbeAnswer, ProbeRound, in_time
from bellwether.probes.worker_pool import WorkItem

# Extra time for a request to be scheduled and to report its own timeout.
GRACE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The result of a request that did not return: a name lookup, for example, has no timeout."""

    message: str
    seconds: float
    ok: bool = False
    stage: str = "Connect"
    weaker: bool = False
    cause: UnreachableCause | None = None

    @property
    def advertised(self) -> Mapping[str, str]:
        """Empty: there was no answer."""
        return {}

    @property
    def result(self) -> str:
        """``ok``, or what it broke at."""
        return "ok" if self.ok else self.stage


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
        return NoAnswer(f"{self.address}: no answer within {seconds} s", seconds)


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
