"""What a turn finds out of partitions at risk, and how rarely it asks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from bellwether.core.doctor.risks import MIN_ISR, MIN_ISR_CACHE_SECONDS, Risk
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.gather import Memory
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.ports.kafka import ConfigReader
from bellwether.ports.world import World
from bellwether.reconcile import reconcile
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryConfigs
from testkit.simulation.memory_site import MemorySite

POLICY = Policy(name="main", mode=Mode.OBSERVE)


class Reconciles:
    """Turn after turn on one site, with a count of what was asked of its settings."""

    def __init__(self, site: MemorySite, configs: ConfigReader | None = None) -> None:
        self.site = site
        self.configs = MemoryConfigs(site.cluster)
        self._world: World = replace(site.process(), configs=configs or self.configs)
        self._memory = Memory(self._world.records.take_over(site.cluster_id))

    def reconcile(self) -> Report:
        done = reconcile(self._world, POLICY, self._memory)
        self._memory = done.memory
        return done.report

    def counts(self) -> Mapping[Risk, int]:
        return dict(self.reconcile().risk_summary.counts)


@pytest.fixture
def site() -> MemorySite:
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", 4, min_isr=2)
    return MemorySite(kafka)


def test_no_setting_is_asked_for_while_every_replica_is_in_sync(site: MemorySite):
    reconciles = Reconciles(site)
    assert [reconciles.counts() for _ in range(3)] == [{}] * 3
    assert reconciles.configs.asked == 0


def test_where_a_replica_is_missing_the_setting_tells_the_class(site: MemorySite):
    reconciles = Reconciles(site)
    site.cluster.kill(3)
    assert reconciles.counts() == {Risk.AT_MIN_ISR: 4}
    site.cluster.kill(2)
    assert reconciles.counts() == {Risk.UNDER_MIN_ISR: 4}
    site.cluster.kill(1)
    site.cluster.revive(3)
    site.cluster.kill(3)
    site.cluster.brokers[4] = type(site.cluster.brokers[3])(4)
    assert reconciles.counts() == {Risk.ALL_REPLICAS_LOST: 4}


def test_the_setting_is_asked_for_once_in_a_while_and_a_change_is_seen_then(site: MemorySite):
    reconciles = Reconciles(site)
    site.cluster.kill(3)
    site.cluster.kill(2)
    for _ in range(5):
        assert reconciles.counts() == {Risk.UNDER_MIN_ISR: 4}
    assert reconciles.configs.asked == 1
    site.cluster.settings["orders"][MIN_ISR] = "1"
    site.clock.advance(MIN_ISR_CACHE_SECONDS)
    assert reconciles.counts() == {Risk.AT_MIN_ISR: 4}
    assert reconciles.configs.asked == 2


@pytest.mark.parametrize("error", [Transient, Terminal])
def test_an_unreadable_setting_is_unknown_and_delays_no_reconcile(site: MemorySite, error: type[BellwetherError]):
    class Refusing(MemoryConfigs):
        def topic_configs(self, topics: Collection[str], names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
            self.asked += 1
            raise error(f"{names} of {topics} are not known")

    refusing = Refusing(site.cluster)
    reconciles = Reconciles(site, refusing)
    site.cluster.kill(3)
    site.cluster.kill(2)
    assert [reconciles.counts() for _ in range(3)] == [{Risk.UNDER_REPLICATED: 4}] * 3
    assert refusing.asked == 1


def test_once_all_are_back_nothing_is_at_risk(site: MemorySite):
    reconciles = Reconciles(site)
    site.cluster.kill(3)
    assert reconciles.counts() == {Risk.AT_MIN_ISR: 4}
    site.cluster.revive(3)
    assert reconciles.counts() == {}
