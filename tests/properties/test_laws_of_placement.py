"""The laws with racks preferred and brokers limited, whatever befalls cluster and operator."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.memory.clusters import MemoryCluster
from bellwether.core.capacities import UNBOUNDED, Capacity
from bellwether.core.policies import Demotion
from bellwether.core.racks import Placement, Rankings
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading
from testkit.operators import Operator
from testkit.plays import WAVING, Play, Step, befalling, perform, racing, scripts, trouble
from testkit.strategies import memory_clusters, placements


class Placed(Play):
    """A play whose operators prefer racks, and put no more on a broker than it may carry."""

    def __init__(self, cluster: MemoryCluster, wish: Placement | None, limit: int | None = None) -> None:
        self.wish = wish
        self.capacity = Capacity(max_leaders=limit) if limit is not None else UNBOUNDED
        super().__init__(cluster)

    def begin(self, at: int | None = None) -> Operator:
        operator = super().begin(at)
        demotion = Demotion(dwell_seconds=0, max_brokers=2, capacity=self.capacity)
        operator.policy = replace(WAVING, placement=self.wish, demotion=demotion)
        return operator

    def prefer(self, wish: Placement | None) -> None:
        """Somebody changes the policy."""
        self.wish = wish
        self.operator.policy = replace(self.operator.policy, placement=wish)

    def end_well(self) -> None:
        """Everybody gets well and stays so, long enough for waves, contests and stabilisation."""
        self.calm()
        self.everyone(Reading.PASSING)
        self.turns(20, seconds=60.0)
        self.calm()
        self.turns(25, seconds=60.0)


LIMITS = st.sampled_from([None, None, 2, 5])


@given(memory_clusters(), placements(), LIMITS, scripts(befalling(), trouble(), racing()))
def test_laws_1_2_6_and_10_hold_at_the_ports(
    cluster: MemoryCluster, wish: Placement, limit: int | None, script: list[Step]
):
    play = Placed(cluster, wish, limit)
    perform(play, script)
    assert play.watcher.sins == []
    assert all(p.leader is None or p.leader in p.isr for p in cluster.partitions())


@given(memory_clusters(), placements(), LIMITS, scripts(befalling(), trouble()), st.integers(0, 4))
def test_law_3_a_demoted_broker_leads_only_where_a_named_reason_holds_the_move(
    cluster: MemoryCluster, wish: Placement, limit: int | None, script: list[Step], sick: int
):
    play = Placed(cluster, wish, limit)
    perform(play, script)
    play.faults.relent()
    play.faults.deliver()
    for broker in cluster.brokers:
        cluster.thaw(broker)
    play.say(sick, Reading.FAILING)
    play.turns(40, seconds=30.0)
    said = play.operator.reports[-1] if play.operator.reports else None
    if not any(b.active for b in cluster.brokers.values()) or said is None:
        return
    held = {h.key: h.reason for h in said.held}
    for p in cluster.partitions():
        if p.leader in said.plan.decisions.demoted:
            assert p.key in held, p
            if limit is None:
                assert held[p.key] is not Reason.CAPACITY_REACHED


@given(memory_clusters(), placements(), LIMITS, scripts(befalling(), trouble()))
def test_law_8_a_settled_cluster_causes_no_mutation_and_no_news(
    cluster: MemoryCluster, wish: Placement, limit: int | None, script: list[Step]
):
    play = Placed(cluster, wish, limit)
    perform(play, script)
    play.end_well()
    before = (cluster.mutations, play.site.store.writes)
    said = replace(play.operator.reports[-1], now=play.site.clock.now(), election=None)
    play.turns(10, seconds=20.0)
    assert (cluster.mutations, play.site.store.writes) == before
    assert all(replace(r, now=said.now, election=None) == said for r in play.operator.reports[-10:])


@given(memory_clusters(), placements(), scripts(befalling(), trouble()))
def test_once_all_are_well_every_leader_is_in_the_best_rack_that_holds_a_replica(
    cluster: MemoryCluster, wish: Placement, script: list[Step]
):
    play = Placed(cluster, wish)
    perform(play, script)
    play.end_well()
    rankings = Rankings(wish, cluster.snapshot())
    for p in cluster.partitions():
        ranking = rankings.of(p.topic)
        if ranking is not None and p.leader is not None:
            assert ranking.settles(p.leader, p.replicas), p
            assert ranking.orderly(p.replicas), p


@given(memory_clusters(), placements(), placements(), LIMITS, scripts(trouble()))
def test_without_the_wish_every_order_is_as_it_was_at_first(
    cluster: MemoryCluster, wish: Placement, other: Placement, limit: int | None, script: list[Step]
):
    at_first = {p.key: p.replicas for p in cluster.partitions()}
    play = Placed(cluster, wish, limit)
    perform(play, script)
    play.prefer(other)
    play.turns(5)
    play.prefer(None)
    play.end_well()
    assert play.orders == at_first
    assert play.site.store.record is not None
    assert play.site.store.record.empty


@given(memory_clusters(), placements(), scripts(trouble()), st.integers(1, 6))
def test_no_choice_puts_more_on_a_broker_than_it_may_carry(
    cluster: MemoryCluster, wish: Placement, script: list[Step], limit: int
):
    """Whoever led more at first may do so again; nobody else ever does."""
    most = {b: max(limit, led) for b, led in cluster.snapshot().leaders().items()}
    play = Placed(cluster, wish, limit)
    for _, act in script:
        act(play)
        play.turns(1)
        assert all(led <= most[b] for b, led in cluster.snapshot().leaders().items())
