from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bellwether.controllers import cluster_connection
from bellwether.kafka_connection import Connection
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryMover, MemoryReader, MemoryRoute
from testkit.simulation.operator_fixture import MemoryOperator


@pytest.fixture
def operator() -> Iterator[MemoryOperator]:
    made = MemoryOperator.well()
    yield made
    made.close()


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Every connection that is made, in order; each leads to one cluster in memory."""
    cluster, made = MemoryCluster(cluster_id="cluster-a"), list[Connection]()

    def pool(connection: Connection, *_: Any) -> MemoryRoute:
        made.append(connection)
        return MemoryRoute(cluster)

    monkeypatch.setattr(cluster_connection, "BrokerPool", pool)
    monkeypatch.setattr(cluster_connection, "KafkaReader", lambda route: MemoryReader(cluster, route))
    monkeypatch.setattr(cluster_connection, "KafkaMover", lambda route: MemoryMover(cluster, 2.0, route=route))
    return made
