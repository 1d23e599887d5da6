"""The reassignment that repairs replica lists which name a removed broker: who replaces it, and what is left alone."""

from __future__ import annotations

from bellwether.core.doctor.risks import repaired_orders
from bellwether.core.model.cluster import Cluster, Partition
from testkit.values.builders import cluster, partition


def repaired(seen: Cluster) -> list[tuple[int, ...]]:
    return list(repaired_orders(seen, seen.live).values())


def listed(*replicas: int, index: int = 0, **more: tuple[int, ...]) -> Partition:
    return partition(index=index, replicas=replicas, isr=tuple(r for r in replicas if r != 9), **more)


def test_broker_with_fewest_replicas_takes_place_and_others_keep_order():
    seen = cluster(listed(2, 9, 1), listed(9, 1, index=1), listed(9, 1, index=2), brokers=4, removed=[9])
    assert repaired(seen) == [(2, 1, 3), (1, 4), (1, 2)]


def test_another_rack_comes_before_fewer_replicas():
    racks = {1: "a", 2: "a", 3: "b"}
    held = [listed(3, index=i) for i in (1, 2, 3)]
    assert repaired(cluster(listed(1, 9), *held, racks=racks, removed=[9])) == [(1, 3)]


def test_without_a_free_broker_the_list_becomes_shorter():
    assert repaired(cluster(listed(1, 9, 2), brokers=2, removed=[9])) == [(1, 2)]


def test_fenced_brokers_get_nothing_and_registered_lists_stay():
    assert repaired(cluster(listed(1, 9), listed(1, 2, index=1), fenced=[2], removed=[9])) == [(1, 3)]
    assert repaired(cluster(listed(1, 2))) == []


def test_reassigned_or_fully_lost_partitions_are_left_out():
    assert repaired(cluster(listed(1, 9, adding=(2,)), listed(9, index=1), removed=[9])) == []
