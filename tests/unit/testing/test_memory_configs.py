"""What only the fake's settings do; what they share with real Kafka is in the contract suite."""

import pytest

from bellwether.ports.errors import Transient
from bellwether.testing.memory_cluster import MemoryCluster
from bellwether.testing.memory_configs import MemoryConfigs

MIN_ISR = "min.insync.replicas"


@pytest.fixture
def kafka() -> MemoryCluster:
    made = MemoryCluster(3)
    made.create_topic("orders", 3, min_isr=2)
    return made


def test_a_broker_that_is_dead_or_frozen_tells_nothing_of_itself(kafka):
    kafka.kill(1)
    kafka.freeze(2)
    assert set(MemoryConfigs(kafka).broker_configs([1, 2, 3], [MIN_ISR])) == {3}


def test_settings_of_a_broker_can_be_given(kafka):
    kafka.configure_broker(2, "auto.leader.rebalance.enable", "false")
    told = MemoryConfigs(kafka).broker_configs([1, 2], ["auto.leader.rebalance.enable"])
    assert {b: s["auto.leader.rebalance.enable"] for b, s in told.items()} == {1: "true", 2: "false"}


def test_a_frozen_broker_lets_one_read_of_topics_time_out(kafka):
    kafka.freeze(1)
    configs = MemoryConfigs(kafka)
    with pytest.raises(Transient, match="broker 1"):
        configs.topic_configs(["orders"], [MIN_ISR])
    assert configs.topic_configs(["orders"], [MIN_ISR]) == {"orders": {MIN_ISR: "2"}}
    assert configs.asked == 2


def test_what_a_deleted_topic_was_given_is_not_the_next_ones(kafka):
    kafka.configure_topic("orders", "unclean.leader.election.enable", "true")
    kafka.recreate_topic("orders")
    told = MemoryConfigs(kafka).topic_configs(["orders"], ["unclean.leader.election.enable", MIN_ISR])
    assert told == {"orders": {"unclean.leader.election.enable": "false", MIN_ISR: "2"}}


def test_a_topic_that_there_is_not_cannot_be_configured(kafka):
    with pytest.raises(KeyError, match="payments"):
        kafka.configure_topic("payments", MIN_ISR, "2")
