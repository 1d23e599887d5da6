"""Racks, limits, waves, drains, elections, rebalance plans and a policy's end, all on one cluster at once.

Each has tests of its own in this folder; here they meet: a reconcile survives any mixture, the cluster settles, and
without the policy every order is what the undo record promised.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.demotion.decisions import decide_on_deletion
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.settings.placement import Placement
from bellwether.core.settings.policy import UNBOUNDED, Capacity, Demotion, Policy
from bellwether.core.signals import OverrideState, Reading
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.loads.approved_plans import accepted, loadmove, settings
from testkit.simulation.fault_injection import Killed
from testkit.simulation.operators import Operator
from testkit.simulation.scenario_driver import WAVING, Play, Step, befalling, maintaining, perform, scripts, trouble
from testkit.values.strategies import memory_clusters, placements

LASTING = 10**8
"""Seconds that a rebalance plan is valid: these tests live for long."""


class Mixture(Play):
    """A play whose operators have everything on that a policy can ask for."""

    def __init__(self, cluster: MemoryCluster, wish: Placement | None, limit: int | None) -> None:
        capacity = Capacity(max_leaders=limit) if limit is not None else UNBOUNDED
        self.policy: Policy = replace(
            WAVING,
            placement=wish,
            demotion=Demotion(dwell_seconds=0, max_brokers=1, capacity=capacity),
            rebalance=settings(2, 3, valid_seconds=LASTING),
        )
        self.rebalance_input = RebalanceInput()
        self.strimzi: Strimzi | None = None
        super().__init__(cluster)

    def begin(self, at: int | None = None) -> Operator:
        operator = super().begin(at)
        operator.policy = self.policy
        return operator

    def reconciles(self, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            self.operator.policy, self.operator.rebalance_input = self.policy, self.rebalance_input
            self.operator.world = replace(self.operator.world, strimzi=self.strimzi)
            super().reconciles(1, seconds)

    def plan(self, shift: int) -> None:
        """A person approves a plan that gives every partition to another of its replicas."""
        led = [p for p in self.site.cluster.partitions() if len(p.replicas) > 1 and not p.internal]
        moves = [loadmove(p, p.replicas[1 + shift % (len(p.replicas) - 1)]) for p in led]
        self.rebalance_input = RebalanceInput(accepted(*moves, digest=f"{shift:016x}", made_at=self.site.clock.now()))

    def end_well(self) -> None:
        """No faults and no requests any more, for long enough that all that waits has come."""
        self.strimzi = None
        for broker in self.site.cluster.brokers:
            self.site.signals.lift(broker)
            assert self.site.pods is not None
            self.site.pods[broker] = Pod(f"kafka-{broker}")
        for _ in range(2):
            self.calm()
            self.everyone(Reading.PASSING)
            self.reconciles(25, seconds=60.0)

    def leave(self) -> None:
        """The policy is deleted."""
        for _ in range(40):
            try:
                self.operator.reconcile(decide_on_deletion)
            except Killed:
                self.succeed()
            self.site.clock.advance(20.0)


def people() -> st.SearchStrategy[Step]:
    """Other preferred racks, a rebalance plan, an override, a rebalance that begins or ends."""
    wishes = placements().map(
        lambda w: ("placement", lambda play: setattr(play, "policy", replace(play.policy, placement=w)))
    )
    plans = st.integers(0, 5).map(lambda n: (f"plan({n})", lambda play: play.plan(n)))
    words = st.tuples(st.integers(1, 3), st.sampled_from(OverrideState)).map(
        lambda pair: (f"override{pair}", lambda play: play.site.signals.override(pair[0], pair[1], "a person"))
    )
    running = Strimzi(namespace="kafka", name="one", listener="tls", rebalancing=("full",))
    others = st.sampled_from([None, running]).map(lambda s: ("rebalance", lambda play: setattr(play, "strimzi", s)))
    return st.one_of(wishes, plans, words, others)


MIXED = scripts(people(), maintaining(), befalling(), trouble())
LIMITS = st.sampled_from([None, None, 2, 5])


@given(memory_clusters(), placements(), LIMITS, MIXED)
def test_invariants_1_2_6_and_10_hold_at_the_ports(
    cluster: MemoryCluster, wish: Placement, limit: int | None, script: list[Step]
):
    play = Mixture(cluster, wish, limit)
    perform(play, script)
    assert play.watcher.violations == []
    assert all(p.leader is None or p.leader in p.isr for p in cluster.partitions())


@given(memory_clusters(), placements(), LIMITS, MIXED)
def test_invariant_8_a_settled_cluster_gets_no_further_requests(
    cluster: MemoryCluster, wish: Placement, limit: int | None, script: list[Step]
):
    play = Mixture(cluster, wish, limit)
    perform(play, script)
    play.end_well()
    before = (cluster.mutations, play.site.store.writes)
    play.reconciles(10, seconds=20.0)
    assert (cluster.mutations, play.site.store.writes) == before
    assert play.operator.reports[-1].plan.empty


@given(memory_clusters(), placements(), LIMITS, MIXED)
def test_invariant_6_a_policy_that_ends_leaves_every_order_as_the_record_promised(
    cluster: MemoryCluster, wish: Placement, limit: int | None, script: list[Step]
):
    play = Mixture(cluster, wish, limit)
    perform(play, script)
    play.end_well()
    assert play.site.store.record is not None
    promised = {key: entry.baseline for key, entry in play.site.store.record.entries.items()}
    untouched = {key: order for key, order in play.orders.items() if key not in promised}
    play.leave()
    assert play.site.store.record.empty
    assert play.orders == {**untouched, **{key: order for key, order in promised.items() if key in play.orders}}
