"""The contract of the port that reads where replicas lie, on brokers with two log directories each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.kafka import LogDirReader
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryLogDirs
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

NAMES = frozenset(TopicPartition("orders", index) for index in range(6))


@dataclass
class Subject:
    """Two brokers with a topic of six partitions on both. ``move`` moves broker 1's replica to another directory."""

    reader: LogDirReader
    paths: tuple[str, ...]
    move: Callable[[TopicPartition, str], None]
    kill: Callable[[int], None]


def in_memory() -> Subject:
    cluster, paths = MemoryCluster(2), ("/data-0", "/data-1")
    cluster.create_topic("orders", assignment=[(1, 2)] * 6)
    names = sorted(NAMES)
    cluster.lay_out(1, {paths[0]: names[:3], paths[1]: names[3:]})
    reader = MemoryLogDirs(cluster)

    def move(name: TopicPartition, path: str) -> None:
        layout = cluster.log_dirs(1)
        cluster.lay_out(1, {one: held - {name} | ({name} if one == path else set()) for one, held in layout.items()})

    return Subject(reader, paths, move, cluster.kill)


def on_brokers(brokers: KafkaCluster) -> Subject:
    from bellwether.adapters.kafka.brokers.log_dirs import KafkaLogDirs
    from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
    from bellwether.adapters.kafka.metadata_reader import KafkaReader
    from bellwether.kafka_connection import Connection
    from realparts.kafka_topics import create_topics
    from testkit.kafka.kafka_site import PATIENT

    nodes = BrokerPool(Connection(tuple(brokers.bootstrap.split(",")), PLAINTEXT), PATIENT)
    create_topics(brokers.bootstrap, {"orders": 6}, replication_factor=2)
    KafkaReader(nodes).read()
    reader = KafkaLogDirs(nodes)
    # A new partition counts as in sync from its creation, so only the broker itself says that its replica is there.
    until(lambda: all(_held(reader, broker) >= NAMES for broker in (1, 2)), limit(60))

    def move(name: TopicPartition, path: str) -> None:
        from kafka import TopicPartitionReplica
        from kafka.admin import KafkaAdminClient

        client = KafkaAdminClient(bootstrap_servers=brokers.bootstrap.split(","))
        try:
            client.alter_replica_log_dirs({TopicPartitionReplica(name.topic, name.partition, 1): path})
        finally:
            client.close()

    paths = tuple(map(str, brokers.broker(1).log_dirs))
    return Subject(reader, paths, move, lambda broker: brokers.broker(broker).kill())


@pytest.fixture(scope="module", params=["memory", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Either cluster; the real one has its controller apart, so that a broker may die."""
    if request.param == "memory":
        yield in_memory()
        return
    from realparts.kafka import KafkaCluster

    with KafkaCluster(2, controllers=1, proxied=False, disks=2) as kafka:
        yield on_brokers(kafka)


def _held(reader: LogDirReader, broker: int) -> frozenset[TopicPartition]:
    return frozenset().union(*(reader.log_dirs(broker) or {}).values())


def answer(subject: Subject, broker: int) -> dict[str, frozenset[TopicPartition]]:
    found = subject.reader.log_dirs(broker)
    assert found is not None
    return {path: names & NAMES for path, names in found.items()}


def test_each_partition_of_broker_lies_in_one_of_its_directories(subject: Subject):
    found = answer(subject, 1)
    assert tuple(sorted(found)) == tuple(sorted(subject.paths))
    assert sorted(name for names in found.values() for name in names) == sorted(NAMES)


def test_a_replica_that_moved_to_another_directory_is_found_there(subject: Subject):
    first, second = subject.paths
    name = min(answer(subject, 1)[first])
    subject.move(name, second)
    until(lambda: name in answer(subject, 1)[second], limit(30))
    assert name not in answer(subject, 1)[first]


def test_a_broker_that_there_is_not_gives_no_answer(subject: Subject):
    assert subject.reader.log_dirs(99) is None


def test_a_dead_broker_gives_no_answer(subject: Subject):
    subject.kill(2)
    assert subject.reader.log_dirs(2) is None
    assert answer(subject, 1)
