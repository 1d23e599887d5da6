"""The bench's brokers, asked by the very code that asks real ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.kafka_connection import Connection
from detectioncosts.manybrokers import CLUSTER_ID, ManyBrokers, address, broker_at, serve
from realparts.ports import HeldPorts, accepts
from testkit.kafka.kafka_site import PATIENT
from waiting import limit, until


@pytest.fixture(scope="module")
def brokers() -> Iterator[ManyBrokers]:
    """Three hundred of them on a thread of their own."""
    ports = HeldPorts()
    many = ManyBrokers(300, 50, ports.take(), ports.take())
    loop = asyncio.new_event_loop()
    serving = loop.create_task(serve(many))
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.wait([serving])), daemon=True)
    thread.start()
    until(lambda: accepts(many.internal_port) and accepts(many.external_port))
    yield many
    loop.call_soon_threadsafe(serving.cancel)
    thread.join(limit(30))
    loop.close()
    ports.release()


def test_every_broker_has_an_address_of_its_own() -> None:
    addresses = [address(broker) for broker in range(1, 1001)]
    assert len(set(addresses)) == 1000
    assert [broker_at(a) for a in addresses] == list(range(1, 1001))


def test_each_answers_for_itself_and_says_where_it_is(brokers: ManyBrokers) -> None:
    probe = BrokerProbe(Connection(("127.0.0.1:1",)))
    for number in (1, 249, 250, 300):
        internal = f"{address(number)}:{brokers.internal_port}"
        answer = probe.ask(internal, number, 20)
        external = f"{address(number)}:{brokers.external_port}"
        assert (answer.ok, answer.weaker) == (True, False)
        assert answer.advertised == {"INTERNAL": internal, "EXTERNAL": external}
        assert probe.ask(external, number, 20).ok


def test_they_are_a_cluster_that_can_be_listed_and_read(brokers: ManyBrokers) -> None:
    connection = Connection((f"{address(1)}:{brokers.internal_port}",))
    assert len(BrokerDirectory(connection).brokers()) == 300
    cluster = KafkaReader(BrokerPool(connection, PATIENT)).read()
    assert (cluster.cluster_id, len(cluster.brokers), len(cluster.partitions)) == (CLUSTER_ID, 300, 50)
    assert all(set(p.isr) == set(p.replicas) and p.leader == p.replicas[0] for p in cluster.partitions)
