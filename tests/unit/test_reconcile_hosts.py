"""What brokers advertise is read where series, alerts or pods are matched by it, and outlives a broker's absence."""

from __future__ import annotations

import pytest

from bellwether.core.model.broker_identity import RETRY_SECONDS, KnownHosts
from bellwether.core.model.cluster import Cluster
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.policy import Policy
from bellwether.core.settings.source_settings import PrometheusRule
from bellwether.gather import Memory, gather
from bellwether.ports.errors import Unauthorized
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryConfigs
from testkit.simulation.memory_site import MemorySite

RULES = Detection(prometheus_rules=(PrometheusRule(name="flush", query="q", threshold=1),))
WATCHING = Policy(name="main", detection=RULES)
POD = "kafka-0.kafka.prod.svc.cluster.local"


@pytest.fixture
def site() -> MemorySite:
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", 3)
    kafka.own_settings[1]["advertised.listeners"] = f"INTERNAL://{POD}:9092,EXTERNAL://broker-1.test:9094"
    return MemorySite(kafka)


def hosts(site: MemorySite, policy: Policy, before: KnownHosts | None = None) -> KnownHosts:
    world = site.process()
    memory = Memory(world.records.take_over(site.cluster_id), hosts=before or KnownHosts())
    return gather(world, policy, memory)[2].hosts


def test_all_listeners_of_broker_are_known_where_they_are_needed(site: MemorySite) -> None:
    assert hosts(site, WATCHING).hosts[1] == ("broker-1.test", POD)
    assert hosts(site, Policy(name="main")).hosts[1] == ("broker-1.test",)


def test_broker_that_is_away_is_still_known(site: MemorySite) -> None:
    known = hosts(site, WATCHING)
    site.cluster.kill(1)
    assert hosts(site, WATCHING, known).hosts == known.hosts


def test_settings_that_may_not_be_read_leave_host_of_metadata(
    site: MemorySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(_self: MemoryConfigs, brokers: list[int], _names: list[str]) -> None:
        asked.append(list(brokers))
        raise Unauthorized("grant the ACL DescribeConfigs on Cluster")

    monkeypatch.setattr(MemoryConfigs, "broker_configs", refuse)
    known = hosts(site, WATCHING)
    assert known.hosts[1] == ("broker-1.test",)
    hosts(site, WATCHING, known)
    assert asked == [[1, 2, 3]], "not asked again at once"
    site.clock.advance(RETRY_SECONDS)
    hosts(site, WATCHING, known)
    assert len(asked) == 2


def test_pods_are_asked_for_with_the_hosts(site: MemorySite) -> None:
    seen: list[object] = []
    site.pods = {}
    world = site.process()
    object.__setattr__(world, "pods", lambda known: seen.append(dict(known)))
    gather(world, Policy(name="main"), Memory(world.records.take_over(site.cluster_id)))
    assert seen == [{1: ("broker-1.test", POD), 2: ("broker-2.test",), 3: ("broker-3.test",)}]


def test_brokers_that_are_gone_are_forgotten() -> None:
    assert KnownHosts({7: ("gone",)}).seen(Cluster("c", {}, ())).hosts == {}
