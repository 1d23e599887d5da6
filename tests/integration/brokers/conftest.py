"""Three real brokers, the controller apart so that any broker may freeze, and what speaks to them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from bellwether.adapters.kafka.mover import KafkaMover
from bellwether.adapters.kafka.nodes import Nodes
from bellwether.adapters.kafka.reader import KafkaReader
from bellwether.connections import Connection
from realparts.kafka import KafkaCluster, create_topics


@pytest.fixture(scope="session")
def brokers() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, controllers=1, sasl_ssl=True) as cluster:
        yield cluster


@pytest.fixture
def connection(brokers: KafkaCluster) -> Connection:
    return Connection(tuple(brokers.bootstrap.split(",")))


@pytest.fixture
def nodes(connection: Connection) -> Nodes:
    return Nodes(connection)


@pytest.fixture
def reader(nodes: Nodes) -> KafkaReader:
    return KafkaReader(nodes)


@pytest.fixture
def mover(nodes: Nodes) -> KafkaMover:
    return KafkaMover(nodes)


@pytest.fixture
def topic(brokers: KafkaCluster) -> str:
    """A topic of the test's own: 12 partitions, three replicas each."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    create_topics(brokers.bootstrap, {name: 12})
    return name
