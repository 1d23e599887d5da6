"""Requests that are late count as failed before their timeout, until they are answered after all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import ListenerReading, Reading, Signal, UnreachableCause
from bellwether.ports.errors import Unauthenticated
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.reachability.asked_round import CLIENT_BYTES, SlowAnswers
from bellwether.probes.reachability.broker_watch import BrokerAddress, BrokerWatch
from bellwether.probes.reachability.round_scheduler import WorkItem
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.messages import assert_wording

ANSWER = ProbeAnswer(True, 0.002)
LATE = Reachability.late_after_seconds
STEP = 0.05


class Questions:
    """Requests as they are put to a pool: answered at once, but for the paths that are ``silent``."""

    def __init__(self, clock: ManualClock) -> None:
        self.silent: set[str] = set()
        self.open: list[WorkItem[ProbeAnswer]] = []
        self._clock = clock

    def put(self, question: WorkItem[ProbeAnswer]) -> None:
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
    """Answers with its address, by which ``Questions`` tells the paths apart, and with what the broker advertises."""

    def __init__(self, advertised: Mapping[str, str] | None = None) -> None:
        self.advertised = advertised or {}
        self.trouble: dict[str, Exception] = {}
        self.asked: list[str] = []
        self.outside: dict[int, float] = {}
        """Seconds of an answer at ``outside:1`` by the padding of its request."""
        self.padded = 0

    def ask(self, address: str, _broker_id: int, _timeout_seconds: float, padding: int = 0) -> ProbeAnswer:
        self.asked.append(address)
        self.padded = padding or self.padded
        if address in self.trouble:
            raise self.trouble[address]
        seconds = self.outside.get(padding, 0.002) if address == "outside:1" else 0.002
        return ProbeAnswer(True, seconds, message=address, advertised=self.advertised)


class Watched:
    """One broker, watched for ten seconds while all was well."""

    def __init__(
        self,
        late: Callable[[], float] = lambda: 0.0,
        advertised: Mapping[str, str] | None = None,
        listeners: tuple[str, ...] = ("EXTERNAL",),
        address: BrokerAddress = BrokerAddress("inside:1", "outside:1"),  # noqa: B008 - a value
    ) -> None:
        self.listeners = Listeners(advertised)
        self.settings = Reachability(listeners=listeners)
        self.clock = ManualClock()
        self.slow = SlowAnswers()
        self.slow.answered(listeners[0], 2, 0.002, 0.002)
        self.questions = Questions(self.clock)
        self.posts: list[tuple[float, Signal]] = []
        self.watch = BrokerWatch(
            1,
            "here",
            address,
            lambda: self.listeners,
            lambda: self.settings,
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
    assert_wording(watched.posts[-1][1].message)


def test_broker_silent_on_both_paths_never_reports_passing_control(watched: Watched) -> None:
    watched.questions.silent = {"outside:1", "inside:1"}
    watched.run(6)
    failing = [signal for _, signal in watched.posts if signal.reading is Reading.FAILING]
    assert failing
    assert {signal.control for signal in failing} == {Reading.FAILING}


def test_broker_slow_from_here_gets_requests_of_client_size(watched: Watched) -> None:
    watched.listeners.outside = {0: 0.229, CLIENT_BYTES: 0.6}
    watched.run(10)
    signal = watched.posts[-1][1]
    assert watched.listeners.padded == CLIENT_BYTES
    assert (signal.reading, signal.cause) == (Reading.PASSING, UnreachableCause.SLOW)
    assert_wording(signal.message)
    watched.listeners.outside = {}
    watched.run(10)
    assert watched.posts[-1][1].cause is None


def test_unanswered_requests_of_client_size_are_harm_by_slow_path(watched: Watched) -> None:
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
        assert_wording(said)


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


def test_a_delayed_process_counts_no_answer_as_late() -> None:
    kept = [0.0]
    watched = Watched(lambda: kept[0])
    watched.questions.silent = {"outside:1"}
    watched.run(0.5)
    kept[0] = 1.0
    watched.run(LATE)
    watched.questions.silent = set()
    watched.run(5)
    assert [signal.reading for _, signal in watched.posts] == [Reading.PASSING]


FIRST, SECOND = "CLIENTS", "PARTNERS"
BOTH = {"INTERNAL": "inside:1", FIRST: "outside:1", SECOND: "partners:1"}


def two(advertised: Mapping[str, str] = BOTH) -> Watched:
    """A broker of which two listeners are watched; only its internal address is known at first."""
    return Watched(advertised=advertised, listeners=(FIRST, SECOND), address=BrokerAddress("inside:1"))


def failing_at(signal: Signal) -> list[str]:
    return [one.name for one in signal.listeners if one.reading is Reading.FAILING]


def test_each_listener_is_asked_in_every_round_and_control_once() -> None:
    watched = two()
    before = len(watched.listeners.asked)
    watched.run(10)
    asked = watched.listeners.asked[before:]
    assert {address: asked.count(address) for address in asked} == {"inside:1": 10, "outside:1": 10, "partners:1": 10}


def test_where_one_listener_is_watched_nothing_else_is_asked(watched: Watched) -> None:
    assert set(watched.listeners.asked) == {"outside:1", "inside:1"}
    assert [signal.listeners for _, signal in watched.posts] == [()]


def test_listeners_that_all_answer_are_one_signal_that_names_none() -> None:
    watched = two()
    assert [(signal.reading, signal.listeners) for _, signal in watched.posts] == [(Reading.PASSING, ())]
    assert_wording(watched.posts[-1][1].message)


def test_second_listener_alone_makes_broker_fail_and_is_named() -> None:
    watched = two()
    watched.questions.silent = {"partners:1"}
    watched.run(6)
    last = watched.posts[-1][1]
    assert (last.reading, last.control, failing_at(last)) == (Reading.FAILING, Reading.PASSING, [SECOND])
    assert last.message.startswith("PARTNERS: probes lost ")
    assert last.harm == last.listeners[0].harm


def test_each_listener_has_a_harm_of_its_own() -> None:
    watched = two()
    watched.questions.silent = {"partners:1"}
    watched.run(20)
    watched.questions.silent = {"partners:1", "outside:1"}
    watched.run(5)
    by_name = {one.name: one.harm for one in watched.posts[-1][1].listeners}
    assert by_name[FIRST] is not None
    assert by_name[SECOND] is not None
    assert by_name[FIRST].lost_seconds < 6 < 15 < by_name[SECOND].lost_seconds
    assert watched.posts[-1][1].harm == by_name[SECOND]


def test_the_broker_passes_once_its_last_listener_does() -> None:
    watched = two()
    watched.questions.silent = {"partners:1", "outside:1"}
    watched.run(6)
    watched.questions.silent = {"partners:1"}
    watched.run(12)
    assert failing_at(watched.posts[-1][1]) == [SECOND]
    watched.questions.silent = set()
    watched.run(12)
    last = watched.posts[-1][1]
    assert (last.reading, last.listeners) == (Reading.PASSING, ())
    assert last.since == watched.watch.states[SECOND].external.reading_since


def test_listener_that_is_cut_is_no_freeze_while_another_answers() -> None:
    watched = two()
    watched.questions.silent = {"partners:1", "inside:1"}
    watched.run(6)
    watched.questions.silent = set()
    watched.run(3)
    assert {state.frozen_seconds for state in watched.watch.states.values()} == {0.0}


def test_unadvertised_listener_is_unknown_and_its_field_is_named() -> None:
    watched = two({"INTERNAL": "inside:1", FIRST: "outside:1"})
    last = watched.posts[-1][1]
    assert (last.reading, last.listeners) == (Reading.PASSING, (ListenerReading(SECOND, Reading.UNKNOWN),))
    assert_wording(last.message)


def test_signal_is_unknown_where_only_listener_is_unadvertised() -> None:
    watched = Watched(advertised={"INTERNAL": "inside:1"}, address=BrokerAddress("inside:1"))
    last = watched.posts[-1][1]
    assert (last.reading, len(watched.posts)) == (Reading.UNKNOWN, 1)
    assert_wording(last.message)


def test_listener_that_is_no_longer_advertised_is_no_longer_asked() -> None:
    watched = two()
    watched.listeners.advertised = {"INTERNAL": "inside:1", FIRST: "outside:1"}
    watched.run(3)
    before = watched.listeners.asked.count("partners:1")
    watched.run(6)
    assert watched.listeners.asked.count("partners:1") == before
    last = watched.posts[-1][1]
    assert (last.reading, last.listeners) == (Reading.PASSING, (ListenerReading(SECOND, Reading.UNKNOWN),))


def test_trouble_with_credentials_of_one_listener_leaves_other_known() -> None:
    watched = two()
    watched.listeners.trouble["partners:1"] = Unauthenticated("not for this listener")
    watched.run(6)
    last = watched.posts[-1][1]
    assert (last.reading, last.listeners) == (Reading.PASSING, (ListenerReading(SECOND, Reading.UNKNOWN),))
    assert_wording(last.message)


def test_listener_that_is_added_is_watched_from_next_round_on(watched: Watched) -> None:
    watched.listeners.advertised = {"EXTERNAL": "outside:1", SECOND: "partners:1"}
    watched.settings = Reachability(listeners=("EXTERNAL", SECOND))
    watched.run(3)
    assert "partners:1" in watched.listeners.asked
    watched.settings = Reachability(listeners=(SECOND,))
    watched.run(3)
    before = watched.listeners.asked.count("outside:1")
    watched.run(3)
    assert watched.listeners.asked.count("outside:1") == before


def test_of_two_listeners_the_slow_one_is_named() -> None:
    watched = Watched(listeners=("CLIENTS", "PARTNERS"), advertised={"CLIENTS": "outside:1", "PARTNERS": "outside:2"})
    watched.listeners.outside = {0: 0.229, CLIENT_BYTES: 0.6}
    watched.run(10)
    signal = watched.posts[-1][1]
    assert (signal.reading, signal.cause) == (Reading.PASSING, UnreachableCause.SLOW)
    assert signal.listeners == (ListenerReading("CLIENTS", Reading.PASSING, cause=UnreachableCause.SLOW),)
    assert signal.at_listener("PARTNERS").cause is None
