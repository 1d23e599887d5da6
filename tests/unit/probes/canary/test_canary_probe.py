"""Rounds of the canary with a client and a clock of the test: what is sent, what is late, and what is reported."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading, Signal
from bellwether.ports.canary import FETCH, PRODUCE, CanaryResult
from bellwether.probes.canary.canary_probe import CanaryProbe
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.metrics.probe_metrics import CanaryMetrics, ProbeMetrics
from testkit.messages import assert_wording

TICK = 0.02
PARTITIONS = {1: 10, 2: 20}


class Brokers:
    """Acknowledges records after ``latency`` seconds and delivers them ``transit`` seconds later.

    Partitions in ``silent`` acknowledge nothing, and those in ``stuck`` deliver nothing.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.latency = self.transit = 0.002
        self.silent: set[int] = set()
        self.stuck: set[int] = set()
        self.refusal = self.fetch_refusal = ""
        self.sent: list[int] = []
        self.consumed: list[set[int]] = []
        self.pause = 0.0
        self._waiting: list[tuple[float, CanaryResult]] = []

    def produce(self, partition: int) -> None:
        self.sent.append(partition)
        now, offset = self.clock.monotonic(), len(self.sent)
        if self.refusal:
            refused = CanaryResult(partition, PRODUCE, 0.0, self.refusal, own_trouble=True)
            self._waiting.append((now, refused))
        elif partition not in self.silent:
            acknowledged = CanaryResult(partition, PRODUCE, self.latency, offset=offset)
            self._waiting.append((now + self.latency, acknowledged))
            if partition not in self.stuck:
                arrived = CanaryResult(partition, FETCH, 0.0, offset=offset)
                self._waiting.append((now + self.latency + self.transit, arrived))

    def consume(self, partitions: Collection[int]) -> None:
        self.consumed.append(set(partitions))
        if self.fetch_refusal:
            refused = (CanaryResult(one, FETCH, 0.0, self.fetch_refusal, own_trouble=True) for one in partitions)
            self._waiting += [(self.clock.monotonic(), result) for result in refused]

    def results(self, timeout_seconds: float) -> list[CanaryResult]:
        self.clock.advance(timeout_seconds + self.pause)
        self.pause, now = 0.0, self.clock.monotonic()
        ended = [result for at, result in sorted(self._waiting, key=lambda one: one[0]) if at <= now]
        self._waiting = [(at, result) for at, result in self._waiting if at > now]
        return ended


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.brokers = Brokers(self.clock)
        self.posts: list[Signal] = []
        self.forgotten: list[int] = []
        metrics = CanaryMetrics(ProbeMetrics())
        self.probe = CanaryProbe("here", self.posts.append, self.forgotten.append, self.clock, metrics)
        self.probe.configure(Objectives(produce_milliseconds=50, fetch_milliseconds=50))
        self.refresh(PARTITIONS)

    def refresh(self, partitions: dict[int, int], *brokers: int) -> None:
        self.probe.refresh(self.brokers, partitions, frozenset(brokers or PARTITIONS))

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK)):
            self.probe.run_round()

    def last(self, broker: int) -> Signal:
        return [post for post in self.posts if post.broker == broker][-1]


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.run(8)
    return made


def test_each_broker_gets_one_record_a_second_which_is_consumed(bench: Bench) -> None:
    bench.brokers.sent.clear()
    bench.run(10)
    assert {bench.brokers.sent.count(partition) for partition in (10, 20)} <= {9, 10, 11}
    assert bench.brokers.consumed == [{10, 20}]


def test_good_brokers_are_reported_as_passing_and_then_no_more(bench: Bench) -> None:
    assert {(post.broker, post.reading) for post in bench.posts} == {(1, Reading.PASSING), (2, Reading.PASSING)}
    posted = len(bench.posts)
    bench.run(60)
    assert len(bench.posts) == posted


def test_once_refused_fetches_are_not_measured_until_record_arrives() -> None:
    bench = Bench()
    bench.brokers.fetch_refusal, bench.brokers.stuck = "grant Read", {10, 20}
    bench.run(30)
    assert bench.last(1).reading is Reading.PASSING, "produce is measured"
    assert_wording(bench.last(1).message)
    assert bench.last(1).harm is None
    bench.brokers.stuck = set()
    bench.run(10)
    assert bench.probe.states()[1].fetch.trouble == ""
    assert bench.probe.states()[1].fetch.times


