"""The canary's requests to real brokers: latencies, cuts and recoveries, and a topic that is never created."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.canary_client import ConfluentCanary
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading, Signal
from bellwether.kafka_connection import Connection
from bellwether.ports.canary import PRODUCE
from bellwether.ports.errors import Terminal
from bellwether.probes.canary.canary_probe import CanaryProbe
from bellwether.telemetry.metrics.probe_metrics import CanaryMetrics, ProbeMetrics
from realparts.kafka import KafkaCluster, create_topics
from realparts.kafka_topics import delete_topics, live_brokers
from testkit.kafka.contract_clusters import KafkaSubject
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until

pytestmark = pytest.mark.kafka
BROKERS = frozenset({1, 2, 3})


def outside(cluster: KafkaCluster) -> Connection:
    return Connection(tuple(cluster.broker(broker).external for broker in sorted(BROKERS)), PLAINTEXT)


@pytest.fixture
def topic(breakable_kafka: KafkaCluster) -> Iterator[str]:
    """A canary topic with a partition on each broker, until the test is over."""
    name = f"canary-{uuid.uuid4()}"
    create_topics(breakable_kafka.bootstrap, {name: 3}, assignments={name: [[1], [2], [3]]})
    yield name
    delete_topics(breakable_kafka.bootstrap, [name])


@pytest.fixture
def client(breakable_kafka: KafkaCluster, topic: str) -> Iterator[ConfluentCanary]:
    made = ConfluentCanary(outside(breakable_kafka), topic, limit(2))
    yield made
    made.close()


class Bench:
    """A running probe and the last signal about each broker."""

    def __init__(self, client: ConfluentCanary) -> None:
        self.last: dict[int, Signal] = {}
        # Far above what a busy machine needs, and below what each fault adds.
        self.probe = CanaryProbe("here", self._post, lambda _: None, SystemClock(), CanaryMetrics(ProbeMetrics()))
        self.probe.configure(Objectives(produce_milliseconds=500, fetch_milliseconds=500))
        until(client.partitions, 60, so=lambda found: set(found) == BROKERS)
        self.probe.refresh(client, client.partitions(), BROKERS)
        self.probe.start()

    def _post(self, signal: Signal) -> None:
        self.last[signal.broker] = signal

    def until_read(self, broker: int, reading: Reading) -> None:
        until(lambda: broker in self.last and self.last[broker].reading is reading, 90)


@pytest.fixture
def bench(client: ConfluentCanary) -> Iterator[Bench]:
    made = Bench(client)
    for broker in BROKERS:
        made.until_read(broker, Reading.PASSING)
    yield made
    made.probe.stop()


def test_every_broker_is_produced_to_and_fetched_from(bench: Bench, client: ConfluentCanary) -> None:
    assert client.partitions() == {1: 0, 2: 1, 3: 2}
    for state in bench.probe.states().values():
        assert state.produce.times
        assert state.fetch.times


def test_broker_that_is_cut_off_fails_alone_and_passes_again(bench: Bench, breakable_kafka: KafkaCluster) -> None:
    proxy = breakable_kafka.proxy
    assert proxy is not None
    proxy.cut("broker-2")
    bench.until_read(2, Reading.FAILING)
    harm = bench.last[2].harm
    assert harm is not None
    assert harm.lost_seconds >= 1
    assert {bench.last[1].reading, bench.last[3].reading} == {Reading.PASSING}
    proxy.mend("broker-2")
    bench.until_read(2, Reading.PASSING)


def test_network_that_delays_every_answer_fails_by_latency_of_produce(
    bench: Bench, breakable_kafka: KafkaCluster
) -> None:
    proxy = breakable_kafka.proxy
    assert proxy is not None
    proxy.slow("broker-3", 800)
    bench.until_read(3, Reading.FAILING)
    until(lambda: bench.probe.states()[3].worse.kind == PRODUCE, 60)  # fetches are late, too, and may fail first
    until(lambda: bench.probe.states()[3].produce.times[-1] >= 0.8, 60)
    assert bench.last[1].reading is Reading.PASSING
    proxy.mend("broker-3")
    bench.until_read(3, Reading.PASSING)


def test_a_frozen_broker_counts_while_its_answers_are_late(bench: Bench, breakable_kafka: KafkaCluster) -> None:
    broker = breakable_kafka.broker(1)
    broker.pause()
    try:
        bench.until_read(1, Reading.FAILING)
    finally:
        broker.resume()
    broker.wait_ready()
    bench.until_read(1, Reading.PASSING)
    until(lambda: live_brokers(broker.internal), 60, so={1, 2, 3}.__eq__)


def test_a_topic_that_does_not_exist_is_not_created(breakable_kafka: KafkaCluster) -> None:
    name = f"never-{uuid.uuid4()}"
    client = ConfluentCanary(outside(breakable_kafka), name, 2)
    try:
        with pytest.raises(Terminal, match=f"topic {name} does not exist"):
            client.partitions()
        client.produce(0)
        time.sleep(3)
        with pytest.raises(Terminal, match=f"topic {name} does not exist"):
            client.partitions()
    finally:
        client.close()


def test_partitions_with_several_replicas_are_no_canaries(breakable_kafka: KafkaCluster) -> None:
    name = f"canary-{uuid.uuid4()}"
    create_topics(breakable_kafka.bootstrap, {name: 2}, assignments={name: [[1], [3]]})
    client = ConfluentCanary(outside(breakable_kafka), name, 2)
    try:
        until(client.partitions, 60, so={1: 0, 3: 1}.__eq__)
        KafkaSubject(breakable_kafka).reassign(name, (1, 2))
        until(client.partitions, 60, so={3: 1}.__eq__)
    finally:
        client.close()
        delete_topics(breakable_kafka.bootstrap, [name])
