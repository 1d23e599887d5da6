"""The starter's brokers are what it promises: reachable both ways, complete, and gone at the end."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from realparts.kafka import KafkaCluster, create_topics
from realparts.kafka_topics import admin, live_brokers
from waiting import limit, until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def advertised(client: AdminClient) -> dict[int, str]:
    return {b.id: f"{b.host}:{b.port}" for b in client.list_topics(timeout=limit(10)).brokers.values()}


def test_each_listener_advertises_its_own_addresses(kafka: KafkaCluster) -> None:
    assert advertised(admin(kafka.bootstrap)) == {n: b.internal for n, b in kafka.brokers.items()}
    assert advertised(admin(kafka.external_bootstrap)) == {n: b.external for n, b in kafka.brokers.items()}
    assert all(b.external != b.external_listen for b in kafka.brokers.values())


def test_the_cluster_answers_with_the_id_that_it_was_formatted_with(kafka: KafkaCluster) -> None:
    assert admin(kafka.bootstrap).list_topics(timeout=limit(10)).cluster_id == kafka.cluster_id


def test_the_secure_listener_takes_the_right_password_and_no_other(kafka: KafkaCluster) -> None:
    assert kafka.security is not None
    settings = kafka.security.client_settings()
    assert set(admin(settings["bootstrap.servers"], settings).list_topics(timeout=limit(10)).brokers) == {1, 2, 3}
    wrong = admin(settings["bootstrap.servers"], {**settings, "sasl.password": "wrong"})
    with pytest.raises(Exception, match=r"transport|timed out|Authentication"):
        wrong.list_topics(timeout=3)


def test_topics_are_led_and_in_sync_as_soon_as_they_are_created(kafka: KafkaCluster) -> None:
    spread, placed = f"spread-{uuid.uuid4()}", f"placed-{uuid.uuid4()}"
    create_topics(kafka.bootstrap, {spread: 30, placed: 2}, assignments={placed: [[3, 1, 2], [2, 3, 1]]})
    topics = admin(kafka.bootstrap).list_topics(timeout=limit(10)).topics
    assert all(len(p.isrs) == 3 for p in topics[spread].partitions.values())
    assert {i: (p.leader, p.replicas) for i, p in topics[placed].partitions.items()} == {
        0: (3, [3, 1, 2]),
        1: (2, [2, 3, 1]),
    }


def test_dedicated_controllers_outlive_two_of_three_brokers_and_nothing_outlives_the_cluster(tmp_path: Path) -> None:
    with KafkaCluster(3, directory=tmp_path, controllers=1, racks=["a", "b", "c"], proxied=False) as cluster:
        broker = cluster.broker(1)
        assert broker.external == broker.external_listen
        assert [b.rack for b in cluster.brokers.values()] == ["a", "b", "c"]
        for dead in (2, 3):
            cluster.broker(dead).kill()
        create_topics(broker.internal, {"alone": 1}, assignments={"alone": [[1]]})
        cluster.broker(2).start()
        until(lambda: 2 in live_brokers(broker.internal), 60)  # it knows before others do
        pids = [process.pid for process in cluster.processes()]
        assert len(pids) == 4
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
