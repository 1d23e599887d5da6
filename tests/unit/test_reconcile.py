"""One turn over a whole world in memory: what it touches, what it leaves, whom it asks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from bellwether.core.demotion.decisions import manual_decision
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.loads import Loads
from bellwether.core.model.undo_record import EntryState
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Capacity, Demotion, Mode, Policy
from bellwether.core.signals import OverrideState, Reading
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.gather import Memory
from bellwether.ports.errors import Terminal, Transient, WrongCluster
from bellwether.ports.kafka import ClusterReader
from bellwether.reconcile import reconcile
from testkit.simulation.fault_injection import Wrapped
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import name, site

WATCHING = replace(POLICY, mode=Mode.OBSERVE)
FROZEN = replace(POLICY, suspend=True)


def well(made: MemorySite | None = None) -> MemorySite:
    """Three brokers of which only good is heard."""
    return (made or site()).well()


def said(operator: Operator) -> Report:
    report = operator.reconcile()
    assert report is not None
    return report


def test_a_settled_cluster_is_asked_for_nothing():
    made = well()
    operator = Operator(made)
    operator.reconcile()
    before = (made.cluster.mutations, made.store.writes)
    for _ in range(5):
        assert said(operator).settled
    assert (made.cluster.mutations, made.store.writes) == before


def test_one_reconcile_takes_every_leader_from_a_sick_broker():
    made = well()
    operator = Operator(made)
    operator.reconcile()
    made.signals.say(1, Reading.FAILING)
    report = said(operator)
    assert made.cluster.snapshot().leaders()[1] == 0
    assert (report.result.reordered, report.result.elected) == (4, 2)  # two had it last already
    assert report.condition("Settled").reason is Reason.LEADERS_MOVING
    assert made.store.record is not None
    assert list(made.store.record.demoted) == [1]


@pytest.mark.parametrize(
    ("policy", "ready"),
    [
        pytest.param(WATCHING, (True, "NotEnforcing"), id="Observe"),
        pytest.param(FROZEN, (True, "NotEnforcing"), id="suspend"),
    ],
)
def test_who_only_watches_touches_nothing_and_says_what_it_would_do(policy: Policy, ready: tuple[bool, str]):
    made = well()
    operator = Operator(made, policy)
    operator.reconcile()
    made.signals.say(1, Reading.FAILING)
    before = (made.cluster.mutations, made.store.writes)
    report = said(operator)
    assert (made.cluster.mutations, made.store.writes) == before
    assert report.would_demote == (1,)
    assert len(report.plan.moves) == 4
    condition = report.condition("Ready")
    assert (condition.status, str(condition.reason)) == ready


def test_persons_way_to_decide_takes_place_of_policys():
    made = well()
    report = Operator(made).reconcile(manual_decision(demote=[2], message="disk swap"))
    assert report is not None
    assert list(report.plan.decisions.demoted) == [2]
    assert made.cluster.snapshot().leaders()[2] == 0


def test_what_reconcile_learns_is_what_next_one_starts_from():
    made = well()
    world = made.process()
    memory = Memory(world.records.take_over(made.cluster_id), grace_seconds=33)
    made.signals.say(1, Reading.FAILING)
    after = reconcile(world, POLICY, memory).memory
    assert after.verdicts[1].state is HealthState.SICK
    assert {e.state for e in after.record.entries.values()} == {EntryState.DISPLACED}
    assert after.grace_seconds == 33


def test_observing_keeps_the_record_of_the_store_unchanged():
    made = well()
    world = made.process()
    memory = Memory(world.records.take_over(made.cluster_id))
    made.signals.say(1, Reading.FAILING)
    after = reconcile(world, WATCHING, memory).memory
    assert after.record is memory.record


@pytest.mark.parametrize("policy", [WATCHING, FROZEN], ids=["Observe", "suspend"])
def test_another_tool_s_order_is_kept_and_named_once_while_the_policy_does_not_act(policy: Policy):
    made = well(site(4, {"orders": 1}))
    made.signals.override(1, OverrideState.DEMOTED)
    operator = Operator(made).reconciles(2)
    operator.policy = policy
    made.cluster.foreign_reorder(name(), (3, 1, 2))
    operator.reports.clear()
    operator.reconciles(3)
    assert [len(r.notes) for r in operator.reports] == [1, 0, 0]
    operator = Operator(made, policy, identity="operator-b")
    made.clock.advance(30)
    operator.reconciles(1)
    made.cluster.raise_rf("orders")
    operator.reconciles(2)
    assert made.cluster.partition("orders").replicas == (3, 1, 2, 4)
    made.signals.lift(1)
    operator.policy = POLICY
    operator.settle()
    assert made.cluster.partition("orders").replicas == (3, 1, 2, 4)


def test_a_demotion_by_hand_that_is_undone_while_the_policy_is_suspended_leaves_the_baseline_as_it_was():
    made = well(site(3, {"orders": 1}))
    made.signals.override(1, OverrideState.DEMOTED)
    operator = Operator(made).reconciles(2)
    ours = made.cluster.partition("orders").replicas
    operator.policy = FROZEN
    for order in ((3, 1, 2), (1, 2, 3), ours):
        made.cluster.foreign_reorder(name(), order)
        operator.reconciles(2)
    made.signals.lift(1)
    operator.policy = POLICY
    operator.settle()
    assert made.cluster.partition("orders").replicas == (1, 2, 3)
    made.signals.override(1, OverrideState.DEMOTED)
    operator.reconciles(2)
    operator.policy = FROZEN
    made.cluster.foreign_reorder(name(), (3, 1, 2))
    operator.reconciles(2)
    made.signals.lift(1)
    operator.policy = POLICY
    operator.settle()
    assert made.cluster.partition("orders").replicas == (3, 1, 2)


class Asked(Wrapped):
    """Notes which brokers it is asked to avoid."""

    def avoid(self, brokers: Collection[int]) -> None:
        self.around.append(set(brokers))
        self.inner.avoid(brokers)


def test_doubtful_broker_is_avoided_before_it_is_asked_for_anything():
    made = well()
    world = made.process()
    asked = Asked(world.clusters, [])
    world = replace(world, clusters=asked)
    memory = Memory(world.records.take_over(made.cluster_id))
    made.signals.say(1, Reading.FAILING)
    memory = reconcile(world, POLICY, memory).memory
    reconcile(world, POLICY, memory)
    assert asked.around == [set(), {1}, {1}, {1}]


def test_a_store_that_is_away_starts_nothing_new():
    made = well()
    world = made.process()
    memory = Memory(world.records.take_over(made.cluster_id))
    made.signals.say(1, Reading.FAILING)
    made.store.reachable = False
    before = made.cluster.mutations
    with pytest.raises(Transient, match="undo records"):
        reconcile(world, POLICY, memory)
    assert made.cluster.mutations == before


def test_an_empty_cluster_is_no_error():
    made = well(site(topics={}))
    report = said(Operator(made))
    assert report.condition("Ready").reason is Reason.UP_TO_DATE


class Hiding:
    """A reader whose answer about all topics leaves one out, as Kafka's does for a topic that one may not see."""

    def __init__(self, inner: ClusterReader, topic: str, *, named: Terminal | None) -> None:
        self._inner, self._topic, self._named = inner, topic, named

    def read(self) -> Cluster:
        seen = self._inner.read()
        return Cluster(seen.cluster_id, seen.brokers, tuple(p for p in seen.partitions if p.topic != self._topic))

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        if self._named is not None and self._topic in topics:
            raise self._named
        return self._inner.partitions(topics)

    def avoid(self, brokers: Collection[int]) -> None:
        self._inner.avoid(brokers)


