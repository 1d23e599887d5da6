"""A frozen broker (SIGSTOP) keeps its connections and answers nothing: reads and moves go round it, in bounded time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Reorder
from realparts.kafka import KafkaCluster
from testkit.kafka.kafka_site import PATIENT
from testkit.values.security_settings import PLAINTEXT
from waiting import limit

pytestmark = pytest.mark.kafka

ROUND = Limits(opening_seconds=limit(1.5), finding_seconds=limit(20), request_seconds=limit(20), read_seconds=limit(60))
"""One broker is silent, and another answers."""


class Opened:
    """Sees each request, and counts the connections on which no one answered."""

    def __init__(self) -> None:
        self.in_vain = 0

    def __call__(self, request: str, outcome: str, _seconds: float) -> None:
        self.in_vain += request == "Open" and outcome != "ok"


@pytest.fixture
def frozen(brokers: KafkaCluster, topic: str) -> Iterator[KafkaCluster]:
    """Broker 1 frozen, for less than its session, once the topic exists."""
    brokers.broker(1).pause()
    yield brokers
    brokers.mend()


def test_read_goes_round_frozen_broker_that_is_first_in_bootstrap(frozen: KafkaCluster) -> None:
    opened = Opened()
    reader = KafkaReader(
        BrokerPool(Connection((frozen.broker(1).internal, frozen.broker(2).internal), PLAINTEXT), ROUND, opened)
    )
    assert len(reader.read().partitions) >= 3
    reader.read()
    assert opened.in_vain == 1, "the second read must not try the frozen broker again"


def test_move_goes_round_frozen_broker_that_is_first_in_bootstrap(frozen: KafkaCluster, topic: str) -> None:
    opened = Opened()
    mover = KafkaMover(
        BrokerPool(Connection((frozen.broker(1).internal, frozen.broker(2).internal), PLAINTEXT), ROUND, opened)
    )
    others = KafkaReader(BrokerPool(Connection((frozen.broker(2).internal,), PLAINTEXT), PATIENT)).partitions([topic])
    name = next(p.name for p in others if p.replicas[0] != 1)  # on a slow machine broker 1 is fenced by now
    assert mover.elect([name])[name].ok
    assert opened.in_vain == 1


def test_a_frozen_broker_alone_is_transient(frozen: KafkaCluster, topic: str) -> None:
    nodes = BrokerPool(Connection((frozen.broker(1).internal,), PLAINTEXT))
    mover = KafkaMover(nodes)
    with pytest.raises(Transient, match="no answer in time"):
        KafkaReader(nodes).read()
    with pytest.raises(Transient, match="no answer in time"):
        mover.elect([TopicPartition(topic, 0)])
    assert not BrokerProbe(nodes.connection).ask(frozen.broker(1).internal, 1, 0.5).ok


def test_a_broker_to_avoid_gets_no_question_while_another_answers(brokers: KafkaCluster, topic: str) -> None:
    opened = Opened()
    nodes = BrokerPool(Connection((brokers.broker(1).internal,), PLAINTEXT), ROUND, opened)
    reader, mover = KafkaReader(nodes), KafkaMover(nodes)
    reader.read()
    reader.avoid([1])
    brokers.broker(1).pause()
    try:
        reader.read()
        reader.partitions([topic])
        mover.elect([TopicPartition(topic, 0)])
        assert opened.in_vain == 0
    finally:
        brokers.mend()


def test_a_frozen_controller_makes_a_move_transient_and_says_that_it_may_have_been_carried_out(
    brokers: KafkaCluster, reader: KafkaReader, topic: str, connection: Connection
) -> None:
    partition = reader.partitions([topic])[0]
    mover = KafkaMover(BrokerPool(connection, Limits(opening_seconds=10, finding_seconds=20, request_seconds=1)))
    brokers.controller(101).pause()
    try:
        with pytest.raises(Transient, match="may have been carried out"):
            mover.reorder([Reorder(partition.name, partition.replicas)])
    finally:
        brokers.controller(101).resume()
        brokers.mend()
