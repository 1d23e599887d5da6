"""Metadata of real brokers: all of them show the same, so that each can be read in turn while nothing changes."""

from __future__ import annotations

import pytest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition
from bellwether.ports.kafka import Reorder
from realparts.kafka import KafkaCluster
from waiting import until

pytestmark = pytest.mark.kafka


def test_reads_use_every_broker_and_any_of_them_shows_changes(
    brokers: KafkaCluster, nodes: BrokerPool, reader: KafkaReader, mover: KafkaMover, topic: str
) -> None:
    last, answered = reader.read(), set[str]()

    def all_show_the_same() -> bool:
        nonlocal last
        found = reader.read()
        if found is not last:
            answered.clear()
        last = found
        answered.add(nodes.addresses()[0])
        return len(answered) == len(brokers.brokers)

    def first() -> Partition:
        return next(p for p in reader.read().partitions if p.topic == topic and p.index == 0)

    until(all_show_the_same, 60, "each broker to show what the one before it showed", every=0.2)
    before = first()
    order = (*before.replicas[1:], before.replicas[0])
    mover.reorder([Reorder(before.name, order)])
    until(lambda: first().replicas == order, 60, "the new order")
    assert all(first().replicas == order for _ in range(6)), "an older state came back"
