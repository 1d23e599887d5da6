"""Settings through librdkafka: what our own connection reads, from a broker that answers, and always an answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from bellwether.adapters.kafka import admin_config_reader
from bellwether.adapters.kafka.admin_config_reader import AdminConfigs
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Broker
from realparts.kafka import KafkaCluster, create_topics

pytestmark = pytest.mark.kafka

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


@pytest.fixture
def strict(brokers: KafkaCluster, topic: str) -> str:
    """A topic with a setting of its own."""
    create_topics(brokers.bootstrap, {f"strict-{topic}": 1}, configs={MIN_ISR: "2"})
    return f"strict-{topic}"


@pytest.fixture
def no_second_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka alone may read; it gets all the time that a busy machine needs."""

    def refused(*_: Any) -> dict[str, dict[str, str]]:
        raise AssertionError("read on our own connection")

    monkeypatch.setattr(KafkaConfigs, "topic_configs", refused)
    monkeypatch.setattr(admin_config_reader, "READ_SECONDS", 60.0)


def test_both_ways_read_the_same(reader: KafkaReader, nodes: BrokerPool, topic: str, strict: str) -> None:
    reader.read()
    asked: tuple[Collection[str], Collection[str]] = ([topic, strict, "never-made"], [MIN_ISR, UNCLEAN, "no.such"])
    found = AdminConfigs(nodes).topic_configs(*asked)
    assert found == {topic: {MIN_ISR: "1", UNCLEAN: "false"}, strict: {MIN_ISR: "2", UNCLEAN: "false"}}
    assert found == KafkaConfigs(nodes).topic_configs(*asked)


@pytest.mark.usefixtures("no_second_choice")
def test_a_frozen_broker_that_is_to_be_avoided_is_not_asked(
    brokers: KafkaCluster, reader: KafkaReader, nodes: BrokerPool, topic: str
) -> None:
    reader.read()
    brokers.broker(2).pause()
    reader.avoid([2])
    for _ in range(8):  # "the controller", whom librdkafka asks otherwise, is another broker each time
        assert AdminConfigs(nodes).topic_configs([topic], [MIN_ISR]) == {topic: {MIN_ISR: "1"}}


def test_where_the_brokers_addresses_lead_nowhere_the_one_that_answered_is_asked(
    nodes: BrokerPool, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_config_reader, "READ_SECONDS", 1.0)
    nodes.learn([Broker(1, host="127.0.0.1", port=1)])
    assert AdminConfigs(nodes).topic_configs([topic], [MIN_ISR]) == {topic: {MIN_ISR: "1"}}
