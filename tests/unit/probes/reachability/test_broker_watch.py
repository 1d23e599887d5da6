"""Requests that are late count as failed before their timeout, until they are answered after all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import Reading, Signal, UnreachableCause
from bellwether.probes.reachability.broker_watch import BrokerAddress, BrokerWatch
from bellwether.probes.reachability.slow_answers import CLIENT_BYTES, SlowAnswers
from bellwether.probes.worker_pool import WorkItem
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from bellwether.testing.memory_world import ManualClock
from testkit.kafka.request_outcomes import Said

ANSWER = Said(True, 0.002)
LATE = Reachability.late_after_seconds
STEP = 0.05


class Questions:
    """Requests as they are put to a pool: answered at once, but for the paths that are ``silent``."""

    def __init__(self, clock: ManualClock) -> None:
        self.silent: set[str] = set()
        self.open: list[WorkItem[Said]] = []
        self._clock = clock

    def put(self, question: WorkItem[Said]) -> None:
        question.began = self._clock.monotonic()
        question.run()
        if question.result is not None and question.result.message in self.silent:
            question.done, question.result = False, None
            self.open.append(question)

    def answer_all(self) -> None:
        for question in self.open:
            question.done, question.result = True, ANSWER
        self.open = []


class Listeners:
    """Answers with its address, by which ``Questions`` tells the paths apart."""

    def __init__(self) -> None:
        self.outside: dict[int, float] = {}
        self.padded = 0

    def ask(self, address: str, _broker_id: int, _timeout_seconds: float, padding: int = 0) -> Said:
        self.padded = padding or self.padded
        return Said(True, self.outside.get(padding, 0.002) if address == "outside:1" else 0.002, message=address)


class Watched:
    """One broker, watched for ten seconds while all was well."""

    def __init__(self, late: Callable[[], float] = lambda: 0.0) -> None:
        self.clock = ManualClock()
        self.listeners, self.slow = Listeners(), SlowAnswers()
        self.slow.answered(2, 0.002, 0.002)
        self.questions = Questions(self.clock)
        self.posts: list[tuple[float, Signal]] = []
        self.watch = BrokerWatch(
            1,
            "here",
            BrokerAddress("inside:1", "outside:1"),
            lambda: self.listeners,
            Reachability,
            lambda signal: self.posts.append((self.clock.monotonic(), signal)),
            self.clock,
            ProbeMetrics(),
            self.questions,  # type: ignore[arg-type]
            late,
            slow_answers=self.slow,
        )
        self._due = self.clock.monotonic()
        self.run(10)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP)):
            if self.clock.monotonic() >= self._due:
                self._due = self.watch.begin()
            self._due = self.watch.collect() or self._due
            self.clock.advance(STEP)

    def last(self) -> tuple[Reading, Reading]:
        return self.posts[-1][1].reading, self.posts[-1][1].control


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_silent_listener_is_failing_before_the_second_timeout(watched: Watched) -> None:
    began = watched.clock.monotonic()
    watched.questions.silent = {"outside:1"}
    watched.run(1 + LATE + 0.6)
    assert watched.last() == (Reading.FAILING, Reading.PASSING)
    assert watched.posts[-1][0] - began < 1 + Reachability.timeout_seconds
    assert "no answer within 1.25 s" in watched.posts[-1][1].message


def test_a_broker_that_answers_on_neither_path_is_never_reported_with_a_control_that_passes(watched: Watched) -> None:
    watched.questions.silent = {"outside:1", "inside:1"}
    watched.run(6)
    failing = [signal for _, signal in watched.posts if signal.reading is Reading.FAILING]
    assert failing
    assert {signal.control for signal in failing} == {Reading.FAILING}


def test_a_broker_that_is_slow_from_here_gets_requests_of_a_clients_size_and_says_so(watched: Watched) -> None:
    watched.listeners.outside = {0: 0.229, CLIENT_BYTES: 0.6}
    watched.run(10)
    signal = watched.posts[-1][1]
    assert watched.listeners.padded == CLIENT_BYTES
    assert (signal.reading, signal.cause) == (Reading.PASSING, UnreachableCause.SLOW)
    assert "outside:1 answers in 600 ms, its peers many times faster" in signal.message
    watched.listeners.outside = {}
    watched.run(10)
    assert watched.posts[-1][1].cause is None


def test_requests_of_a_clients_size_that_are_not_answered_are_harm_by_a_slow_path(watched: Watched) -> None:
    watched.listeners.outside = {0: 0.229, CLIENT_BYTES: 0.6}
    watched.run(4)
    watched.questions.silent = {"outside:1"}
    watched.run(6)
    signal = watched.posts[-1][1]
    assert (signal.reading, signal.cause) == (Reading.FAILING, UnreachableCause.SLOW)


def test_each_listener_is_named_by_its_own_address(watched: Watched) -> None:
    watched.questions.silent = {"outside:1", "inside:1"}
    watched.run(6)
    for said in [signal.message for _, signal in watched.posts if signal.reading is Reading.FAILING]:
        assert "(outside:1: no answer within " in said
        assert "internal listener: inside:1: no answer within " in said


def test_one_late_answer_is_not_reported(watched: Watched) -> None:
    watched.questions.silent = {"outside:1"}
    watched.run(0.5)
    watched.questions.silent = set()
    watched.run(LATE)
    watched.questions.answer_all()
    watched.run(5)
    assert [signal.reading for _, signal in watched.posts] == [Reading.PASSING]


def test_answers_that_come_before_their_timeout_take_the_report_back(watched: Watched) -> None:
    watched.questions.silent = {"outside:1"}
    watched.run(1 + LATE + 0.6)
    assert watched.last()[0] is Reading.FAILING
    watched.questions.silent = set()
    watched.questions.answer_all()
    watched.run(1)
    assert watched.last()[0] is Reading.PASSING


def test_a_process_that_was_kept_from_its_work_calls_nobody_late() -> None:
    kept = [0.0]
    watched = Watched(lambda: kept[0])
    watched.questions.silent = {"outside:1"}
    watched.run(0.5)
    kept[0] = 1.0
    watched.run(LATE)
    watched.questions.silent = set()
    watched.run(5)
    assert [signal.reading for _, signal in watched.posts] == [Reading.PASSING]
