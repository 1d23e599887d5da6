"""A frozen broker (SIGSTOP) keeps its connections and answers nothing: reads and moves go round it, in bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bellwether.adapters.kafka.mover import KafkaMover
from bellwether.adapters.kafka.nodes import Limits, Nodes
from bellwether.adapters.kafka.probing import BrokerProbe
from bellwether.adapters.kafka.reader import KafkaReader
from bellwether.connections import Connection
from bellwether.core.clusters import TopicPartition
from bellwether.ports import Reorder, Transient
from realparts.kafka import KafkaCluster
from testkit.stopwatch import at_best

pytestmark = pytest.mark.kafka


@pytest.fixture
def frozen(brokers: KafkaCluster, topic: str) -> Iterator[KafkaCluster]:
    """Broker 1 frozen, for less than its session, once the topic stands."""
    brokers.broker(1).pause()
    yield brokers
    brokers.mend()


def test_a_read_goes_round_a_frozen_broker_that_is_first_in_bootstrap(frozen: KafkaCluster) -> None:
    readers: list[KafkaReader] = []

    def read() -> None:
        readers.append(KafkaReader(Nodes(Connection((frozen.broker(1).internal, frozen.broker(2).internal)))))
        assert len(readers[-1].read().partitions) >= 12

    assert at_best(read, 2.5, spoilt=Transient) < 2.5
    assert at_best(readers[-1].read, 1) < 1, "the second read must not try the frozen broker again"


def test_a_move_goes_round_a_frozen_broker_that_is_first_in_bootstrap(frozen: KafkaCluster, topic: str) -> None:
    limit = Limits().mutation_seconds

    def elect() -> None:
        mover = KafkaMover(Nodes(Connection((frozen.broker(1).internal, frozen.broker(2).internal))))
        assert mover.request_timeout_seconds == limit
        assert mover.elect([TopicPartition(topic, 0)])[TopicPartition(topic, 0)].ok

    assert at_best(elect, limit, spoilt=Transient) < limit


def test_a_frozen_broker_alone_is_transient_in_bounded_time(frozen: KafkaCluster, topic: str) -> None:
    nodes = Nodes(Connection((frozen.broker(1).internal,)))
    mover = KafkaMover(nodes)
    started = time.monotonic()
    with pytest.raises(Transient, match="no answer in time"):
        KafkaReader(nodes).read()
    with pytest.raises(Transient, match="no answer in time"):
        mover.elect([TopicPartition(topic, 0)])
    assert time.monotonic() - started < nodes.limits.read_seconds + mover.request_timeout_seconds

    def probe() -> None:
        assert not BrokerProbe(nodes.connection).ask(frozen.broker(1).internal, 1, 0.5).ok

    assert at_best(probe, 0.8) < 0.8


def test_a_broker_to_avoid_gets_no_question_while_another_answers(brokers: KafkaCluster, topic: str) -> None:
    nodes = Nodes(Connection((brokers.broker(1).internal,)))
    reader, mover = KafkaReader(nodes), KafkaMover(nodes)
    reader.read()
    reader.avoid([1])
    brokers.broker(1).pause()
    try:

        def work() -> None:
            reader.read()
            reader.partitions([topic])
            mover.elect([TopicPartition(topic, 0)])

        assert at_best(work, 1, spoilt=Transient) < 1
    finally:
        brokers.mend()


def test_a_broker_to_avoid_is_asked_when_no_other_answers(brokers: KafkaCluster) -> None:
    nodes = Nodes(Connection((brokers.broker(1).internal,)))
    reader = KafkaReader(nodes)
    cluster = reader.read()
    reader.avoid(list(cluster.brokers))
    assert reader.read().cluster_id == cluster.cluster_id


def test_a_frozen_controller_makes_a_move_transient_and_says_that_it_may_have_been_carried_out(
    brokers: KafkaCluster, reader: KafkaReader, topic: str, connection: Connection
) -> None:
    partition = reader.partitions([topic])[0]
    mover = KafkaMover(Nodes(connection, Limits(opening_seconds=10, finding_seconds=20, request_seconds=1)))

    def move() -> None:
        with pytest.raises(Transient, match="may have been carried out"):
            mover.reorder([Reorder(partition.name, partition.replicas)])

    limit = Limits(request_seconds=1).mutation_seconds + 0.5
    brokers.controller(101).pause()
    try:
        assert at_best(move, limit) < limit
    finally:
        brokers.controller(101).resume()
        brokers.mend()
