"""The rules of one policy against a server that answers, fails, hangs and comes back. Time is the test's."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from bellwether.core.settings.source_settings import PrometheusRule
from bellwether.core.signals import Reading, Signal
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.prometheus.prometheus_probe import PrometheusProbe, answer_of
from bellwether.simulation.memory_world import ManualClock
from testkit.messages import assert_wording
from waiting import limit, until

Samples = list[tuple[str | None, float | None]]
FLUSH = PrometheusRule(name="flush", query="flush_seconds", threshold=100, failure_threshold=2, success_threshold=2)
IDLE = PrometheusRule(name="idle", query="idle_ratio", threshold=0.3, failure_threshold=2, success_threshold=2)
WELL: Samples = [("1", 5.0), ("2", 5.0)]
ILL: Samples = [("1", 500.0), ("2", 5.0)]


@dataclass
class Said:
    values: Samples
    warnings: list[str] = field(default_factory=list)

    @property
    def samples(self) -> list[tuple[dict[str, str], float | None]]:
        return [({} if label is None else {"broker": label}, value) for label, value in self.values]


@dataclass
class Server:
    """Answers by query; an error is raised, None hangs until ``go_on``."""

    says: dict[str, Samples | Exception | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    evaluates: bool = True
    go_on: threading.Event = field(default_factory=threading.Event)

    def ask(self, query: str, label: str, timeout_seconds: float) -> Said:  # noqa: ARG002 - the port's signature
        self.asked.append(query)
        answer = self.says.get(query, WELL)
        if answer is None:
            self.go_on.wait(limit(20))
            return Said(ILL)
        if isinstance(answer, Exception):
            raise answer
        return Said(answer, self.warnings)

    def check_alerts(self, alerts: Collection[str], timeout_seconds: float) -> None:  # noqa: ARG002 - the port's signature
        if not self.evaluates:
            raise Terminal(f"has no rule of alert {' or '.join(alerts)}")


@dataclass
class Watching:
    asked_of: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    @property
    def queries(self) -> Watching:
        return self

    def add(self, rule: str, result: str, *, seconds: float) -> None:  # noqa: ARG002 - as of the metrics
        self.asked_of.append((rule, result))

    def judged(self, signal: Signal) -> None:
        pass

    def gone(self, rule: str, broker: int | None = None) -> None:
        self.dropped.append(rule if broker is None else f"{rule}/{broker}")


class Play:
    """The probe, stepped by hand."""

    def __init__(self) -> None:
        self.clock, self.server, self.seen = ManualClock(), Server(), Watching()
        self.posted: list[Signal] = []
        self.probe = PrometheusProbe(self.posted.append, self.clock, self.seen)
        self.probe.know({1: (), 2: ()})
        self.put = 0

    def rules(self, *rules: PrometheusRule, **settings: int) -> None:
        self.put = len(rules)
        self.probe.configure((replace(rule, **settings), self.server) for rule in rules)

    def round(self, times: int = 1, seconds: float = 15.0) -> None:
        """Ask, wait for the answers as long as they come, take them, go on to the next period."""
        for _ in range(times):
            before = len(self.seen.asked_of)
            self.probe.run_due()
            until(lambda before=before: self._answered(before))  # type: ignore[misc]
            self.clock.sleep(seconds)

    def _answered(self, before: int) -> bool:
        self.probe.run_due()
        silent = any(answer is None for answer in self.server.says.values())
        return silent or len(self.seen.asked_of) >= before + self.put

    def last(self, broker: int = 1, source: str = "flush") -> Signal:
        return [s for s in self.posted if (s.broker, s.source) == (broker, source)][-1]

    def readings(self, broker: int = 1) -> list[Reading]:
        return [s.reading for s in self.posted if s.broker == broker]


@pytest.fixture
def play() -> Iterator[Play]:
    play = Play()
    yield play
    play.server.go_on.set()


def test_a_rule_without_any_series_since_its_start_is_silent(play: Play) -> None:
    play.server.says["flush_seconds"] = []
    play.rules(FLUSH, IDLE)
    assert play.probe.silent() == ()
    play.round(2)
    assert play.probe.silent() == ("flush",)
    play.server.says["flush_seconds"] = WELL
    play.round()
    play.server.says["flush_seconds"] = []
    play.round()
    assert play.probe.silent() == (), "it had series once"


def test_a_rule_fails_one_broker_and_passes_it_again(play: Play) -> None:
    play.rules(FLUSH)
    play.round(2)
    play.server.says["flush_seconds"] = ILL
    play.round(2)
    play.server.says["flush_seconds"] = WELL
    play.round(2)
    assert play.readings(1) == [Reading.PASSING, Reading.FAILING, Reading.PASSING]
    assert play.readings(2) == [Reading.PASSING]


def test_an_unchanged_reading_is_posted_once(play: Play) -> None:
    play.rules(FLUSH)
    play.round(30)
    assert len(play.posted) == 2
    assert len(play.server.asked) == 30


def test_each_rule_is_asked_alone_and_hanging_one_holds_none(play: Play) -> None:
    play.rules(FLUSH, IDLE)
    play.server.says["idle_ratio"] = None

    def taken() -> int:
        play.probe.run_due()
        return sum(rule == "flush" for rule, _ in play.seen.asked_of)

    for times in (1, 2, 3):
        until(lambda times=times: taken() == times)  # type: ignore[misc]
        play.clock.sleep(15)
    assert play.last(1, "flush").reading is Reading.PASSING
    assert play.last(1, "idle").reading is Reading.UNKNOWN
    assert_wording(play.last(1, "idle").message)
    assert play.server.asked.count("idle_ratio") == 1, "a question that hangs is not asked twice at once"


def test_a_late_answer_is_dropped_and_the_rule_asked_again(play: Play) -> None:
    play.rules(FLUSH)
    play.server.says["flush_seconds"] = None
    play.round(3)
    play.server.says["flush_seconds"] = WELL
    play.server.go_on.set()
    until(lambda: (play.clock.sleep(1), play.probe.run_due(), len(play.server.asked))[2] >= 2)
    play.round(4)
    assert Reading.FAILING not in play.readings(1)
    assert play.last(1).reading is Reading.PASSING


def test_the_last_values_count_until_they_are_too_old(play: Play) -> None:
    play.rules(FLUSH)
    play.server.says["flush_seconds"] = ILL
    play.round(2)
    play.server.says["flush_seconds"] = Transient("cannot be reached, or ends the connection")
    play.round(3)
    assert play.last(1).reading is Reading.FAILING
    play.round(3)
    assert play.last(1).reading is Reading.UNKNOWN
    assert_wording(play.last(1).message)
    assert len(play.posted) == 4, "one more word for each broker, however long it lasts"


@pytest.mark.parametrize(
    "error", [Transient("away"), Terminal("refuses the query (400): parse error"), ValueError("?")]
)
def test_silent_server_makes_every_broker_unknown_with_reason(play: Play, error: Exception) -> None:
    play.rules(FLUSH)
    play.server.says["flush_seconds"] = error
    play.round(5)
    assert [(s.broker, s.reading) for s in sorted(play.posted, key=lambda s: s.broker)] == [
        (1, Reading.UNKNOWN),
        (2, Reading.UNKNOWN),
    ]


def test_broker_without_series_passes_only_while_alert_rule_is_evaluated(play: Play) -> None:
    play.rules(replace(FLUSH, threshold=0, alerts=("DiskFailing",)))
    play.server.says["flush_seconds"] = [("1", 1.0)]
    play.round(3)
    assert (play.last(1).reading, play.last(2).reading) == (Reading.FAILING, Reading.PASSING)
    play.server.evaluates = False
    play.round(6)
    assert (play.last(1).reading, play.last(2).reading) == (Reading.UNKNOWN, Reading.UNKNOWN)
    assert_wording(play.last(2).message)


def test_query_has_time_that_check_of_its_alerts_left() -> None:
    given = []

    class Slow(Server):
        def check_alerts(self, alerts: Collection[str], timeout_seconds: float) -> None:  # noqa: ARG002
            time.sleep(0.02)

        def ask(self, query: str, label: str, timeout_seconds: float) -> Said:
            given.append(timeout_seconds)
            return super().ask(query, label, timeout_seconds)

    answer_of(Slow(), replace(FLUSH, alerts=("DiskFailing",)), 10.0)
    assert given[0] < 9.99


def test_trouble_is_logged_once_while_it_lasts(play: Play) -> None:
    odd: Samples = [*WELL, ("99", 7.0), ("98", 7.0), (None, 1.0)]
    play.rules(FLUSH)
    with capture_logs() as logs:
        play.server.says["flush_seconds"] = odd
        play.round(5)
        play.server.says["flush_seconds"] = Transient("away")
        play.round(5)
        play.server.says["flush_seconds"] = odd
        play.round(5)
        play.server.says["flush_seconds"] = WELL
        play.round(1)
        play.server.says["flush_seconds"] = odd
        play.round(5)
    events = [entry["event"] for entry in logs]
    assert events.count("prometheus_query_failed") == 1
    assert events.count("prometheus_query_recovered") == 1
    assert events.count("prometheus_values_skipped") == 4


def test_a_warning_of_the_server_is_logged_once(play: Play) -> None:
    play.server.warnings = ["results truncated due to limit"]
    play.rules(FLUSH)
    with capture_logs() as logs:
        play.round(5)
    assert_wording([e["reason"] for e in logs if e["log_level"] == "warning"])


def test_broker_whose_series_vanish_turns_unknown_and_its_peers_stay(play: Play) -> None:
    play.rules(FLUSH)
    play.server.says["flush_seconds"] = ILL
    play.round(2)
    play.server.says["flush_seconds"] = [("2", 5.0)]
    play.round(1)
    assert play.readings(1) == [Reading.FAILING, Reading.UNKNOWN]
    assert play.readings(2) == [Reading.PASSING]


def test_another_query_restarts_the_count_but_another_threshold_does_not(play: Play) -> None:
    play.rules(FLUSH)
    play.round(2)
    higher = PrometheusRule(**{**{f: getattr(FLUSH, f) for f in FLUSH.__slots__}, "threshold": 200.0})
    play.rules(higher)
    play.round(1)
    assert len(play.posted) == 2
    other = PrometheusRule(**{**{f: getattr(FLUSH, f) for f in FLUSH.__slots__}, "query": "other_seconds"})
    play.server.says["other_seconds"] = ILL
    play.rules(other)
    play.round(1)
    assert play.seen.dropped == ["flush"]
    assert len(play.posted) == 2, "one value is not enough"


def test_a_rule_that_is_gone_is_asked_no_more(play: Play) -> None:
    play.rules(FLUSH, IDLE)
    play.round(1)
    play.rules(FLUSH)
    play.server.asked.clear()
    play.round(3)
    assert set(play.server.asked) == {"flush_seconds"}


def test_without_known_brokers_nothing_is_queried(play: Play) -> None:
    play.probe.know({})
    play.rules(FLUSH)
    for _ in range(3):
        play.probe.run_due()
        time.sleep(0.1)
    assert play.server.asked == []


def test_later_known_broker_is_judged_and_removed_one_is_not(play: Play) -> None:
    play.server.says["flush_seconds"] = [("1", 5.0), ("2", 5.0), ("3", 900.0)]
    play.rules(FLUSH)
    play.round(2)
    play.probe.know({1: (), 3: ()})
    play.posted.clear()
    play.round(2)
    assert [(s.broker, s.reading) for s in play.posted] == [(3, Reading.FAILING)]
    assert play.seen.dropped == ["flush/2"]


def test_every_reading_is_posted_again_on_request(play: Play) -> None:
    play.rules(FLUSH)
    play.round(2)
    play.posted.clear()
    play.probe.repeat()
    play.probe.run_due()
    assert sorted(s.broker for s in play.posted) == [1, 2]


def test_hanging_questions_are_bounded_however_often_the_policy_changes(play: Play) -> None:
    before = threading.active_count()
    for n in range(100):
        rule = PrometheusRule(name="flush", query=f"q{n}", threshold=1)
        play.server.says[f"q{n}"] = None
        play.rules(rule)
        play.probe.run_due()
    assert threading.active_count() - before <= 64
    play.clock.sleep(1)
    play.probe.run_due()
    assert_wording(play.last(1).message)


def test_the_judging_thread_lives_while_questions_hang() -> None:
    play = Play()
    play.server.says["flush_seconds"] = None
    play.rules(FLUSH)
    play.probe.start()
    until(lambda: bool(play.server.asked))
    assert play.probe.alive()
    play.server.go_on.set()
    play.probe.stop()
    assert not play.probe.alive()


def test_since_is_when_the_reading_turned(play: Play) -> None:
    began = play.clock.now()
    play.rules(FLUSH)
    play.round(2)
    assert timedelta(0) <= play.last(1).since - began <= timedelta(seconds=15)


def test_server_whose_every_word_differs_floods_neither_log_nor_api(play: Play) -> None:
    play.rules(FLUSH, IDLE)
    with capture_logs() as logs:
        for n in range(40):
            play.server.says["flush_seconds"] = Terminal(f"refuses the query (422): duplicate series {n}")
            play.server.warnings = [f"truncated at {n}"]
            play.round(1)
    posted = [entry for entry in logs if entry["log_level"] == "warning"]
    assert len([e for e in posted if e["rule"] == "idle"]) == 1
    assert len([e for e in posted if e["rule"] == "flush"]) <= 40 * 15 / 60 + 1
    assert len([s for s in play.posted if s.source == "flush"]) <= 2 * (40 * 15 / 60 + 1)
