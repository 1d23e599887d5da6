"""The scope of a policy: what is out of it never moves, and does not change what happens to the rest."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.planning.preferred_election import PreferredElectionState, plan_preferred_election
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference, Scope
from bellwether.core.settings.policy import Capacity, Demotion, Election, Policy
from bellwether.core.settings.rebalance import Rebalance
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import START
from bellwether_load.plan.problem_builder import PinnedReason, rebalance_problem
from testkit.simulation.operators import Operator
from testkit.simulation.scenario_driver import WAVING, Play, Step, perform, scripts, trouble
from testkit.values.builders import after, decisions, record, returning, snapshot, verdicts
from testkit.values.strategies import clusters, entries, memory_clusters, partitions

OUTSIDE = "private"
SCOPE = st.sampled_from([Scope(excluded=("priv*",)), Scope(included=("orders", "other-?")), Scope(("*",), (OUTSIDE,))])
RACKS = st.sampled_from([None, Placement(Preference(("a", "b"))), Placement(Preference(weights=(("a", 1), ("b", 3))))])


@st.composite
def shared(draw: st.DrawFn) -> Cluster:
    """Any cluster with partitions in scope, and some that are not."""
    seen = draw(clusters())
    ids = tuple(sorted(seen.named | set(seen.brokers)))
    if len(ids) < 2:
        return seen
    outside = [draw(partitions(ids, OUTSIDE, i)) for i in range(draw(st.integers(1, 4)))]
    return replace(seen, partitions=tuple(draw(st.permutations([*seen.partitions, *outside]))))


def judged(seen: Cluster, policy: Policy, **facts: object) -> Context:
    found = snapshot(seen, now=after(60), **facts)  # type: ignore[arg-type]
    placement = policy.placement
    if placement is not None:
        policy = replace(policy, placement=replace(placement, scope=policy.scope))
    return Context(found, verdicts(seen), policy)


def planned(context: Context, demoted: set[int], coming: int | None) -> Plan:
    back = [returning(coming)] if coming is not None and coming not in demoted else []
    return build_plan(context, decisions(*sorted(demoted), back=back))


DEMOTED = st.sets(st.integers(1, 5), max_size=3)
COMING = st.none() | st.integers(1, 5)
LIMITS = st.builds(Capacity, max_leaders=st.sampled_from([None, 1, 3]))


@given(shared(), SCOPE, RACKS, LIMITS, DEMOTED, COMING)
def test_what_is_out_of_scope_is_neither_moved_nor_reordered_nor_elected(
    seen: Cluster, scope: Scope, racks: Placement | None, limit: Capacity, demoted: set[int], coming: int | None
):
    policy = Policy(
        name="main",
        scope=scope,
        placement=racks,
        demotion=Demotion(capacity=limit),
        election=Election(interval_seconds=1),
    )
    context = judged(seen, policy)
    plan = planned(context, demoted, coming)
    election = plan_preferred_election(PreferredElectionState(START), context, plan)
    moves = (*plan.moves, *(election.moves if election is not None else ()))
    assert OUTSIDE not in {move.topic for move in moves}
    assert not any(p.key in plan.targets for p in seen.partitions if p.topic == OUTSIDE)


@given(shared(), SCOPE, RACKS, DEMOTED, COMING)
def test_what_is_in_scope_is_planned_as_if_the_rest_did_not_exist(
    seen: Cluster, scope: Scope, racks: Placement | None, demoted: set[int], coming: int | None
):
    policy = Policy(name="main", scope=scope, placement=racks)
    alone = replace(seen, partitions=tuple(p for p in seen.partitions if p.topic != OUTSIDE))
    both = planned(judged(seen, policy), demoted, coming)
    one = planned(judged(alone, policy), demoted, coming)
    assert (both.moves, both.targets, both.withheld) == (one.moves, one.targets, one.withheld)
    assert [hold for hold in both.holds if hold.reason is not Reason.OUT_OF_SCOPE] == list(one.holds)


@given(shared(), SCOPE, RACKS, DEMOTED)
def test_each_leader_that_stays_with_a_demoted_broker_for_the_scope_is_named(
    seen: Cluster, scope: Scope, racks: Placement | None, demoted: set[int]
):
    plan = planned(judged(seen, Policy(name="main", scope=scope, placement=racks)), demoted, None)
    named = {hold.key for hold in plan.holds if hold.reason is Reason.OUT_OF_SCOPE}
    assert named == {p.key for p in seen.partitions if p.topic == OUTSIDE and p.leader in demoted}


@given(shared(), SCOPE, DEMOTED)
def test_a_load_plan_pins_what_is_out_of_scope(seen: Cluster, scope: Scope, demoted: set[int]):
    context = judged(seen, Policy(name="main", scope=scope, rebalance=Rebalance()))
    problem = rebalance_problem(context, decisions(*demoted).demoted, Rebalance())
    for one in problem.partitions:
        if one.topic == OUTSIDE:
            assert one.held
        else:
            assert one.held != PinnedReason.OUT_OF_SCOPE


@given(shared(), SCOPE, st.data())
def test_what_is_displaced_when_it_leaves_scope_only_goes_back(seen: Cluster, scope: Scope, data: st.DataObject):
    outside = [p for p in seen.partitions if p.topic == OUTSIDE]
    if not outside:
        return
    chosen: Partition = data.draw(st.sampled_from(outside))
    entry = data.draw(entries())
    baseline = tuple(data.draw(st.permutations(chosen.replicas)))
    kept = {chosen.key: replace(entry, topic=OUTSIDE, baseline=baseline, written=chosen.replicas, outstanding=())}
    plan = planned(judged(seen, Policy(name="main", scope=scope), undo=record(kept)), set(), None)
    assert all(move.key == chosen.key and move.order == baseline for move in plan.moves if move.topic == OUTSIDE)


class Scoped(Play):
    """A play whose operators may not move one of the topics."""

    def begin(self, at: int | None = None) -> Operator:
        operator = super().begin(at)
        operator.policy = replace(WAVING, scope=Scope(excluded=("topic-0",)))
        return operator


@given(memory_clusters(), scripts(trouble()))
def test_a_reconcile_with_a_scope_leaves_orders_and_leaders_of_other_topics_alone(
    cluster: MemoryCluster, script: list[Step]
):
    play = Scoped(cluster)
    before = {p.key: (p.replicas, p.leader) for p in cluster.partitions() if p.topic == "topic-0"}
    perform(play, script)
    assert {p.key: (p.replicas, p.leader) for p in cluster.partitions() if p.topic == "topic-0"} == before
