"""Watch one broker from one vantage: start its probe rounds, collect the answers, post a signal on changes.

In: addresses (from metadata, then as the broker advertises them) and settings that may change. Out: a ``Signal`` each
time that there is news. A new question starts every period although an earlier one still waits for its answer; answers
count in the order in which their questions were asked. One that is late counts as failed before its timeout, until it
is answered after all. Nothing here blocks: questions do, on threads of ``worker_pool``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from bellwether.core.settings.detection import Reachability
from bellwether.core.settings.harm import RETRY_SHARE
from bellwether.core.signals import Signal, UnreachableCause
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.measuring_thread import SignalObserver
from bellwether.probes.reachability.reachability_state import ProbeAnswer, ProbeRound, ReachabilityState
from bellwether.probes.reachability.slow_answers import CLIENT_BYTES, SlowAnswers
from bellwether.probes.worker_pool import WorkerPool, WorkItem

MOST = 20
# Extra time for a request to be scheduled and to report its own timeout.
GRACE_SECONDS = 0.3
_MOST_ROUNDS = 32
# After a delay of its own this long, a process cannot attribute a timeout to the broker.
_STARVED_SECONDS = 0.5
_STARVED = "this prober gets too little CPU to distinguish a broker's timeout from its own delay: raise its CPU limit"


class ListenerClient(Protocol):
    """Probes one broker at one address. Raises Transient or Terminal for failures that are no evidence about it."""

    def ask(self, address: str, broker_id: int, timeout_seconds: float, padding: int = 0) -> ProbeAnswer:
        """One question, ``padding`` bytes larger than needed, over within its timeout."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker can be asked, as ``host:port``; empty where it is not known. ``external`` is the first guess.

    ``fenced``: the controller lists it as fenced, as it does while the broker is down.
    """

    internal: str = ""
    external: str = ""
    fenced: bool = False


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
class _Asked:
    address: str
    inside: str
    """The internal address; ``address`` is the external one."""
    external: WorkItem[ProbeAnswer] | None
    internal: WorkItem[ProbeAnswer] | None
    timeout: float
    late_before: float
    seconds: float
    """Seconds that the round represents: since the round before it, at most a period."""
    slow: bool = False
    """The broker is slow from here, so the external request is of a client's size."""

    @property
    def questions(self) -> list[WorkItem[ProbeAnswer]]:
        return [q for q in (self.external, self.internal) if q is not None]

    def over(self, now: float) -> bool:
        """Whether every request was answered or timed out; one that was not sent yet counts as neither."""
        limit = self.timeout + GRACE_SECONDS
        return all(q.done or (q.began is not None and now >= q.began + limit) for q in self.questions)

    def if_it_times_out(self, now: float, limit: float) -> ProbeRound | None:
        """What the round would show if what has not been answered for ``limit`` seconds never is.

        None while the external request is not late, or after a problem of this process.
        """
        if any(q.error is not None for q in self.questions):
            return None
        external, internal = (
            None
            if q is None
            else q.result
            if q.done
            else _unanswered(address, limit)
            if q.began is not None and now >= q.began + limit
            else None
            for q, address in ((self.external, self.address), (self.internal, self.inside))
        )
        return None if external is None or external.ok else ProbeRound(self.address, external, internal, slow=self.slow)


def _unanswered(address: str, seconds: float) -> NoAnswer:
    return NoAnswer(f"{address}: no answer within {seconds} s", seconds)


class ReachabilityObserver(SignalObserver, Protocol):
    """Receives measurements, for metrics; implemented in ``telemetry``."""

    def asked(self, broker: int, path: str, result: str, seconds: float) -> None:
        """One request over ``external`` or ``internal``: ``ok``, or the stage that failed, and its duration."""
        ...

    def gone(self, broker: int) -> None:
        """The broker is no longer watched."""
        ...


