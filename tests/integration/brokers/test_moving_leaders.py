"""A thousand partitions on real Kafka: one request moves their leaders, and no replica set changes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Reorder
from realparts.kafka import KafkaCluster, create_topics
from waiting import until

pytestmark = pytest.mark.kafka


def settled(
    reader: KafkaReader, topic: str, done: Callable[[tuple[Partition, ...]], bool], seconds: float = 60
) -> tuple[Partition, ...]:
    """The topic's partitions as soon as ``done(partitions)``; brokers learn of the controller's word a little later."""
    return until(lambda: reader.partitions([topic]), seconds, so=done)


def last(broker: int, partition: Partition) -> tuple[int, ...]:
    """The partition's replicas, that broker at the end."""
    return (*(r for r in partition.replicas if r != broker), broker)


def test_a_thousand_partitions_are_read_within_the_usual_limits_and_move_in_one_request(
    brokers: KafkaCluster, connection: Connection, reader: KafkaReader, mover: KafkaMover
) -> None:
    topic = f"many-{time.monotonic_ns()}"
    create_topics(brokers.bootstrap, {topic: 1000}, assignments={topic: [[2, 1], [2, 3]] * 500})
    usual = KafkaReader(BrokerPool(connection))
    until(lambda: len([p for p in usual.read().partitions if p.topic == topic]) == 1000, ignoring=(Transient,))
    before = settled(reader, topic, lambda ps: len(ps) == 1000 and all(p.leader is not None for p in ps))
    orders = [Reorder(p.name, last(2, p)) for p in before]
    assert all(o.ok for o in mover.reorder(orders).values())
    assert all(o.ok for o in mover.elect([p.name for p in before]).values())
    after = settled(reader, topic, lambda ps: all(p.leader != 2 for p in ps))
    assert {p.key: frozenset(p.replicas) for p in after} == {p.key: frozenset(p.replicas) for p in before}
