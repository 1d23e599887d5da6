"""The canary's partitions have one replica each: a policy that uses them does not manage, count or wait for them."""

from __future__ import annotations

import pytest

from bellwether.core.settings.detection import Canary, Detection
from bellwether.core.settings.policy import Policy
from bellwether.gather import Memory, gather
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.memory_site import MemorySite


@pytest.fixture
def site() -> MemorySite:
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", 3)
    kafka.create_topic("bellwether-canary", assignment=[[1], [2], [3]])
    return MemorySite(kafka)


def topics(site: MemorySite, policy: Policy) -> set[str]:
    world = site.process()
    snapshot, _, _ = gather(world, policy, Memory(world.records.take_over(site.cluster_id)))
    return {partition.topic for partition in snapshot.cluster.partitions}


def test_partitions_of_the_canary_are_left_out(site: MemorySite) -> None:
    assert topics(site, Policy(name="main", detection=Detection(canary=Canary(enabled=True)))) == {"orders"}


def test_policy_without_canary_sees_topic_as_any_other(site: MemorySite) -> None:
    assert topics(site, Policy(name="main")) == {"orders", "bellwether-canary"}


def test_a_topic_of_that_name_with_several_replicas_is_managed(site: MemorySite) -> None:
    canary = Canary(enabled=True, topic="orders")
    assert "orders" in topics(site, Policy(name="main", detection=Detection(canary=canary)))
