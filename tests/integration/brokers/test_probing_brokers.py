"""A broker asked through its load balancer: whole, cut, and leading to another broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.connection.connection_errors import Stage
from bellwether.core.signals import UnreachableCause
from bellwether.kafka_connection import Connection
from realparts.kafka import KafkaCluster
from realparts.toxiproxy import Toxiproxy

pytestmark = pytest.mark.kafka


@pytest.fixture
def probe(connection: Connection) -> BrokerProbe:
    return BrokerProbe(connection)


@pytest.fixture
def proxy(brokers: KafkaCluster) -> Iterator[Toxiproxy]:
    """The load balancer, repaired afterwards."""
    assert brokers.proxy is not None
    yield brokers.proxy
    brokers.proxy.mend(brokers.broker(1).proxy_name)


def test_the_internal_answer_tells_the_external_address_which_answers_too(
    brokers: KafkaCluster, probe: BrokerProbe
) -> None:
    broker = brokers.broker(1)
    internal = probe.ask(broker.internal, 1, 20)
    assert internal.ok
    assert internal.advertised["EXTERNAL"] == broker.external
    external = probe.ask(internal.advertised["EXTERNAL"], 1, 20)
    assert (external.ok, external.weaker, external.message) == (True, False, "")


def test_a_cut_way_is_refused(brokers: KafkaCluster, probe: BrokerProbe, proxy: Toxiproxy) -> None:
    broker = brokers.broker(1)
    proxy.cut(broker.proxy_name)
    answer = probe.ask(broker.external, 1, 20)
    assert (answer.ok, answer.cause) == (False, UnreachableCause.REFUSED)
    assert probe.ask(broker.internal, 1, 20).ok
    proxy.mend(broker.proxy_name)
    assert probe.ask(broker.external, 1, 20).ok


def test_a_balancer_that_leads_to_another_broker_is_found_out(brokers: KafkaCluster, probe: BrokerProbe) -> None:
    answer = probe.ask(brokers.broker(2).external, 1, 20)
    assert (answer.ok, answer.stage) == (False, Stage.WRONG_BROKER)
    assert answer.message.endswith("another broker than 1 answered: broker 2")
