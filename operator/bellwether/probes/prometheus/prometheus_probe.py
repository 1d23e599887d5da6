"""Prometheus probe: run every rule's query each period, and judge each broker by the values.

In: something that answers queries, settings that may change, the brokers that exist. Out: one ``Signal`` for each rule
and broker, posted on news. Called by ``bellwether probe prometheus``. Every question has a thread of its own, as a
question may hang; one thread judges and never waits for an answer: a server that is away makes everything Unknown once
its last values are too old, and nothing else.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from bellwether.core.model.broker_identity import Hosts
from bellwether.core.settings.source_settings import PrometheusRule
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.measuring_thread import MeasuringThread
from bellwether.probes.prometheus.query_rules import FIGURE_NEWS_SECONDS, RuleState, figures, judge
from bellwether.telemetry.metrics.probe_metrics import QueryMetrics

_LOOK_SECONDS = 0.1
# Extra time for a query to report its own timeout.
_GRACE_SECONDS = 0.5
# Questions that hang are not piled up, however often the policy changes meanwhile.
_MOST_QUESTIONS = 64


class QueryAnswer(Protocol):
    """What is needed of an answer."""

    @property
    def samples(self) -> Sequence[tuple[Mapping[str, str], float | None]]:
        """The labels that may name the broker, and the sample's value."""

    @property
    def warnings(self) -> Sequence[str]:
        """The server's warnings."""


class QueryClient(Protocol):
    """Answers a query; ``adapters.prometheus`` has the real one. Raises Transient or Terminal, and may hang."""

    def ask(self, query: str, label: str, timeout_seconds: float) -> QueryAnswer:
        """The values as of now."""

    def check_alerts(self, alerts: Collection[str], timeout_seconds: float) -> None:
        """Raise unless the rules of these alerts are evaluated."""


@dataclass(slots=True)
class _Question:
    """A question under way; its thread leaves an QueryAnswer, or the error that it met."""

    rule: PrometheusRule
    asked_at: float
    timeout: float
    thread: threading.Thread | None = None
    given_up: bool = False
    answer: queue.SimpleQueue[QueryAnswer | Transient | Terminal] = field(default_factory=queue.SimpleQueue)


@dataclass(slots=True)
class _Lane:
    """One rule, and what is known of it."""

    rule: PrometheusRule
    client: QueryClient
    due: float
    answered: float
    question: _Question | None = None
    problem: str = ""
    spoken: float = 0.0
    news: bool = False
    """Whether the states may have changed since they were posted."""
    states: dict[int, RuleState] = field(default_factory=dict)
    posted: dict[int, tuple[RuleState, float]] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    silent: bool = True
    """Whether no answer had a series since the start."""


