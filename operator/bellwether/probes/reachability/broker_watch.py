"""Watch one broker from one vantage: start its probe rounds, collect the answers, post a signal on changes.

In: addresses (from the roster, then from the broker's own word) and settings that may change. Out: a ``Signal`` each
time that there is news. A new question starts every period although an earlier one still waits for its answer; answers
count in the order in which their questions were asked, so a black hole is known after failureThreshold periods and one
timeout. Nothing here blocks: questions do, on threads of ``worker_pool``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.reachability.reachability_state import Answer, Round, Sighting
from bellwether.probes.worker_pool import WorkerPool, WorkItem

HASTE = 0.5
"""The share of its period after which a broker that fails is asked again."""
MOST = 20
# Beyond its timeout a question is given this long to be scheduled and to say so itself.
GRACE_SECONDS = 0.3
_MOST_ROUNDS = 32
# A process that was kept from its work for so long while it waited cannot tell who was late.
_STARVED_SECONDS = 0.5
_STARVED = "this process gets too little CPU to tell a silent broker from its own delay: raise its CPU limit"


class Asker(Protocol):
    """Asks one broker at one address. Raises Transient or Terminal for what says nothing about the broker."""

    def ask(self, address: str, broker_id: int, timeout_seconds: float) -> Answer:
        """One question, over within its timeout."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker can be asked, as ``host:port``; empty where it is not known. ``external`` is the first guess."""

    internal: str = ""
    external: str = ""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Stands for a question that did not come back: looking up a name, say, obeys no timeout."""

    message: str
    seconds: float
    ok: bool = False
    stage: str = "Connect"
    weaker: bool = False

    @property
    def advertised(self) -> Mapping[str, str]:
        """Nothing was said."""
        return {}

    @property
    def result(self) -> str:
        """``ok``, or what it broke at."""
        return "ok" if self.ok else self.stage


@dataclass(frozen=True, slots=True)
class _Asked:
    address: str
    external: WorkItem[Answer] | None
    internal: WorkItem[Answer] | None
    timeout: float
    late_before: float

    @property
    def questions(self) -> list[WorkItem[Answer]]:
        return [q for q in (self.external, self.internal) if q is not None]

    def over(self, now: float) -> bool:
        """Whether every question has been answered, or has had its time. One that nobody has put yet has not."""
        limit = self.timeout + GRACE_SECONDS
        return all(q.done or (q.began is not None and now >= q.began + limit) for q in self.questions)


class Observer(Protocol):
    """Is told what is measured, for metrics; ``telemetry`` has the real one."""

    def asked(self, broker: int, path: str, answer: Answer) -> None:
        """One answer over ``external`` or ``internal``."""
        ...

    def judged(self, signal: Signal) -> None:
        """A broker's reading, after each round."""
        ...

    def gone(self, broker: int) -> None:
        """The broker is no longer watched."""
        ...


class RetryInterval:
    """The brokers that are in haste now: those that have just begun to fail, as long as they are few.

    Where many fail at once, the vantage has failed, or something that they share: nobody is demoted for that, and
    asking all of them twice as often would only make this process late.
    """

    def __init__(self) -> None:
        self._hurried: set[int] = set()

    def pace(self, broker: int, period_seconds: float, *, failing: bool) -> float:
        """Seconds from one round of a broker to its next."""
        if failing and (broker in self._hurried or len(self._hurried) < MOST):
            self._hurried.add(broker)
            return period_seconds * HASTE
        self._hurried.discard(broker)
        return period_seconds

    def forget(self, broker: int) -> None:
        """It is not watched any more."""
        self._hurried.discard(broker)


