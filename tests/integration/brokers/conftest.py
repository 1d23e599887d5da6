"""What speaks to the session's three real brokers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.kafka_connection import Connection
from realparts.kafka import KafkaCluster, create_topics
from realparts.kafka_topics import admin, delete_topics
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until

SHARED = "shared-"
PATIENT = Limits(opening_seconds=10, finding_seconds=20, request_seconds=20, read_seconds=60)


@pytest.fixture
def brokers(kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    """The session's brokers; afterwards every fault is repaired and the topics that the test has made are gone, but for
    those that its module shares.
    """
    yield kafka
    kafka.mend()
    known = admin(kafka.bootstrap).list_topics(timeout=limit(30)).topics
    delete_topics(kafka.bootstrap, [name for name in known if not name.startswith(("__", SHARED))])


@pytest.fixture
def connection(brokers: KafkaCluster) -> Connection:
    return Connection(tuple(brokers.bootstrap.split(",")), PLAINTEXT)


@pytest.fixture
def nodes(connection: Connection) -> BrokerPool:
    """With time to spare, as tests share their machine; the default limits are tested with frozen brokers."""
    return BrokerPool(connection, PATIENT)


@pytest.fixture
def reader(nodes: BrokerPool) -> KafkaReader:
    return KafkaReader(nodes)


@pytest.fixture
def mover(nodes: BrokerPool) -> KafkaMover:
    return KafkaMover(nodes)


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster) -> Iterator[str]:
    """A topic of the module's own: three partitions of three replicas, so that each broker leads one."""
    yield (name := made(kafka, SHARED))
    delete_topics(kafka.bootstrap, [name])


@pytest.fixture
def fresh_topic(brokers: KafkaCluster) -> str:
    """The same for one test."""
    return made(brokers, "fresh-")


def made(brokers: KafkaCluster, prefix: str) -> str:
    name = f"{prefix}{uuid.uuid4().hex[:8]}"
    create_topics(brokers.bootstrap, {name: 3})
    everywhere(brokers, name, 3)
    return name


def everywhere(brokers: KafkaCluster, topic: str, partitions: int) -> None:
    """Wait until each broker knows the topic and its leaders: each learns of them in its own time."""
    for broker in brokers.brokers.values():
        reader = KafkaReader(BrokerPool(Connection((broker.internal,), PLAINTEXT), PATIENT))
        until(lambda r=reader: sum(p.leader is not None for p in r.partitions([topic])) >= partitions, 60)  # type: ignore[misc]