class RetryInterval:
    """Probe newly failing brokers at half the period, at most ``MOST`` at once.

    If many fail at once, the cause is the vantage or something shared: no broker is demoted for that, and probing all
    of them twice as often would only delay this process.
    """

    def __init__(self) -> None:
        self._hurried: set[int] = set()

    def pace(self, broker: int, period_seconds: float, *, failing: bool) -> float:
        """Seconds from one round of a broker to its next."""
        if failing and (broker in self._hurried or len(self._hurried) < MOST):
            self._hurried.add(broker)
            return period_seconds * RETRY_SHARE
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
        target: BrokerAddress,
        client: Callable[[], ListenerClient],
        settings: Callable[[], Reachability],
        post: Callable[[Signal], None],
        clock: Clock,
        observer: ReachabilityObserver,
        questions: WorkerPool,
        late: Callable[[], float] = lambda: 0.0,
        retry_interval: RetryInterval | None = None,
        slow_answers: SlowAnswers | None = None,
    ) -> None:
        self.broker = broker
        self._source = source
        self._target = target
        self._external = target.external
        self._client = client
        self._settings = settings
        self._post = post
        self._clock = clock
        self._observer = observer
        self._questions = questions
        self._late = late
        self._retry_interval = retry_interval or RetryInterval()
        self._slow_answers = slow_answers or SlowAnswers()
        self._log = structlog.get_logger(__name__).bind(broker=broker, vantage=source)
        self._state = self._expected = ReachabilityState()
        self._late_rounds = 0
        self._posted: ReachabilityState | None = None
        self._posted_at = 0.0
        self._warned = ""
        self._asked: deque[_Asked] = deque()
        self._due = self._begun = self.beat = clock.monotonic()
        self._left_out = False
        self.stopped = False

    @property
    def state(self) -> ReachabilityState:
        """What is known now."""
        return self._state

    @property
    def external(self) -> str:
        """The external address that is asked; empty until it was learned."""
        return self._external

    @property
    def waiting(self) -> bool:
        """Whether answers are out."""
        return bool(self._asked)

    def move(self, target: BrokerAddress) -> None:
        """Follow the metadata; an address that it does not contain is kept as last known."""
        external = target.external or self._target.external
        if target.external and target.external != self._target.external:
            self._external = target.external
        self._target = BrokerAddress(target.internal or self._target.internal, external)

    def repeat(self) -> None:
        """Post the current signal again, changed or not (this prober has just become its vantage's leader)."""
        self._posted = None

    def fell_behind(self) -> bool:
        """Whether a round was left out or worth nothing since this was last asked: this process cannot keep up."""
        left_out, self._left_out = self._left_out, False
        return left_out

    def stop(self) -> None:
        """Stop watching; a question under way ends by itself."""
        self.stopped = True
        self._retry_interval.forget(self.broker)
        self._slow_answers.forget(self.broker)
        self._observer.gone(self.broker)

    def begin(self) -> float:
        """Begin a round; returns when the next one is due."""
        settings, now = self._settings(), self._clock.monotonic()
        represents = min(now - self._begun, float(settings.period_seconds)) or float(settings.period_seconds)
        self._due = max(self._due + self._pace(settings), now)
        self._begun = now
        if len(self._asked) < _MOST_ROUNDS and all(q.began is not None for r in self._asked for q in r.questions):
            self.beat = now
            self._asked.append(self._ask(settings, represents))
        else:
            self._left_out = True  # asking still more would make it later still
        return self._due

    def collect(self) -> float | None:
        """Judge finished rounds, in the order in which they were begun; returns when to begin again, if changed."""
        before = self._external
        while self._asked and not self.stopped and self._asked[0].over(self._clock.monotonic()):
            self._take(self._asked.popleft())
            self._late_rounds = 0
        self._count_late_rounds()
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
        return self._retry_interval.pace(self.broker, settings.period_seconds, failing=self._expected.failing)

    def _ask(self, settings: Reachability, seconds: float) -> _Asked:
        client, timeout, slow = self._client(), settings.timeout_seconds, self._slow_answers.slow(self.broker)
        external, internal = (
            WorkItem(partial(client.ask, address, self.broker, timeout, padding)) if address else None
            for address, padding in ((self._external, CLIENT_BYTES if slow else 0), (self._target.internal, 0))
        )
        asked = _Asked(self._external, self._target.internal, external, internal, timeout, self._late(), seconds, slow)
        for question in asked.questions:
            self._questions.put(question)
        return asked

    def _take(self, asked: _Asked) -> None:
        trouble, answers = "", []
        for path, question, address in (
            ("external", asked.external, asked.address),
            ("internal", asked.internal, asked.inside),
        ):
            answer: ProbeAnswer | None = None
            if question is not None and not question.done:
                answer = _unanswered(address, asked.timeout)
            elif question is not None and question.error is not None:
                if not isinstance(question.error, Transient | Terminal | ValueError):
                    raise question.error
                trouble = str(question.error)
            elif question is not None:
                answer = question.result
            if answer is not None:
                self._observer.asked(self.broker, path, answer.result, answer.seconds)
                if not answer.ok and answer.seconds >= asked.timeout:
                    trouble = trouble or (_STARVED if self._late() - asked.late_before >= _STARVED_SECONDS else "")
            answers.append(answer)
        external, internal = answers
        if external is not None and external.ok and not trouble:
            inside = internal.seconds if internal is not None and internal.ok else None
            self._slow_answers.answered(self.broker, external.seconds, inside)
        self._judge(ProbeRound(asked.address, external, internal, trouble, slow=asked.slow), asked.seconds)

    def _judge(self, seen: ProbeRound, seconds: float) -> None:
        settings = self._settings()
        if seen.trouble == _STARVED:
            self._left_out = True  # logged once for all brokers
        elif seen.trouble:
            self._warn("vantage_cannot_measure", seen.trouble)
        self._learn(seen, settings)
        self._state = self._expected = self._state.after(seen, self._clock.now(), seconds)
        self._report()

    def _count_late_rounds(self) -> None:
        """Expect the rounds that are late to fail, without counting them yet: some may be answered after all."""
        limit, now = self._settings().late_after_seconds, self._clock.monotonic()
        late = []
        for asked in self._asked:
            seen = asked.if_it_times_out(now, limit)
            if seen is None or self._late() - asked.late_before >= _STARVED_SECONDS:
                break
            late.append((seen, asked.seconds))
        if len(late) <= self._late_rounds:
            return
        self._late_rounds, self._expected = len(late), self._state
        for seen, seconds in late:
            self._expected = self._expected.after(seen, self._clock.now(), seconds)
        self._report()

    def _report(self) -> None:
        """Post what is expected now, if it is news."""
        signal = self._expected.signal(self.broker, self._source)
        if signal is None or self.stopped:
            return
        self._observer.judged(signal)
        at = self._clock.monotonic()
        if self._expected.differs(self._posted, at - self._posted_at):
            self._posted, self._posted_at = self._expected, at
            self._post(signal)

    def _learn(self, seen: ProbeRound, settings: Reachability) -> None:
        """Follow the address that the broker itself advertises for the external listener."""
        said = {**_said(seen.external), **_said(seen.internal)}
        if not said:
            if not self._external and seen.internal is not None and seen.internal.ok:
                self._warn("external_address_unknown", seen.internal.message)
            return
        address = said.get(settings.listener, "")
        if not address:
            names = ", ".join(sorted(said))
            problem = f"the broker advertises {names}, not {settings.listener}"
            remedy = "set detection.externalReachability.listener to the name of the external listener"
            self._warn("external_listener_not_found", problem, remedy)
        elif address != self._external:
            self._log.info("external_address_changed", address=address, previous=self._external or None)
            self._external = address

    def _warn(self, event: str, problem: str, remedy: str | None = None) -> None:
        """Log a problem once, not at each round."""
        if problem != self._warned:
            self._warned = problem
            self._log.warning(event, error=problem, remedy=remedy)


def _said(answer: ProbeAnswer | None) -> Mapping[str, str]:
    return answer.advertised if answer is not None and answer.ok else {}
