"""The simulated cluster by itself: what a controller does when brokers and people act."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.simulation.memory_cluster import MemoryCluster, place
from testkit.values.builders import name
from testkit.values.strategies import Act, deeds, memory_clusters


@pytest.fixture
def kafka() -> MemoryCluster:
    made = MemoryCluster(3)
    made.create_topic("orders", 3)
    return made


def test_placement_rotates_the_first_replica_and_shifts_the_followers():
    assert place([1, 2, 3], 6, 3) == [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)]


def test_placement_walks_racks_in_turn():
    made = MemoryCluster({1: "a", 2: "a", 3: "b", 4: "b"})
    made.create_topic("orders", 4, 2)
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert all(len({racks[b] for b in p.replicas}) == 2 for p in made.partitions())


def test_a_replication_factor_above_the_active_brokers_is_refused(kafka):
    kafka.kill(3)
    with pytest.raises(ValueError, match="needs 3 active brokers, there are 2"):
        kafka.create_topic("payments", 1, 3)


def test_only_an_eligible_replica_leads_after_an_empty_isr(kafka):
    for broker in (2, 3, 1):
        kafka.kill(broker)
    p = kafka.partition("orders")
    assert (p.leader, p.isr, p.elr) == (None, (), (1,))
    kafka.revive(3)
    assert kafka.partition("orders").leader is None
    kafka.revive(1)
    assert kafka.partition("orders").leader == 1


def test_without_elr_the_last_member_stays_in_the_isr():
    made = MemoryCluster(2, version=(4, 0))
    made.create_topic("orders", 1, 2)
    made.kill(2)
    made.kill(1)
    assert (made.partition("orders").isr, made.partition("orders").leader) == ((1,), None)
    made.revive(2)
    assert made.partition("orders").leader is None


def test_balancing_moves_each_leader_to_the_first_replica(kafka):
    kafka.foreign_reorder(name(), (2, 1, 3))
    assert kafka.partition("orders").leader == 1
    assert kafka.auto_balance() == 1
    assert kafka.partition("orders").leader == 2
    assert kafka.auto_balance() == 0


def test_balancing_skips_a_first_replica_that_is_not_in_sync(kafka):
    kafka.foreign_reorder(name(), (2, 1, 3))
    kafka.shrink_isr(name(), 2)
    assert kafka.auto_balance() == 0


def test_a_reassignment_stays_in_flight_until_its_target_has_fetched():
    made = MemoryCluster(4)
    made.create_topic("orders", assignment=[(1, 2, 3)])
    made.foreign_reassign(name(), (2, 3, 4))
    p = made.partition("orders")
    assert (p.replicas, p.adding, p.removing, p.leader) == ((2, 3, 4, 1), (4,), (1,), 1)
    made.finish_reassignments()
    p = made.partition("orders")
    assert (p.replicas, p.adding, p.removing, p.leader) == ((2, 3, 4), (), (), 2)


def test_a_reassignment_to_a_dead_broker_does_not_finish():
    made = MemoryCluster(4)
    made.create_topic("orders", assignment=[(1, 2, 3)])
    made.kill(4)
    made.foreign_reassign(name(), (1, 2, 4))
    made.finish_reassignments()
    assert made.partition("orders").reassigning


def test_a_leader_cannot_be_shrunk_away(kafka):
    with pytest.raises(ValueError, match="broker 1 leads orders-0"):
        kafka.shrink_isr(name(), 1)


def test_a_dead_broker_cannot_join_an_isr(kafka):
    kafka.kill(2)
    with pytest.raises(ValueError, match="broker 2 cannot join"):
        kafka.join_isr(name(), 2)


@given(memory_clusters(), st.lists(deeds(), max_size=15))
def test_leaders_are_in_sync_and_active_and_epochs_rise(made: MemoryCluster, script: list[tuple[str, Act]]):
    for _, act in script:
        before = {(p.topic_id, p.index): p for p in made.partitions()}
        act(made)
        for p in made.partitions():
            old = before.get((p.topic_id, p.index))
            assert p.leader is None or (p.leader in p.isr and made.brokers[p.leader].active)
            assert set(p.isr) <= set(p.replicas)
            assert not set(p.isr) & set(p.elr)
            if old is not None:
                assert p.leader_epoch >= old.leader_epoch
                assert (p.leader_epoch > old.leader_epoch) or p.leader == old.leader


@given(memory_clusters(), st.lists(deeds(), max_size=15))
def test_every_new_leader_was_in_sync_or_eligible(made: MemoryCluster, script: list[tuple[str, Act]]):
    for _, act in script:
        before = {(p.topic_id, p.index): p for p in made.partitions()}
        act(made)
        for p in made.partitions():
            old = before.get((p.topic_id, p.index))
            if old is not None and p.leader not in (None, old.leader):
                assert p.leader in (*old.isr, *old.elr, *old.adding)


def test_the_last_leader_is_remembered_while_no_broker_may_lead():
    kept = MemoryCluster(3)
    kept.create_topic("orders", assignment=[(1, 2)], min_isr=2)
    kept.kill(1)
    assert kept.partition("orders").last_known_elr == ()
    kept.kill(2)
    assert (kept.partition("orders").elr, kept.partition("orders").last_known_elr) == ((1, 2), (2,))
    kept.revive(1)
    assert (kept.partition("orders").leader, kept.partition("orders").last_known_elr) == (1, ())
