"""Watch one broker from one vantage: start its probe rounds, collect the answers, post a signal on changes.

In: addresses (from metadata, then as the broker advertises them) and settings that may change. Out: a ``Signal`` each
time that there is news. A round asks each external listener, and the internal one as their control. A new one starts
every period although an earlier one still waits for its answers; answers count in the order in which their questions
were asked. One that is late counts as failed before its timeout, until it is answered after all. Nothing here blocks:
questions do, on threads of a ``WorkerPool``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import structlog

from bellwether.core.settings.detection import Reachability
from bellwether.core.settings.harm import RETRY_SHARE
from bellwether.core.signals import Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.reachability.asked_round import CLIENT_BYTES, AskedRound, Question, SlowAnswers
from bellwether.probes.reachability.reachability_state import (
    ProbeRound,
    ReachabilityState,
    differ,
    signal_of,
)
from bellwether.probes.reachability.round_scheduler import WorkerPool, WorkItem
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

LISTENERS_FIELD = "spec.detection.externalReachability.listeners"
MOST = 20
_MOST_ROUNDS = 32
# After a delay of its own this long, a process cannot attribute a timeout to the broker.
_STARVED_SECONDS = 0.5
_STARVED = "this prober gets too little CPU to distinguish a broker's timeout from its own delay: raise its CPU limit"


class ListenerClient(Protocol):
    """Probes one broker at one address. Raises Transient or Terminal for failures that are no evidence about it."""

    def ask(self, address: str, broker_id: int, timeout_seconds: float, padding: int = 0) -> ProbeAnswer:
        """One question, ``padding`` bytes larger than needed, over within its timeout."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker can be asked, as ``host:port``; empty where it is not known.

    ``external`` is the first guess for the first external listener.
    ``fenced``: the controller lists it as fenced, as it does while the broker is down.
    """

    internal: str = ""
    external: str = ""
    fenced: bool = False


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


@dataclass(slots=True)
class _Listener:
    """An external listener: its address, or why that is not known; what is known of it, and what is expected."""

    address: str = ""
    unknown: str = ""
    state: ReachabilityState = field(default_factory=ReachabilityState)
    expected: ReachabilityState = field(default_factory=ReachabilityState)
    late_rounds: int = 0


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
        metrics: ProbeMetrics,
        questions: WorkerPool,
        late: Callable[[], float] = lambda: 0.0,
        retry_interval: RetryInterval | None = None,
        slow_answers: SlowAnswers | None = None,
    ) -> None:
        self.broker = broker
        self._source = source
        self._target = target
        self._listeners: dict[str, _Listener] = {}
        self._client = client
        self._settings = settings
        self._post = post
        self._clock = clock
        self._metrics = metrics
        self._questions = questions
        self._late = late
        self._retry_interval = retry_interval or RetryInterval()
        self._slow_answers = slow_answers or SlowAnswers()
        self._log = structlog.get_logger(__name__).bind(broker=broker, vantage=source)
        self._posted: Mapping[str, ReachabilityState] | None = None
        self._posted_at = 0.0
        self._warned = ""
        self._asked: deque[AskedRound] = deque()
        self._due = self._begun = self.beat = clock.monotonic()
        self._left_out = self._learned = False
        self.stopped = False

    @property
    def states(self) -> Mapping[str, ReachabilityState]:
        """What is known now, by listener."""
        return {name: one.state for name, one in self._listeners.items()}

    @property
    def waiting(self) -> bool:
        """Whether answers are out."""
        return bool(self._asked)

    def move(self, target: BrokerAddress) -> None:
        """Follow the metadata; an address that it does not contain is kept as last known."""
        external = target.external or self._target.external
        if external != self._target.external and self._listeners:
            next(iter(self._listeners.values())).address = external
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
        self._metrics.gone(self.broker)

    def begin(self) -> float:
        """Begin a round; returns when the next one is due."""
        settings, now = self._settings(), self._clock.monotonic()
        represents = min(now - self._begun, float(settings.period_seconds)) or float(settings.period_seconds)
        self._due = max(self._due + self._pace(settings), now)
        self._begun = now
        if len(self._asked) < _MOST_ROUNDS and all(asked.began for asked in self._asked):
            self.beat = now
            self._asked.append(self._ask(settings, represents))
        else:
            self._left_out = True  # asking still more would make it later still
        return self._due

    def collect(self) -> float | None:
        """Judge finished rounds, in the order in which they were begun; returns when to begin again, if changed."""
        while self._asked and not self.stopped and self._asked[0].over(self._clock.monotonic()):
            self._take(self._asked.popleft())
            for listener in self._listeners.values():
                listener.late_rounds = 0
        self._count_late_rounds()
        if self._learned:
            self._learned = False
            self._due = self._clock.monotonic()  # no need to wait for the next period
            return self._due
        soon = self._begun + self._pace(self._settings())
        if soon < self._due:
            self._due = max(soon, self._clock.monotonic())  # it has just begun to fail
            return self._due
        return None

    def _pace(self, settings: Reachability) -> float:
        """Seconds from one round to the next: fewer while the broker fails, to be sure of it soon."""
        failing = any(listener.expected.failing for listener in self._listeners.values())
        return self._retry_interval.pace(self.broker, settings.period_seconds, failing=failing)

    def _follow(self, names: tuple[str, ...]) -> None:
        """Watch the listeners of the settings; the first one may be known from metadata."""
        if tuple(self._listeners) != names:
            self._listeners = {name: self._listeners.get(name) or _Listener() for name in names}
            first = self._listeners[names[0]]
            first.address = first.address or self._target.external

    def _ask(self, settings: Reachability, seconds: float) -> AskedRound:
        client, timeout = self._client(), settings.timeout_seconds
        self._follow(settings.listeners)

        def asking(address: str, padding: int = 0) -> Question:
            ask = partial(client.ask, address, self.broker, timeout, padding)
            return Question(address, WorkItem(ask) if address else None)

        slow = frozenset(name for name in self._listeners if self._slow_answers.slow(name, self.broker))
        outside = {
            name: asking(listener.address, CLIENT_BYTES if name in slow else 0)
            for name, listener in self._listeners.items()
        }
        inside = asking(self._target.internal)
        asked = AskedRound(outside, inside, (*outside.values(), inside), timeout, self._late(), seconds, slow)
        for question in asked.questions:
            if question.item is not None:
                self._questions.put(question.item)
        return asked

    def _take(self, asked: AskedRound) -> None:
        outside = {name: self._answer(question, "external", asked) for name, question in asked.outside.items()}
        inside, trouble = self._answer(asked.inside, "internal", asked)
        rounds = {name: asked.over_at(name, said, inside, mine or trouble) for name, (said, mine) in outside.items()}
        for name, seen in rounds.items():
            if seen.external is not None and seen.external.ok and not seen.trouble:
                control = inside.seconds if inside is not None and inside.ok else None
                self._slow_answers.answered(name, self.broker, seen.external.seconds, control)
        self._judge(rounds, asked.seconds)

    def _answer(self, question: Question, path: str, asked: AskedRound) -> tuple[ProbeAnswer | None, str]:
        """The answer to a question that is over, and what this process itself had trouble with."""
        if question.error is not None:
            if not isinstance(question.error, Transient | Terminal | ValueError):
                raise question.error
            return None, str(question.error)
        answer = question.answer(asked.timeout)
        if answer is None:
            return None, ""
        self._metrics.requests.add(self.broker, path, answer.result, seconds=answer.seconds)
        timed_out = not answer.ok and answer.seconds >= asked.timeout
        return answer, _STARVED if timed_out and self._late() - asked.late_before >= _STARVED_SECONDS else ""

    def _judge(self, rounds: Mapping[str, ProbeRound], seconds: float) -> None:
        self._learn(rounds)
        for name, seen in rounds.items():
            if seen.trouble == _STARVED:
                self._left_out = True  # logged once for all brokers
            elif seen.trouble:
                self._warn("vantage_cannot_measure", seen.trouble)
            if (listener := self._listeners.get(name)) is not None:  # else the settings have changed
                known = replace(seen, unasked=listener.unknown) if listener.unknown and not seen.address else seen
                listener.state = listener.expected = listener.state.after(known, self._clock.now(), seconds)
        self._report()

    def _count_late_rounds(self) -> None:
        """Expect the rounds that are late to fail, without counting them yet: some may be answered after all."""
        limit, now, news = self._settings().late_after_seconds, self._clock.monotonic(), False
        for name, listener in self._listeners.items():
            late = []
            for asked in self._asked:
                seen = asked.if_it_times_out(name, now, limit)
                if seen is None or self._late() - asked.late_before >= _STARVED_SECONDS:
                    break
                late.append((seen, asked.seconds))
            if len(late) <= listener.late_rounds:
                continue
            listener.late_rounds, listener.expected, news = len(late), listener.state, True
            for seen, seconds in late:
                listener.expected = listener.expected.after(seen, self._clock.now(), seconds)
        if news:
            self._report()

    def _report(self) -> None:
        """Post what is expected now, if it is news."""
        states = {name: listener.expected for name, listener in self._listeners.items()}
        signal = signal_of(states, self.broker, self._source)
        if signal is None or self.stopped:
            return
        self._metrics.judged(signal)
        at = self._clock.monotonic()
        if differ(states, self._posted, at - self._posted_at):
            self._posted, self._posted_at = states, at
            self._post(signal)

    def _learn(self, rounds: Mapping[str, ProbeRound]) -> None:
        """Follow the addresses that the broker itself advertises for its external listeners."""
        said: dict[str, str] = {}
        inside: ProbeAnswer | None = None
        for seen in rounds.values():
            inside = seen.internal
            if seen.external is not None and seen.external.ok:
                said.update(seen.external.advertised)
        if inside is not None and inside.ok:
            said.update(inside.advertised)
        for name, listener in self._listeners.items():
            address = said.get(name, "")
            if address:
                if address != listener.address:
                    previous = listener.address or None
                    self._log.info("external_address_changed", listener=name, address=address, previous=previous)
                    self._learned = self._learned or previous is None
                listener.address, listener.unknown = address, ""
            elif said:
                self._not_advertised(name, listener, said)
            elif not listener.address and inside is not None and inside.ok:
                self._warn("external_address_unknown", inside.message)
                listener.unknown = inside.message

    def _not_advertised(self, name: str, listener: _Listener, said: Mapping[str, str]) -> None:
        problem = f"the broker advertises {', '.join(sorted(said))}, not {name}"
        self._warn("external_listener_not_found", problem, f"correct {LISTENERS_FIELD}")
        listener.unknown = f"{problem}: correct {LISTENERS_FIELD}"
        first = next(iter(self._listeners))
        listener.address = self._target.external if name == first else ""

    def _warn(self, event: str, problem: str, remedy: str | None = None) -> None:
        """Log a problem once, not at each round."""
        if problem != self._warned:
            self._warned = problem
            self._log.warning(event, error=problem, remedy=remedy)