@pytest.mark.parametrize("named", [None, Terminal("Describe on topic orders is missing")], ids=["lagging", "forbidden"])
def test_topic_that_is_left_out_of_answer_keeps_its_baselines(named: Terminal | None):
    made = site()
    made.signals.override(1, OverrideState.DEMOTED, "trying")
    operator = Operator(made)
    operator.reconcile()
    world = replace(operator.world, clusters=Hiding(operator.world.clusters, "orders", named=named))
    memory = operator.memory
    assert memory is not None
    baselines = {key: e.baseline for key, e in memory.record.entries.items()}
    for _ in range(3):
        made.clock.advance(60)
        try:
            memory = reconcile(world, POLICY, memory).memory
        except Terminal:
            continue
    assert {key: e.baseline for key, e in memory.record.entries.items()} == baselines


def test_another_cluster_behind_the_same_addresses_is_refused_before_anything_is_judged():
    made = site()
    operator = Operator(made)
    operator.reconcile()
    memory = operator.memory
    assert memory is not None
    with pytest.raises(WrongCluster, match="memory-cluster"):
        reconcile(operator.world, POLICY, replace(memory, record=replace(memory.record, cluster_id="rebuilt")))


def test_loads_of_agenda_are_what_limit_is_held_against():
    made = well()
    operator = Operator(made, replace(POLICY, demotion=Demotion(dwell_seconds=0, capacity=Capacity(max_load=10))))
    operator.rebalance_input = RebalanceInput(
        loads=Loads({p.key: 1 if p.index else 11 for p in made.cluster.partitions()})
    )
    operator.reconcile()
    made.signals.say(1, Reading.FAILING)
    report = said(operator)
    heaviest = made.cluster.partitions()[0]
    assert heaviest.leader == 1
    assert [(h.key, h.reason) for h in report.held] == [(heaviest.key, Reason.CAPACITY_REACHED)]
