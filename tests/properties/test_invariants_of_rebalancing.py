"""An approved rebalance plan in waves, under any fault: only orders change, and in the end all are in place.

The invariants of requests (1, 2, 6, 10) are watched at the ports while the plan is applied; then all recover, and
every partition of the plan has its order or is named.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.undo_record import ApplicationEnd, PlanApplication
from bellwether.core.signals import Reading
from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceInput, RebalanceMove
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.loads.approved_plans import accepted, loadmove, settings
from testkit.simulation.operators import Operator
from testkit.simulation.scenario_driver import GENEROUS, Play, Step, befalling, perform, racing, scripts, trouble
from testkit.values.strategies import memory_clusters

LASTING = 10**8
"""Seconds that a plan is valid: these tests live for long."""


class Rebalancing(Play):
    """A play whose operators have an approved plan to apply, two partitions a wave."""

    def __init__(self, cluster: MemoryCluster, plan: ApprovedPlan) -> None:
        self.plan = plan
        self.at_first = {p.key: p.replicas for p in cluster.partitions()}
        self.at_the_end: dict[PartitionKey, tuple[int, ...]] | None = None
        super().__init__(cluster)

    def begin(self, at: int | None = None) -> Operator:
        operator = super().begin(at)
        operator.policy = replace(GENEROUS, rebalance=settings(2, 3, valid_seconds=LASTING))
        operator.rebalance_input = RebalanceInput(self.plan)
        return operator

    def reconciles(self, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            before = self.orders  # what others do comes between turns, what is done here is known by its record
            super().reconciles(1, seconds)
            if self.at_the_end is None and (found := self.application) is not None and found.ended is not None:
                self.at_the_end = before

    @property
    def application(self) -> PlanApplication | None:
        record = self.site.store.record
        return record.application if record is not None else None

    def end_well(self) -> PlanApplication:
        """Everyone gets well and stays so, long enough for whatever is left to be done."""
        self.calm()
        self.everyone(Reading.PASSING)
        for _ in range(40):
            self.reconciles(10, seconds=20.0)
            self.calm()
            if (found := self.application) is not None and found.ended is not None:
                self.reconciles(10, seconds=20.0)
                return found
        raise AssertionError(f"the plan did not end: {self.application}, {self.operator.reports[-1:]}")


@st.composite
def plans(draw: st.DrawFn, cluster: MemoryCluster) -> ApprovedPlan:
    """Any leaders for some of the partitions, each one of its replicas, in any order of moves."""
    moves: list[RebalanceMove] = []
    for p in cluster.partitions():
        first = draw(st.sampled_from([None, *p.replicas]))
        if first is not None and not p.internal and (first != p.leader or first != p.replicas[0]):
            moves.append(loadmove(p, first, load=draw(st.integers(0, 3))))
    return accepted(*draw(st.permutations(moves)))


@st.composite
def rebalancings(draw: st.DrawFn) -> Rebalancing:
    cluster = draw(memory_clusters())
    return Rebalancing(cluster, draw(plans(cluster)))


def standing(play: Play) -> dict[PartitionKey, tuple[tuple[int, ...], int | None]]:
    return {p.key: (p.replicas, p.leader) for p in play.site.cluster.partitions()}


@given(rebalancings(), scripts(trouble()))
def test_the_plan_is_applied_exactly_despite_sick_and_dead_brokers(play: Rebalancing, script: list[Step]):
    perform(play, script)
    ended = play.end_well()
    assert play.watcher.violations == []
    assert (ended.ended, ended.left) == (ApplicationEnd.DONE, {})
    wanted = {**play.at_first, **{m.key: m.order for m in play.plan.moves}}
    assert standing(play) == {key: (order, order[0]) for key, order in wanted.items()}
    assert play.site.store.record is not None
    assert play.site.store.record.empty


@given(rebalancings(), scripts(befalling(), racing(), trouble()))
def test_each_partition_ends_in_the_plans_order_or_is_named(play: Rebalancing, script: list[Step]):
    perform(play, script)
    ended = play.end_well()
    assert [
        s
        for s in play.watcher.violations
        if s.startswith(("invariant 1:", "invariant 2:", "invariant 6:", "invariant 10:"))
    ] == []
    assert sum(ended.left.values()) == ended.left_out
    if ended.ended is ApplicationEnd.DONE:
        named = {(one.topic, one.partition) for one in ended.sample}
        then = play.at_the_end
        assert then is not None
        for move in play.plan.moves:
            order = then.get(move.key, ())
            assert order == move.order or (move.topic, move.partition) in named, (move, order)


@given(rebalancings(), scripts(trouble()))
def test_no_replica_set_changes(play: Rebalancing, script: list[Step]):
    before = {key: set(order) for key, order in play.at_first.items()}
    for _, act in script:
        act(play)
        play.reconciles(1)
        assert {p.key: set(p.replicas) for p in play.site.cluster.partitions()} == before


@given(rebalancings(), st.integers(0, 4), st.integers(0, 6), st.sampled_from([Reading.FAILING, Reading.PASSING]))
def test_no_further_wave_is_taken_up_while_a_broker_is_ill_and_the_plan_goes_on_when_it_is_well(
    play: Rebalancing, broker: int, reconciles: int, then: Reading
):
    play.reconciles(reconciles, seconds=2.0)
    before = play.application
    play.say(broker, Reading.FAILING)
    play.reconciles(1)
    sick = play.application
    assert sick == before
    play.reconciles(20, seconds=5.0)
    stopped = play.application
    assert (stopped.taken_up if stopped else 0) == (before.taken_up if before else 0)
    play.say(broker, then)
    assert play.end_well().ended is ApplicationEnd.DONE


@given(rebalancings(), st.integers(0, 12))
def test_a_settled_cluster_whose_plan_is_done_is_left_alone(play: Rebalancing, script: int):
    play.reconciles(script)
    play.end_well()
    asked, written = (play.watcher.reorders, play.watcher.elections), play.site.store.writes
    play.reconciles(20, seconds=5.0)
    assert (play.watcher.reorders, play.watcher.elections) == asked
    assert play.site.store.writes == written
