"""What real brokers tell of what could still be lost: min.insync.replicas, voters that keep up, who answers."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.fault_tolerance_reader import KafkaFaultTolerance
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import Connection
from realparts.kafka import create_topics
from testkit.kafka.kafka_site import KafkaSite
from testkit.values.security_settings import PLAINTEXT

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = pytest.mark.kafka

PATIENT = Limits(opening_seconds=10, finding_seconds=20, request_seconds=20, read_seconds=60)


def test_a_healthy_cluster_has_margins_and_no_trailing_replica(kafka: KafkaCluster) -> None:
    topic = f"margins-{uuid.uuid4().hex[:8]}"
    create_topics(kafka.bootstrap, {topic: 3}, configs={"min.insync.replicas": "2"})
    # Each broker learns of the topic in its own time, and any of them may be asked.
    KafkaSite(kafka).everywhere(lambda c: len([p for p in c.partitions if p.topic == topic and p.leader]) == 3)
    nodes = BrokerPool(Connection(tuple(kafka.bootstrap.split(",")), PLAINTEXT), PATIENT)
    partitions = [p for p in KafkaReader(nodes).read().partitions if p.topic == topic]
    followed = {TopicPartition(topic, p.index): p.leader for p in partitions if p.leader not in (None, 1)}
    found = KafkaFaultTolerance(nodes).margins([topic, "never-made"], [1, 2, 3, 99], {1: followed})  # type: ignore[dict-item]
    assert found.problem == ""
    assert found.minimum_isr == {topic: 2}
    assert found.quorum is not None
    assert found.quorum.voters == found.quorum.current == {101}
    assert found.quorum.active == 101
    assert found.quorum.shortage_without(1) is None, "the controller is apart"
    assert found.silent == {99}
    assert not found.trailing
