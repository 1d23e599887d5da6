"""Unclean elections of the simulated cluster decide as Kafka's controller does."""

import pytest

from bellwether.ports.errors import Transient
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.memory_unclean_elections import MemoryUnclean
from testkit.values.builders import name


@pytest.fixture
def kafka() -> MemoryCluster:
    made = MemoryCluster(3, elr=False)
    made.create_topic("orders", assignment=[(1, 2, 3)])
    for follower in (2, 3):
        made.shrink_isr(name(), follower)
    return made


def test_a_partition_with_a_leader_needs_none(kafka):
    assert MemoryUnclean(kafka).elect(name()).error == "ELECTION_NOT_NEEDED"
    assert kafka.partition("orders").leader == 1


def test_the_first_of_the_order_that_is_active_starts_the_isr_anew(kafka):
    kafka.kill(1)
    before = kafka.partition("orders")
    assert MemoryUnclean(kafka).elect(name()).ok
    after = kafka.partition("orders")
    assert (after.leader, after.isr, after.elr) == (2, (2,), ())
    assert after.leader_epoch == before.leader_epoch + 1


def test_whoever_was_the_last_in_the_isr_comes_back_as_a_follower(kafka):
    kafka.kill(1)
    MemoryUnclean(kafka).elect(name())
    kafka.revive(1)
    assert kafka.partition("orders").leader == 2


def test_without_a_living_replica_nobody_is_elected(kafka):
    for broker in (1, 2, 3):
        kafka.kill(broker)
    kafka.brokers[4] = type(kafka.brokers[1])(4)
    assert MemoryUnclean(kafka).elect(name()).error == "ELIGIBLE_LEADERS_NOT_AVAILABLE"


def test_an_unknown_partition_is_named(kafka):
    assert MemoryUnclean(kafka).elect(name("other")).error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_a_frozen_broker_lets_the_request_time_out(kafka):
    kafka.freeze(1)
    with pytest.raises(Transient):
        MemoryUnclean(kafka).elect(name())


def test_who_led_last_is_remembered_while_nobody_may_lead():
    kept = MemoryCluster(3)
    kept.create_topic("orders", assignment=[(1, 2)], min_isr=2)
    kept.kill(1)
    assert kept.partition("orders").last_known_elr == ()
    kept.kill(2)
    assert (kept.partition("orders").elr, kept.partition("orders").last_known_elr) == ((1, 2), (2,))
    kept.revive(1)
    assert (kept.partition("orders").leader, kept.partition("orders").last_known_elr) == (1, ())
