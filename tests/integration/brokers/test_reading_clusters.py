"""The snapshot says what another client sees."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from bellwether.adapters.kafka.canary_client import for_confluent
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition
from bellwether.kafka_connection import Connection
from realparts import kafka_jars
from realparts.kafka import KafkaCluster, create_topics
from testkit.kafka.kafka_site import KafkaSite
from waiting import limit, until

pytestmark = pytest.mark.kafka


def test_the_snapshot_equals_what_another_client_sees(
    brokers: KafkaCluster, connection: Connection, reader: KafkaReader, topic: str
) -> None:
    create_topics(
        brokers.bootstrap, {f"other-{topic}": 3}, assignments={f"other-{topic}": [[3, 1, 2], [2, 1, 3], [1, 3, 2]]}
    )
    # The two clients may ask different brokers, each of which learns in its own time.
    KafkaSite(brokers).everywhere(
        lambda c: len([p for p in c.partitions if p.topic == f"other-{topic}" and len(p.isr) == 3 and p.leader]) == 3
    )
    cluster = reader.read()
    client = AdminClient(for_confluent(connection))
    seen = client.list_topics(timeout=limit(30))
    described = client.describe_topics(TopicCollection([topic, f"other-{topic}"]))
    # Kafka's own tools print ids in the alphabet that is safe in URLs and file names; this client does not.
    urlsafe = str.maketrans("+/", "-_")
    ids = {name: str(future.result(limit(30)).topic_id).translate(urlsafe) for name, future in described.items()}

    assert cluster.cluster_id == seen.cluster_id == brokers.cluster_id
    assert {b.id: (b.host, b.port, b.fenced) for b in cluster.brokers.values()} == {
        b.id: (b.host, b.port, False) for b in seen.brokers.values()
    }
    ours = {(p.topic, p.index): (p.replicas, p.isr, p.leader) for p in cluster.partitions}
    assert ours == {
        (name, index): (tuple(p.replicas), tuple(p.isrs), p.leader)
        for name, found in seen.topics.items()
        for index, p in found.partitions.items()
    }
    assert {p.topic: p.topic_id for p in cluster.partitions if p.topic in ids} == ids
    assert all(p.leader_epoch >= 0 for p in cluster.partitions)


def test_asking_for_a_topic_does_not_create_it(reader: KafkaReader) -> None:
    assert reader.partitions(["never-made"]) == ()
    assert "never-made" not in {p.topic for p in reader.read().partitions}


def test_a_dead_broker_is_fenced_and_its_partitions_name_their_eligible_leaders(
    brokers: KafkaCluster, connection: Connection, reader: KafkaReader, topic: str
) -> None:
    name = f"elr-{topic}"
    create_topics(
        brokers.bootstrap,
        {name: 1},
        assignments={name: [[1, 2, 3]]},
        configs={"min.insync.replicas": "3"},
    )
    eligible = (3,) if kafka_jars.NUMBERS >= (4, 1) else ()  # KIP-966
    brokers.broker(3).pause()
    try:
        until(lambda: 3 not in reader.read().live and set(reader.partitions([name])[0].isr) == {1, 2})
        cluster = reader.read()
        assert cluster.live == {1, 2}
        assert 3 in cluster.named
        assert [b.id for b in cluster.brokers.values() if b.fenced] == ([3] if kafka_jars.NUMBERS >= (4, 0) else [])
        partition: Partition = next(p for p in cluster.partitions if p.topic == name)
        assert sorted(partition.isr) == [1, 2]
        assert partition.elr == eligible
        assert reader.partitions([name])[0].elr == eligible
    finally:
        brokers.mend()
