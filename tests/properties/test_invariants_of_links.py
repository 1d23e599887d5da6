"""Broken links: in any order of events only what both ends have moves, within the cap, and all of it returns."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.demotion.links import WATCHED_SECONDS
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.settings.policy import Demotion
from bellwether.core.signals import Reading, SignalType
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

BROKERS = 5
IDS = st.integers(1, BROKERS)
EVENTS = st.sampled_from(
    ["cut", "cut", "repair", "sick", "well", "fence", "revive", "silent", "heard", "take over", "balance"]
)
SCRIPTS = st.lists(st.tuples(EVENTS, IDS, IDS, st.integers(1, 15)), max_size=12)


class Simulation:
    """Five brokers whose replication is measured, and the operator of the moment."""

    def __init__(self, cap: int) -> None:
        self.site = site(BROKERS, {"orders": 10})
        self.policy = replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=cap))
        for broker in self.site.cluster.brokers:
            self.site.signals.say(broker, Reading.PASSING)
            self.lag(broker, None)
        self.home = self.orders()
        self.operator = Operator(self.site, self.policy)
        self.operator.reconciles(1)

    def lag(self, broker: int, other: int | None) -> None:
        kind = SignalType.REPLICATION_LAG
        self.site.signals.say(broker, Reading.PASSING, type=kind, sources=["replication"], broken_link_to=other)

    def befalls(self, event: str, broker: int, other: int) -> None:
        match event:
            case "cut":
                self.lag(broker, other)
                self.lag(other, broker)
            case "repair":
                self.lag(broker, None)
                self.lag(other, None)
            case "sick" | "well":
                self.site.signals.say(broker, Reading.FAILING if event == "sick" else Reading.PASSING)
            case "fence":
                self.site.cluster.fence(broker)
            case "revive":
                self.site.cluster.revive(broker)
            case "silent":
                self.site.signals.silence("replication")
            case "heard":
                self.site.signals.resume("replication")
            case "balance":
                self.site.cluster.auto_balance()
            case "take over":
                self.operator.memory = None

    def orders(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {p.name: p.replicas for p in self.site.cluster.partitions()}

    def check(self) -> None:
        """What moved has both ends of a broken link, or is on a demoted broker; a link has two live ends."""
        memory = self.operator.memory
        if memory is None:
            return
        record = memory.record
        for partition in self.site.cluster.partitions():
            home = self.home[partition.name]
            assert sorted(partition.replicas) == sorted(home)
            off = not record.demoted.keys().isdisjoint(home) or any(set(link) <= set(home) for link in record.links)
            if not off:
                assert partition.replicas == home
        assert all(self.site.cluster.snapshot().live.issuperset(link) for link in record.links)
        assert len(record.demoted) <= self.policy.demotion.cap(BROKERS)


@given(st.integers(1, 2), SCRIPTS)
def test_only_what_both_ends_of_a_broken_link_have_moves_and_all_of_it_returns(
    cap: int, script: list[tuple[str, int, int, int]]
):
    simulation = Simulation(cap)
    for event, broker, other, seconds in script:
        simulation.befalls(event, broker, other)
        simulation.operator.reconciles(1)
        simulation.check()
        simulation.operator.reconciles(seconds)
        simulation.check()
    for broker in simulation.site.cluster.brokers:
        simulation.befalls("revive", broker, broker)
        simulation.befalls("well", broker, broker)
        simulation.befalls("repair", broker, broker)
    simulation.befalls("heard", 1, 1)
    simulation.operator.reconciles(700 + WATCHED_SECONDS)
    simulation.check()
    assert simulation.orders() == simulation.home
    assert simulation.operator.memory is not None
    assert simulation.operator.memory.record.restored