class BrokerWatch:
    """The rounds of one broker. ``settings`` is called before each one; ``post`` is called with news.

    ``late`` adds up the seconds that this process was kept from its work.
    """

    def __init__(
        self,
        broker: int,
        source: str,
        seat: BrokerAddress,
        asker: Callable[[], Asker],
        settings: Callable[[], Reachability],
        post: Callable[[Signal], None],
        clock: Clock,
        observer: Observer,
        questions: WorkerPool,
        late: Callable[[], float] = lambda: 0.0,
        haste: RetryInterval | None = None,
    ) -> None:
        self.broker = broker
        self._source = source
        self._seat = seat
        self._external = seat.external
        self._asker = asker
        self._settings = settings
        self._post = post
        self._clock = clock
        self._observer = observer
        self._questions = questions
        self._late = late
        self._haste = haste or RetryInterval()
        self._log = structlog.get_logger(__name__).bind(broker=broker, vantage=source)
        self._sighting = Sighting()
        self._told: tuple[str, ...] | None = None
        self._warned = ""
        self._asked: deque[_Asked] = deque()
        self._due = self._begun = self.beat = clock.monotonic()
        self._left_out = False
        self.stopped = False

    @property
    def sighting(self) -> Sighting:
        """What is known now."""
        return self._sighting

    @property
    def external(self) -> str:
        """The external address that is asked; empty until it was learned."""
        return self._external

    @property
    def waiting(self) -> bool:
        """Whether answers are out."""
        return bool(self._asked)

    def move(self, seat: BrokerAddress) -> None:
        """Follow what metadata says; an address that it does not name is kept as last known."""
        external = seat.external or self._seat.external
        if seat.external and seat.external != self._seat.external:
            self._external = seat.external
        self._seat = BrokerAddress(seat.internal or self._seat.internal, external)

    def repeat(self) -> None:
        """Tell the present word again, news or not (this prober has just become its vantage's voice)."""
        self._told = None

    def fell_behind(self) -> bool:
        """Whether a round was left out or worth nothing since this was last asked: this process cannot keep up."""
        left_out, self._left_out = self._left_out, False
        return left_out

    def stop(self) -> None:
        """Stop watching; a question under way ends by itself."""
        self.stopped = True
        self._haste.forget(self.broker)
        self._observer.gone(self.broker)

    def begin(self) -> float:
        """Begin a round; returns when the next one is due."""
        settings, now = self._settings(), self._clock.monotonic()
        self._due = max(self._due + self._pace(settings), now)
        self._begun = now
        if len(self._asked) < _MOST_ROUNDS and all(q.began is not None for r in self._asked for q in r.questions):
            self.beat = now
            self._asked.append(self._ask(settings))
        else:
            self._left_out = True  # asking still more would make it later still
        return self._due

    def collect(self) -> float | None:
        """Judge finished rounds, in the order in which they were begun; returns when to begin again, if changed."""
        before = self._external
        while self._asked and not self.stopped and self._asked[0].over(self._clock.monotonic()):
            self._take(self._asked.popleft())
        if self._external and not before:
            self._due = self._clock.monotonic()  # just learned: no need to wait for the next period
            return self._due
        soon = self._begun + self._pace(self._settings())
        if soon < self._due:
            self._due = max(soon, self._clock.monotonic())  # it has just begun to fail
            return self._due
        return None

    def _pace(self, settings: Reachability) -> float:
        """Seconds from one round to the next: fewer while the broker fails, to be sure of it soon."""
        return self._haste.pace(self.broker, settings.period_seconds, failing=self._sighting.failing)

    def _ask(self, settings: Reachability) -> _Asked:
        asker, timeout = self._asker(), settings.timeout_seconds
        external, internal = (
            WorkItem(partial(asker.ask, address, self.broker, timeout)) if address else None
            for address in (self._external, self._seat.internal)
        )
        asked = _Asked(self._external, external, internal, timeout, self._late())
        for question in asked.questions:
            self._questions.put(question)
        return asked

    def _take(self, asked: _Asked) -> None:
        trouble, answers = "", []
        for path, question, address in (
            ("external", asked.external, asked.address),
            ("internal", asked.internal, self._seat.internal),
        ):
            answer: Answer | None = None
            if question is not None and not question.done:
                answer = NoAnswer(f"{address}: no answer within {asked.timeout} s", asked.timeout)
            elif question is not None and question.error is not None:
                if not isinstance(question.error, Transient | Terminal | ValueError):
                    raise question.error
                trouble = str(question.error)
            elif question is not None:
                answer = question.result
            if answer is not None:
                self._observer.asked(self.broker, path, answer)
                if not answer.ok and answer.seconds >= asked.timeout:
                    trouble = trouble or (_STARVED if self._late() - asked.late_before >= _STARVED_SECONDS else "")
            answers.append(answer)
        self._judge(Round(asked.address, answers[0], answers[1], trouble))

    def _judge(self, seen: Round) -> None:
        settings = self._settings()
        if seen.trouble == _STARVED:
            self._left_out = True  # told once for all brokers
        elif seen.trouble:
            self._warn(seen.trouble, "this vantage cannot measure; what it finds here is no evidence")
        self._learn(seen, settings)
        self._sighting = self._sighting.after(seen, settings, self._clock.now())
        word = self._sighting.word(self.broker, self._source)
        if word is None or self.stopped:
            return
        self._observer.judged(word)
        news = self._sighting.news()
        if news != self._told:
            self._told = news
            self._post(word)

    def _learn(self, seen: Round, settings: Reachability) -> None:
        """Follow the address that the broker itself advertises for the external listener."""
        said = {**_said(seen.external), **_said(seen.internal)}
        if not said:
            if not self._external and seen.internal is not None and seen.internal.ok:
                self._warn(seen.internal.message, "the broker does not say where its external listener is")
            return
        address = said.get(settings.listener, "")
        if not address:
            names = ", ".join(sorted(said))
            problem = f"the broker advertises {names}, not {settings.listener}"
            self._warn(problem, "set detection.externalReachability.listener to the external listener's name")
        elif address != self._external:
            self._log.info("external address learned", address=address, before=self._external or None)
            self._external = address

    def _warn(self, problem: str, event: str) -> None:
        """Say a trouble once, not each second."""
        if problem != self._warned:
            self._warned = problem
            self._log.warning(event, error=problem)


def _said(answer: Answer | None) -> Mapping[str, str]:
    return answer.advertised if answer is not None and answer.ok else {}
