"""Reorder, elect and cancel on real Kafka: leaders move, replica sets do not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Reorder
from realparts.kafka import KafkaCluster, create_topics
from testkit.kafka.kafka_site import KafkaSite
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


def test_reorder_and_elect_move_every_leader_away_and_change_no_replica_set(
    reader: KafkaReader, mover: KafkaMover, fresh_topic: str
) -> None:
    before = {p.key: p for p in reader.partitions([fresh_topic])}
    held = [p for p in before.values() if p.leader == 1]
    assert held

    orders = [Reorder(p.name, last(1, p)) for p in before.values()]
    assert {o.error for o in mover.reorder(orders).values()} == {"NONE"}
    reordered = settled(reader, fresh_topic, lambda ps: all(p.replicas[-1] == 1 for p in ps))
    assert {p.key: p.leader for p in reordered} == {p.key: p.leader for p in before.values()}

    outcomes = mover.elect([p.name for p in before.values()])
    assert all(o.ok for o in outcomes.values())
    assert {o.error for o in outcomes.values()} == {"NONE", "ELECTION_NOT_NEEDED"}
    after = settled(reader, fresh_topic, lambda ps: all(p.leader == p.replicas[0] for p in ps))
    assert {p.key: frozenset(p.replicas) for p in after} == {k: frozenset(p.replicas) for k, p in before.items()}
    assert all(p.leader != 1 and 1 in p.isr and not p.reassigning for p in after)


def test_a_changed_replication_factor_is_refused_and_changes_nothing(
    reader: KafkaReader, mover: KafkaMover, topic: str
) -> None:
    partition = reader.partitions([topic])[0]
    outcome = mover.reorder([Reorder(partition.name, partition.replicas[:2])])[partition.name]
    assert outcome.error == "INVALID_REPLICATION_FACTOR"
    assert not outcome.ok
    assert reader.partitions([topic])[0] == partition


def test_every_partition_gets_its_own_answer(reader: KafkaReader, mover: KafkaMover, fresh_topic: str) -> None:
    good = reader.partitions([fresh_topic])[0]
    assert good.leader == good.replicas[0]
    gone = TopicPartition("no-such-topic", 0)
    beyond = TopicPartition(fresh_topic, 4711)
    unknown_broker = TopicPartition(fresh_topic, 1)
    outcomes = mover.reorder(
        [
            Reorder(gone, (1, 2, 3)),
            Reorder(good.name, good.replicas[1:] + good.replicas[:1]),
            Reorder(beyond, (1, 2, 3)),
            Reorder(unknown_broker, (1, 2, 99)),
        ]
    )
    assert {name: o.error for name, o in outcomes.items()} == {
        gone: "UNKNOWN_TOPIC_OR_PARTITION",
        good.name: "NONE",
        beyond: "UNKNOWN_TOPIC_OR_PARTITION",
        unknown_broker: "INVALID_REPLICA_ASSIGNMENT",
    }
    assert all(o.message for o in outcomes.values() if not o.ok)
    elected = mover.elect([gone, good.name, beyond])
    assert {name: o.error for name, o in elected.items()} == {
        gone: "UNKNOWN_TOPIC_OR_PARTITION",
        good.name: "NONE",
        beyond: "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_cancelling_where_nothing_moves_is_said_so(mover: KafkaMover, topic: str) -> None:
    name = TopicPartition(topic, 0)
    assert mover.cancel([name])[name].error == "NO_REASSIGNMENT_IN_PROGRESS"


def test_a_reassignment_under_way_is_seen_and_can_be_cancelled(
    brokers: KafkaCluster, reader: KafkaReader, mover: KafkaMover
) -> None:
    name = TopicPartition(f"moving-{time.monotonic_ns()}", 0)
    create_topics(brokers.bootstrap, {name.topic: 1}, assignments={name.topic: [[1, 2]]})
    settled(reader, name.topic, lambda ps: len(ps) == 1)
    # Broker 3 is frozen, so that it cannot take the replica over and the reassignment stays under way.
    brokers.broker(3).pause()
    try:
        assert mover.reorder([Reorder(name, (1, 3))])[name].ok
        moving = settled(reader, name.topic, lambda ps: any(p.reassigning for p in ps))[0]
        assert (moving.adding, moving.removing) == ((3,), (2,))
        KafkaSite(brokers).eventually(lambda c: moving.key in c.by_key and c.by_key[moving.key].reassigning)
        assert mover.cancel([name])[name].ok
        # The controller ends it; the replicas come from a broker, whose metadata may be that of a moment before.
        settled(reader, name.topic, lambda ps: not ps[0].reassigning and sorted(ps[0].replicas) == [1, 2])
    finally:
        brokers.mend()


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
