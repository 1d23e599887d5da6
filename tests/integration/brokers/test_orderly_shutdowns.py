"""An orderly shutdown seen from outside: the judge tells it from a broker that clients cannot reach."""

from __future__ import annotations

import pytest

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.kafka_connection import Connection
from realparts.kafka import KafkaCluster
from testkit.values.security_settings import PLAINTEXT
from waiting import until

pytestmark = pytest.mark.kafka

PATIENT = Limits(opening_seconds=10, finding_seconds=20, request_seconds=20, read_seconds=60)


def test_a_broker_that_shuts_down_is_in_no_isr_while_it_still_answers(brokers: KafkaCluster, topic: str):
    going = brokers.broker(2)
    connection = Connection((brokers.broker(1).internal,), PLAINTEXT)
    probe = BrokerProbe(connection)
    assert 2 not in leaving(connection)
    # The controller lets a broker go when the others have read of it; a frozen one keeps it waiting until it is fenced.
    brokers.broker(3).pause()
    going.process.ask_to_stop()
    seen = lambda: 2 in leaving(connection) and probe.ask(going.internal, 2, 2.0).ok  # noqa: E731
    try:
        until(seen, 30, "it is out of every ISR and still answers", every=0.1)
    finally:
        going.kill()  # one that is still on its way out cannot be started again


def leaving(connection: Connection) -> frozenset[int]:
    """The brokers that the judge would not call sick, as the first broker shows them: the next read of a reader would
    ask another one, which may be frozen.
    """
    return KafkaReader(BrokerPool(connection, PATIENT)).read().leaving
