"""The running probe: news is posted once, a policy that changes is followed, brokers that are gone are forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.core.model.cluster import Broker, Cluster, Partition, TopicPartition
from bellwether.core.settings.detection import ReplicationLag
from bellwether.core.signals import Reading, Signal
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import BrokerLogEnds
from bellwether.probes.replication.lag_round import LagRounds
from bellwether.probes.replication.replication_probe import ReplicationProbe, measure_once, reading
from bellwether.telemetry.metrics.probe_metrics import LagMetrics, ProbeMetrics
from testkit.messages import assert_wording
from waiting import until


class Quick(ReplicationLag):
    period_seconds = 0.02  # type: ignore[assignment]
    timeout_seconds = 0.3  # type: ignore[assignment]


QUICK = Quick(threshold_seconds=0.2)  # type: ignore[arg-type]


class World:
    """Three brokers, each leading one partition that the two others follow; a thousand records a second."""

    def __init__(self) -> None:
        self.stuck: dict[int, int] = {}
        self.silent: set[int] = set()
        self.trouble: Exception | None = None
        self.asks = 0
        partitions = tuple(Partition("t", "T", n, (1, 2, 3), (1, 2, 3), n + 1, 4) for n in range(3))
        self.cluster = Cluster("c", {b: Broker(b, host="h", port=b) for b in (1, 2, 3)}, partitions)

    def read(self) -> Cluster:
        if self.trouble is not None:
            raise self.trouble
        return self.cluster

    @property
    def end(self) -> int:
        return int(1000 * SystemClock().monotonic())

    def ask(self, address: str, replicas: Mapping[TopicPartition, int], *_: float) -> Any:
        self.asks += 1
        broker = int(address.partition(":")[2])
        if broker in self.silent:
            return BrokerLogEnds(problem="no answer in time")
        now = SystemClock().monotonic()
        end = int(1000 * now)
        return BrokerLogEnds(
            {n: min(end, self.stuck.get(broker, end)) if e < 0 else end for n, e in replicas.items()}, now, now
        )


class Bench:
    def __init__(self) -> None:
        self.world = World()
        self.posts: list[Signal] = []
        self.forgotten: list[int] = []
        self.kept: frozenset[int] | None = frozenset()
        self.metrics = ProbeMetrics()
        clock = SystemClock()
        self.probe = ReplicationProbe(
            "replication",
            self.posts.append,
            self.forgotten.append,
            lambda: self.kept,
            clock,
            LagMetrics(self.metrics),
        )
        self.probe.start()
        self.configure()

    def configure(self, settings: ReplicationLag = QUICK) -> None:
        self.probe.configure(LagRounds(self.world, self.world, SystemClock()), settings)

    def readings(self) -> dict[int, Reading]:
        return {signal.broker: signal.reading for signal in list(self.posts)}

    def are(self, *readings: Reading) -> Callable[[], bool]:
        return lambda: [self.readings().get(b) for b in (1, 2, 3)] == list(readings)

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"bellwether_probe_{name}", labels)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.probe.stop()


GOOD, BAD, NOT_KNOWN = Reading.PASSING, Reading.FAILING, Reading.UNKNOWN


def test_stuck_follower_fails_and_passes_again_and_others_always_pass(bench: Bench) -> None:
    until(bench.are(GOOD, GOOD, GOOD))
    bench.world.stuck[3] = bench.world.end
    until(bench.are(GOOD, GOOD, BAD))
    assert bench.posts[-1].value is not None
    assert bench.posts[-1].value >= QUICK.threshold_seconds
    del bench.world.stuck[3]
    until(bench.are(GOOD, GOOD, GOOD))
    assert {signal.reading for signal in bench.posts if signal.broker != 3} == {GOOD}


def test_settled_readings_are_posted_once(bench: Bench) -> None:
    until(bench.are(GOOD, GOOD, GOOD))
    posts, asks = len(bench.posts), bench.world.asks
    until(lambda: bench.world.asks > asks + 60)
    assert len(bench.posts) == posts == 3


def test_a_new_voice_says_everything_again(bench: Bench) -> None:
    until(bench.are(GOOD, GOOD, GOOD))
    bench.posts.clear()
    bench.probe.repeat()
    until(bench.are(GOOD, GOOD, GOOD))


def test_a_silent_broker_is_unknown_and_the_others_pass(bench: Bench) -> None:
    until(bench.are(GOOD, GOOD, GOOD))
    bench.world.silent = {2}
    until(bench.are(GOOD, NOT_KNOWN, GOOD))
    assert_wording(bench.posts[-1].message)


def test_cluster_unreadable_from_start_reports_nothing_and_prober_lives(bench: Bench) -> None:
    bench.world.trouble = Transient("no broker answered")
    bench.configure()
    until(bench.are(NOT_KNOWN, NOT_KNOWN, NOT_KNOWN) if bench.posts else lambda: True)
    assert bench.probe.alive()


def test_broker_gone_from_metadata_is_unknown_and_then_forgotten(bench: Bench) -> None:
    until(bench.are(GOOD, GOOD, GOOD))
    bench.kept = frozenset({3})
    only = replace(bench.world.cluster.partitions[0], replicas=(1, 2), isr=(1, 2))
    bench.world.cluster = Cluster("c", {b: Broker(b, host="h", port=b) for b in (1, 2)}, (only,))
    bench.configure()
    until(bench.are(GOOD, GOOD, NOT_KNOWN))
    bench.kept = None
    asks = bench.world.asks
    until(lambda: bench.world.asks > asks + 10)
    assert bench.forgotten == [], "no broker is forgotten while it is not known which are kept"
    bench.kept = frozenset()
    until(lambda: bench.forgotten == [3])
    assert bench.sample("reading", broker="3") is None
    assert bench.sample("replication_rounds_total", broker="3", result="ok") is None


def test_without_a_policy_no_broker_is_asked(bench: Bench) -> None:
    until(bench.are(GOOD, GOOD, GOOD))
    bench.probe.configure(None, QUICK)

    def quiet() -> bool:
        asks = bench.world.asks
        time.sleep(0.2)
        return bench.world.asks == asks

    until(quiet)  # once a round that was under way has ended
    assert bench.probe.alive()


def test_figures_are_measured_by_broker(bench: Bench) -> None:
    until(bench.are(GOOD, GOOD, GOOD))
    bench.world.stuck[3] = bench.world.end
    until(lambda: bench.sample("replication_lagging_partitions", broker="3", isr="in") == 2)
    assert bench.sample("replication_lagging_partitions", broker="3", isr="out") == 0
    assert (bench.sample("replication_lag_seconds", broker="3") or 0) > QUICK.threshold_seconds
    assert bench.sample("replication_partitions") == 3
    bench.world.silent = {3}
    until(lambda: bench.sample("replication_lag_seconds", broker="3") is None)
    assert (bench.sample("replication_rounds_total", broker="3", result="failed") or 0) > 0


class TestOnce:
    def measure(self, world: World, monkeypatch: pytest.MonkeyPatch) -> dict[int, Reading]:
        monkeypatch.setattr("bellwether.probes.replication.replication_probe._ONCE_SECONDS", 0.02)
        lag_rounds = LagRounds(world, world, SystemClock())
        try:
            return {
                b: reading(measurement) for b, measurement in measure_once(lag_rounds, QUICK, SystemClock()).items()
            }
        finally:
            lag_rounds.close()

    def test_a_cluster_that_follows_passes_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = World()
        assert self.measure(world, monkeypatch) == {1: GOOD, 2: GOOD, 3: GOOD}
        assert world.asks < 30

    def test_stuck_follower_is_watched_until_lag_is_plain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = World()
        world.stuck[3] = world.end - 1  # behind from the first round on
        assert self.measure(world, monkeypatch) == {1: GOOD, 2: GOOD, 3: BAD}

    def test_a_silent_broker_is_not_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = World()
        world.silent = {1}
        assert self.measure(world, monkeypatch)[1] is NOT_KNOWN
