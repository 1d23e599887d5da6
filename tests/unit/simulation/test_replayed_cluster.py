"""A retold cluster: what befell brokers is as recorded, who leads is its own."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import Cluster, Partition, TopicPartition
from bellwether.ports.kafka import Reorder
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryMover
from bellwether.simulation.replayed_cluster import ReplayedCluster
from testkit.values import strategies

ORDERS = TopicPartition("orders", 0)


def recorded(partitions: int = 3) -> MemoryCluster:
    cluster = MemoryCluster(3)
    cluster.create_topic("orders", partitions)
    return cluster


def sets(cluster: Cluster) -> dict[object, tuple[frozenset[int], frozenset[int]]]:
    """What must be as recorded: replica sets and ISRs."""
    return {p.key: (frozenset(p.replicas), frozenset(p.isr)) for p in cluster.partitions}


def test_it_begins_as_it_was():
    then = recorded()
    assert ReplayedCluster(then.snapshot()).partitions() == then.partitions()


def test_a_broker_that_died_comes_back_into_the_isr():
    then = recorded()
    again = ReplayedCluster(then.snapshot())
    then.kill(2)
    again.advance_to(then.snapshot())
    assert (2 in again.snapshot().brokers, again.snapshot().leaders().get(2, 0)) == (False, 0)
    then.revive(2)
    again.advance_to(then.snapshot())
    assert sets(again.snapshot()) == sets(then.snapshot())
    assert again.snapshot().live == {1, 2, 3}


def test_partitions_of_a_removed_broker_take_no_order():
    then = recorded(1)
    later = ReplayedCluster(then.snapshot())
    then.unregister(2)
    later.advance_to(then.snapshot())
    for again in (later, ReplayedCluster(then.snapshot())):
        assert again.snapshot().removed == {2}
        refused = MemoryMover(again).reorder([Reorder(ORDERS, (3, 2, 1))])[ORDERS]
        assert refused.error == "INVALID_REPLICA_ASSIGNMENT"


def test_a_fenced_broker_is_fenced_and_leads_nothing():
    then = recorded()
    again = ReplayedCluster(then.snapshot())
    then.fence(1)
    again.advance_to(then.snapshot())
    assert again.snapshot().brokers[1].fenced
    assert all(p.leader != 1 for p in again.partitions())


def test_who_leads_is_up_to_the_one_who_acts_now():
    then = recorded(1)
    again = ReplayedCluster(then.snapshot())
    mover = MemoryMover(again)
    mover.reorder([Reorder(ORDERS, (3, 1, 2))])
    mover.elect([ORDERS])
    then.foreign_reorder(ORDERS, (2, 3, 1))
    then.elect_preferred(then.partition("orders"))
    again.advance_to(then.snapshot())
    assert (again.partition("orders").replicas, again.partition("orders").leader) == ((3, 1, 2), 3)


def test_a_leader_that_lagged_as_a_follower_stays_in_sync():
    then = recorded(1)
    again = ReplayedCluster(then.snapshot())
    then.foreign_reorder(ORDERS, (2, 3, 1))
    then.elect_preferred(then.partition("orders"))
    then.shrink_isr(ORDERS, 1)
    again.advance_to(then.snapshot())
    assert (again.partition("orders").leader, 1 in again.partition("orders").isr) == (1, True)


def test_topics_come_and_go_and_come_again_under_another_id():
    then = recorded()
    again = ReplayedCluster(then.snapshot())
    then.create_topic("payments", 2)
    then.recreate_topic("orders")
    again.advance_to(then.snapshot())
    assert again.partitions() == then.partitions()
    then.delete_topic("orders")
    again.advance_to(then.snapshot())
    assert {p.topic for p in again.partitions()} == {"payments"}


def test_other_peoples_reassignments_are_played_and_finished():
    then = MemoryCluster(4)
    then.create_topic("orders", assignment=[(1, 2, 3)])
    again = ReplayedCluster(then.snapshot())
    then.foreign_reassign(ORDERS, (1, 2, 4))
    again.advance_to(then.snapshot())
    assert again.partition("orders").reassigning
    then.finish_reassignments()
    again.advance_to(then.snapshot())
    assert (again.partition("orders").reassigning, set(again.partition("orders").replicas)) == (False, {1, 2, 4})


def test_a_broker_that_joins_is_there():
    then = recorded()
    again = ReplayedCluster(then.snapshot())
    bigger = then.snapshot()
    more = MemoryCluster(4).snapshot().brokers[4]
    again.advance_to(replace(bigger, brokers={**bigger.brokers, 4: replace(more, rack="d")}))
    assert again.snapshot().brokers[4].rack == "d"


def test_a_partition_with_a_leader_again_follows_the_recording():
    then = recorded(1)
    lost = replace(then.partition("orders"), isr=(), leader=None)
    again = ReplayedCluster(replace(then.snapshot(), partitions=(lost,)))
    found: Partition = replace(lost, isr=(2,), leader=2)
    again.advance_to(replace(then.snapshot(), partitions=(found,)))
    assert (again.partition("orders").leader, again.partition("orders").isr) == (2, (2,))


@given(st.data(), strategies.memory_clusters())
def test_it_follows_any_change_of_a_cluster(data: st.DataObject, then: MemoryCluster):
    again = ReplayedCluster(then.snapshot())
    for _, act in data.draw(st.lists(strategies.deeds(), max_size=8)):
        act(then)
        now = then.snapshot()
        again.advance_to(now)
        seen = again.snapshot()
        assert {b: (x.rack, x.fenced) for b, x in seen.brokers.items()} == {
            b: (x.rack, x.fenced) for b, x in now.brokers.items()
        }
        assert seen.by_key.keys() == now.by_key.keys()
        for p in seen.partitions:
            recorded = now.by_key[p.key]
            assert set(p.target) == set(recorded.target)
            # But for a leader of its own, which followed and lagged then.
            assert set(p.isr) - {p.leader} <= set(recorded.isr)
            assert p.leader is None or p.leader in seen.live & set(p.isr)


@given(strategies.clusters(), strategies.clusters(), strategies.clusters())
def test_no_recording_breaks_it_however_little_sense_it_makes(first: Cluster, second: Cluster, third: Cluster):
    again = ReplayedCluster(first)
    for now in (second, third):
        again.advance_to(now)
        assert again.snapshot().by_key.keys() == now.by_key.keys()
        assert again.snapshot().live == now.live