def test_silent_broker_counts_with_one_record_under_way(bench: Bench) -> None:
    bench.brokers.silent, before = {10}, bench.clock.monotonic()
    bench.brokers.sent.clear()
    bench.run(1.9)
    found = bench.last(1)
    assert found.reading is Reading.FAILING
    assert found.harm is not None
    # The slice before the first late request covers the second before it.
    assert found.harm.lost_seconds <= bench.clock.monotonic() - before + 1
    assert bench.brokers.sent.count(10) == 1
    assert bench.last(2).reading is Reading.PASSING


def test_missing_records_count_as_late_fetches_while_produce_passes(bench: Bench) -> None:
    bench.brokers.stuck = {10}
    bench.run(8)
    state = bench.probe.states()[1]
    assert (state.produce.counter.reading, state.fetch.counter.reading) == (Reading.PASSING, Reading.FAILING)
    assert state.fetch.counter.lost_seconds == pytest.approx(0.9 * 8, abs=1.0)
    assert_wording(bench.last(1).message)
    bench.brokers.stuck = set()
    bench.run(10)
    assert bench.last(1).reading is Reading.PASSING


def test_one_late_answer_counts_half_around_it_without_failing(bench: Bench) -> None:
    bench.brokers.latency, sent = 0.4, bench.brokers.sent.count(10)
    while bench.brokers.sent.count(10) == sent:
        bench.run(TICK)
    bench.brokers.latency = 0.002
    bench.run(0.8)
    assert bench.probe.states()[1].produce.counter.lost_seconds == pytest.approx(0.4, abs=0.05)
    bench.run(10)
    assert {post.reading for post in bench.posts if post.broker == 1} == {Reading.PASSING}


def test_only_records_missed_while_consumer_starts_are_not_late() -> None:
    bench = Bench()
    bench.brokers.stuck = {10, 20}
    bench.run(3)
    bench.brokers.stuck = {10}
    bench.run(1.5)
    assert [bench.probe.states()[b].fetch.counter.lost_seconds for b in (1, 2)] == [0.0, 0.0]
    bench.run(10)
    assert bench.last(1).reading is Reading.FAILING
    assert bench.last(2).reading is Reading.PASSING


def test_record_before_its_acknowledgement_was_fetched_in_no_time(bench: Bench) -> None:
    bench.brokers.transit = -0.001
    bench.run(10)
    assert bench.probe.states()[1].fetch.times[-1] == 0.0


def test_late_answers_fail_and_a_quick_broker_passes_again(bench: Bench) -> None:
    bench.brokers.latency = 0.2
    bench.run(10)
    assert bench.last(1).reading is Reading.FAILING
    bench.brokers.latency = 0.002
    bench.run(10)
    assert bench.last(1).reading is Reading.PASSING


def test_answers_late_because_process_paused_are_no_evidence(bench: Bench) -> None:
    bench.refresh({1: 10}, 1)
    for _ in range(10):
        bench.brokers.latency, sent = 3.0, len(bench.brokers.sent)
        while len(bench.brokers.sent) == sent:
            bench.run(TICK)
        bench.brokers.latency, bench.brokers.pause = 0.002, 3.0
        bench.run(4)
    assert {post.reading for post in bench.posts} == {Reading.PASSING}


def test_broker_without_partition_is_unknown_and_says_what_to_do(bench: Bench) -> None:
    bench.refresh({1: 10})
    bench.run(1)
    found = bench.last(2)
    assert found.reading is Reading.UNKNOWN
    assert_wording(found.message)


def test_topic_that_is_missing_makes_all_unknown_with_reason(bench: Bench) -> None:
    bench.probe.refresh(None, {}, frozenset(PARTITIONS), "topic bellwether-canary does not exist")
    bench.run(1)
    assert_wording({bench.last(broker).message for broker in PARTITIONS})
    posted = len(bench.posts)
    bench.probe.repeat()
    bench.run(1)
    assert len(bench.posts) == posted + 2


def test_a_broker_that_leaves_is_forgotten(bench: Bench) -> None:
    bench.refresh({1: 10}, 1)
    bench.run(1)
    assert bench.forgotten == [2]


def test_right_that_is_missing_is_unknown_and_is_reported_once(bench: Bench) -> None:
    bench.brokers.refusal = "not authorized: grant Write on topic bellwether-canary"
    bench.run(10)
    posted = len(bench.posts)
    assert bench.last(1).reading is Reading.UNKNOWN
    assert "grant Write" in bench.last(1).message
    bench.run(10)
    assert len(bench.posts) == posted
