"""The invariants with racks preferred and brokers limited, whatever happens to cluster and operator."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Cluster, PartitionKey
from bellwether.core.model.loads import Loads
from bellwether.core.model.rack_ranking import RackRankings
from bellwether.core.planning.plan import build_plan
from bellwether.core.reasons import Reason
from bellwether.core.settings.objective import WHOLE
from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import UNBOUNDED, Capacity, Demotion, Policy
from bellwether.core.signals import Reading
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.operators import Operator
from testkit.simulation.scenario_driver import WAVING, Play, Step, befalling, perform, racing, scripts, trouble
from testkit.values.builders import cluster, decisions, demoted, record, snapshot, verdicts
from testkit.values.strategies import memory_clusters, partitions, placements


class Placed(Play):
    """A play whose operators prefer racks, and put no more on a broker than it may carry."""

    def __init__(self, cluster: MemoryCluster, wish: Placement | None, capacity: Capacity = UNBOUNDED) -> None:
        self.wish = wish
        self.capacity = capacity
        self.loads = weighed(cluster, 0)
        super().__init__(cluster)

    def begin(self, at: int | None = None) -> Operator:
        operator = super().begin(at)
        demotion = Demotion(dwell_seconds=0, max_brokers=2, capacity=self.capacity)
        operator.policy = replace(WAVING, placement=self.wish, demotion=demotion)
        operator.rebalance_input = RebalanceInput(loads=self.loads)
        return operator

    def measure(self, seed: int) -> None:
        """Another run has measured other loads; those of topics that came later, too."""
        self.loads = weighed(self.site.cluster, seed)
        self.operator.rebalance_input = RebalanceInput(loads=self.loads)

    def prefer(self, wish: Placement | None) -> None:
        """A person changes the policy."""
        self.wish = wish
        self.operator.policy = replace(self.operator.policy, placement=wish)

    def end_well(self) -> None:
        """Everyone gets well and stays so, long enough for waves, contests and stabilisation."""
        self.calm()
        self.everyone(Reading.PASSING)
        self.reconciles(20, seconds=60.0)
        self.calm()
        self.reconciles(25, seconds=60.0)


def weighed(cluster: MemoryCluster, seed: int) -> Loads:
    """Loads from 0 to 12; broker 1 is weaker than the others, and 2 follows more."""
    rates = {p.key: (7 * p.index + len(p.topic) * seed + seed) % 13 for p in cluster.partitions()}
    return Loads(rates, {1: 60}, {2: 5})


def measuring() -> st.SearchStrategy[Step]:
    """Loads are measured again."""
    return st.integers(0, 12).map(lambda seed: (f"measure({seed})", lambda play: cast(Placed, play).measure(seed)))


RACKS_IN_ORDER = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True)

LIMITS = st.one_of(
    st.just(UNBOUNDED),
    st.builds(Capacity, max_leaders=st.sampled_from([None, 2, 5]), max_load=st.sampled_from([None, 6, 15, 40])),
)


@given(memory_clusters(), placements(), LIMITS, scripts(befalling(), trouble(), measuring(), racing(), measuring()))
def test_invariants_1_2_6_and_10_hold_at_the_ports(
    cluster: MemoryCluster, wish: Placement, limit: Capacity, script: list[Step]
):
    play = Placed(cluster, wish, limit)
    perform(play, script)
    assert play.watcher.violations == []
    assert all(p.leader is None or p.leader in p.isr for p in cluster.partitions())


@given(memory_clusters(), placements(), LIMITS, scripts(befalling(), trouble(), measuring()), st.integers(0, 4))
def test_invariant_3_a_demoted_broker_leads_only_where_a_named_reason_holds_the_move(
    cluster: MemoryCluster, wish: Placement, limit: Capacity, script: list[Step], sick: int
):
    play = Placed(cluster, wish, limit)
    perform(play, script)
    play.hear()
    play.say(sick, Reading.FAILING)
    play.reconciles(40, seconds=30.0)
    said = play.operator.reports[-1] if play.operator.reports else None
    if not any(b.active for b in cluster.brokers.values()) or said is None:
        return
    held = {h.key: h.reason for h in said.held}
    for p in cluster.partitions():
        if p.leader in said.plan.decisions.demoted:
            assert p.key in held, p
            if not limit.bounded:
                assert held[p.key] is not Reason.CAPACITY_REACHED


@given(memory_clusters(), placements(), LIMITS, scripts(befalling(), trouble(), measuring()))
def test_invariant_8_settled_cluster_causes_no_mutation_and_no_news(
    cluster: MemoryCluster, wish: Placement, limit: Capacity, script: list[Step]
):
    play = Placed(cluster, wish, limit)
    perform(play, script)
    play.end_well()
    before = (cluster.mutations, play.site.store.writes)
    said = replace(play.operator.reports[-1], now=play.site.clock.now(), election=None)
    play.reconciles(10, seconds=20.0)
    assert (cluster.mutations, play.site.store.writes) == before
    assert all(replace(r, now=said.now, election=None) == said for r in play.operator.reports[-10:])


@given(memory_clusters(), placements(), scripts(befalling(), trouble()))
def test_once_all_are_well_every_leader_is_in_the_best_rack_that_holds_a_replica(
    cluster: MemoryCluster, wish: Placement, script: list[Step]
):
    play = Placed(cluster, wish)
    perform(play, script)
    play.end_well()
    rankings = RackRankings(wish, cluster.snapshot())
    for p in cluster.partitions():
        ranking = rankings.of(p.topic)
        if ranking is not None and p.leader is not None:
            assert ranking.settles(p.leader, p.replicas), p
            assert ranking.orderly(p.replicas), p


@given(memory_clusters(), placements(), placements(), LIMITS, scripts(trouble(), measuring()))
def test_without_preferred_racks_every_order_is_the_original_one(
    cluster: MemoryCluster, wish: Placement, other: Placement, limit: Capacity, script: list[Step]
):
    at_first = {p.key: p.replicas for p in cluster.partitions()}
    play = Placed(cluster, wish, limit)
    perform(play, script)
    play.prefer(other)
    play.reconciles(5)
    play.prefer(None)
    play.end_well()
    assert play.orders == at_first
    assert play.site.store.record is not None
    assert play.site.store.record.empty


@given(memory_clusters(), placements(), scripts(trouble()), st.integers(1, 6))
def test_no_choice_puts_more_on_broker_than_it_may_carry(
    cluster: MemoryCluster, wish: Placement, script: list[Step], limit: int
):
    """A broker that led more at first may do so again; no other ever does."""
    most = {b: max(limit, led) for b, led in cluster.snapshot().leaders().items()}
    play = Placed(cluster, wish, Capacity(max_leaders=limit))
    for _, act in script:
        act(play)
        play.reconciles(1)
        assert all(led <= most[b] for b, led in cluster.snapshot().leaders().items())


@given(memory_clusters(), scripts(trouble()), st.integers(1, 60))
def test_no_choice_puts_more_load_on_a_broker_than_it_may_carry(cluster: MemoryCluster, script: list[Step], limit: int):
    """The same by load. A broker that carried more at first may do so again."""
    play = Placed(cluster, None, Capacity(max_load=limit))
    most = {b: max(limit * play.loads.capacities.get(b, WHOLE) // WHOLE, led) for b, led in carried(play).items()}
    for _, act in script:
        act(play)
        play.reconciles(1)
        assert all(led <= most[b] for b, led in carried(play).items())


def carried(play: Placed) -> dict[int, int]:
    """What each broker carries, by leading and by following."""
    found = {b: play.loads.following.get(b, 0) for b in play.site.cluster.brokers}
    for p in play.site.cluster.partitions():
        if p.leader is not None:
            found[p.leader] += play.loads.partitions.get(p.key, 0)
    return found


@st.composite
def stretched(draw: st.DrawFn) -> Cluster:
    """Six brokers in three racks, all alive, and partitions that may be out of sync."""
    drawn = [draw(partitions((1, 2, 3, 4, 5, 6), index=i)) for i in range(draw(st.integers(5, 15)))]
    return cluster(*drawn, brokers=6, racks={b: "abc"[b % 3] for b in range(1, 7)})


@given(stretched(), RACKS_IN_ORDER, st.sets(st.integers(1, 6), max_size=2))
def test_where_one_of_the_best_rack_may_lead_that_rack_leads_whatever_the_other_partitions_are(
    seen: Cluster, racks: list[str], kept: set[int]
):
    wish = Placement(Preference(tuple(racks)))
    rankings = RackRankings(wish, seen)
    together = _targets(seen, wish, kept)
    for p in seen.partitions:
        ranking = rankings.of(p.topic)
        able = [b for b in p.replicas if b in p.isr and b in seen.live and b not in kept]
        if ranking is not None and len(ranking.best(able)) == 1 and not p.reassigning:
            assert ranking.settles(together[p.key][0], able)
            assert together[p.key] == _targets(replace(seen, partitions=(p,)), wish, kept)[p.key]


def _targets(seen: Cluster, wish: Placement, kept: set[int]) -> dict[PartitionKey, tuple[int, ...]]:
    """The order of every partition once a plan is carried out."""
    undo = record(None, *(demoted(b) for b in kept))
    made = build_plan(
        Context(snapshot(seen, undo=undo), verdicts(seen), Policy(name="p", placement=wish)), decisions(*kept)
    )
    return {p.key: made.targets.get(p.key, p.replicas) for p in seen.partitions}