class PrometheusProbe(MeasuringThread):
    """The rules of one policy. ``post`` is called with news, on the judging thread."""

    def __init__(self, post: Callable[[Signal], None], clock: Clock, metrics: QueryMetrics) -> None:
        super().__init__("prometheus-judge", clock)
        self._post = post
        self._metrics = metrics
        self._log = structlog.get_logger(__name__)
        self._lock = threading.Lock()
        self._hosts: Hosts = {}
        self._settled: Mapping[str, int] = {}
        self._lanes: dict[str, _Lane] = {}
        self._hanging: list[_Question] = []

    def configure(self, asked: Iterable[tuple[PrometheusRule, QueryClient]]) -> None:
        """Apply these rules, each with the client of its server. A rule whose query has changed starts from scratch."""
        now = self._clock.monotonic()
        with self._lock:
            wanted = {rule.name: (rule, client) for rule, client in asked}
            changed = (
                n for n, lane in self._lanes.items() if _question(lane.rule) != _question(*wanted.get(n, ())[:1])
            )
            for name in tuple(changed):
                self._drop(name)
            for name, (rule, client) in wanted.items():
                lane = self._lanes.setdefault(name, _Lane(rule, client, due=now, answered=now))
                lane.rule, lane.client = rule, client

    def answers(self) -> dict[str, str]:
        """Rules that were asked: by name why there is no answer, empty where there is one."""
        with self._lock:
            return {name: lane.problem for name, lane in self._lanes.items() if lane.problem or lane.states}

    def silent(self) -> tuple[str, ...]:
        """Rules with answers that never had a series: their exporter may have other names."""
        with self._lock:
            return tuple(name for name, lane in self._lanes.items() if lane.silent and "empty" in lane.said)

    def know(self, hosts: Hosts) -> None:
        """These brokers exist, and advertise these hosts: values of all others are skipped."""
        with self._lock:
            if hosts.keys() != self._hosts.keys():
                self._settled = {}
            self._hosts = dict(hosts)
            for name, lane in self._lanes.items():
                for broker in [b for b in lane.states if b not in hosts]:
                    del lane.states[broker]
                    lane.posted.pop(broker, None)
                    self._metrics.gone(name, broker)

    def repeat(self) -> None:
        """Post the current signals again, changed or not."""
        with self._lock:
            for lane in self._lanes.values():
                lane.posted.clear()
                lane.news = True

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.run_due()

    def run_due(self) -> None:
        """Process the answers, send the queries that are due, and post changes."""
        self._beat = self._clock.monotonic()
        with self._lock:
            for lane in self._lanes.values():
                self._collect(lane)
                self._ask(lane)
                self._post_changes(lane)
                self._beat = self._clock.monotonic()

    def _ask(self, lane: _Lane) -> None:
        now = self._clock.monotonic()
        self._hanging = [q for q in self._hanging if q.thread is not None and q.thread.is_alive()]
        if lane.question is not None or now < lane.due or not self._hosts:
            return
        if len(self._hanging) >= _MOST_QUESTIONS:
            self._failed(
                lane, "too many queries are unanswered: Prometheus, or the DNS lookup of its name, does not answer"
            )
            return
        lane.due = max(lane.due + lane.rule.period_seconds, now)
        question = _Question(lane.rule, now, float(lane.rule.timeout_seconds))
        question.thread = threading.Thread(
            target=_ask, args=(lane.client, question), name=f"ask-{lane.rule.name}", daemon=True
        )
        lane.question = question
        self._hanging.append(question)
        question.thread.start()

    def _collect(self, lane: _Lane) -> None:
        question = lane.question
        if question is None:
            return
        seconds = self._clock.monotonic() - question.asked_at
        try:
            answer = question.answer.get_nowait()
        except queue.Empty:
            if seconds > question.timeout + _GRACE_SECONDS:
                self._give_up(lane, question, seconds)
            return
        lane.question = None
        if question.given_up:
            return  # the answer is too old to be worth anything: the next question is due
        if isinstance(answer, Transient | Terminal):
            self._metrics.queries.add(lane.rule.name, "failed", seconds=seconds)
            self._failed(lane, str(answer))
            return
        self._metrics.queries.add(lane.rule.name, "ok", seconds=seconds)
        self._answered(lane, answer)

    def _give_up(self, lane: _Lane, question: _Question, seconds: float) -> None:
        """A query that hangs counts as unanswered each period; no second query of the rule runs in parallel."""
        now = self._clock.monotonic()
        if question.given_up and now < lane.due:
            return
        lane.due = max(lane.due, now) if not question.given_up else now + lane.rule.period_seconds
        if not question.given_up:
            self._metrics.queries.add(lane.rule.name, "timeout", seconds=seconds)
        question.given_up = True
        self._failed(lane, "does not answer in time")

    def _answered(self, lane: _Lane, answer: QueryAnswer) -> None:
        lane.answered, lane.news = self._clock.monotonic(), True
        if lane.problem:
            self._log.info("prometheus_query_recovered", rule=lane.rule.name)
            lane.problem = ""
        found = figures(answer.samples, lane.rule, self._hosts, self._settled)
        self._settled, lane.silent = found.settled, lane.silent and "empty" in found.odd
        self._say(lane, {**found.odd, **({"warnings": "; ".join(answer.warnings)} if answer.warnings else {})})
        now = self._clock.now()
        for broker in self._hosts:
            state = lane.states.get(broker, RuleState())
            lane.states[broker] = state.after(judge(broker, found, lane.rule), lane.rule, now)
            signal = lane.states[broker].signal(broker, lane.rule)
            if signal is not None:
                self._metrics.judged(signal)

    def _failed(self, lane: _Lane, problem: str) -> None:
        """No answer is no evidence: the last values count until they are too old."""
        lane.news = True
        now = self._clock.monotonic()
        if not lane.problem or (problem != lane.problem and now - lane.spoken > FIGURE_NEWS_SECONDS):
            lane.problem, lane.spoken = problem, now
            self._log.warning("prometheus_query_failed", rule=lane.rule.name, error=problem)
        stale = now - lane.answered > lane.rule.stale_after_seconds
        for broker in self._hosts:
            state = lane.states.get(broker, RuleState())
            if stale or state.streak.reading is Reading.UNKNOWN:
                lost = state.lost(f"Prometheus {problem}", self._clock.now())
                lane.states[broker] = lost
                signal = lost.signal(broker, lane.rule)
                if signal is not None:
                    self._metrics.judged(signal)

    def _post_changes(self, lane: _Lane) -> None:
        if not lane.news:
            return
        lane.news, now = False, self._clock.monotonic()
        for broker, state in lane.states.items():
            posted, at = lane.posted.get(broker, (None, 0.0))
            signal = state.signal(broker, lane.rule)
            if signal is not None and state.differs(posted, now - at, lane.rule):
                lane.posted[broker] = (state, now)
                self._post(signal)

    def _say(self, lane: _Lane, odd: dict[str, str]) -> None:
        """Log problems of an answer once while they persist."""
        for kind in odd.keys() - lane.said:
            self._log.warning("prometheus_values_skipped", rule=lane.rule.name, reason=odd[kind])
        lane.said = set(odd)

    def _drop(self, name: str) -> None:
        del self._lanes[name]
        self._metrics.gone(name)


def _question(rule: PrometheusRule | None = None) -> tuple[str, str] | None:
    return None if rule is None else (rule.query, rule.broker_label)


def answer_of(client: QueryClient, rule: PrometheusRule, timeout_seconds: float) -> QueryAnswer:
    """The answer to a rule, with all requests for it. Raises Transient or Terminal, also where its alerts are not
    evaluated.
    """
    deadline = time.monotonic() + timeout_seconds
    if rule.alerts:
        client.check_alerts(rule.alerts, timeout_seconds)
    return client.ask(rule.query, rule.broker_label, deadline - time.monotonic())


def _ask(client: QueryClient, question: _Question) -> None:
    try:
        question.answer.put(answer_of(client, question.rule, question.timeout))
    except (Transient, Terminal) as error:
        question.answer.put(error)
    except Exception as error:  # any failure of the query is no evidence about a broker
        question.answer.put(Transient(f"cannot be asked: {type(error).__name__}"))
