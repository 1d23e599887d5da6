"""Reconciles while other tools work on the cluster: whom the policy waits for, what it puts back, what it forgets.

``docs/placement/coexistence.md`` names these tests row by row.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.condition import Condition
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.signals import OverrideState, Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator

MARK = "leader.replication.throttled.replicas"
ROUND = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]


class Shared:
    """Four brokers, of which three hold the topic ``orders``; an operator that has looked once."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster(4)
        self.cluster.create_topic("orders", assignment=ROUND)
        self.site = MemorySite(self.cluster)
        for broker in self.cluster.brokers:
            self.site.signals.say(broker, Reading.PASSING)
        self.operator = Operator(self.site, POLICY)
        self.reconciles(1)

    def reconciles(self, count: int = 3) -> None:
        self.operator.reconciles(count)

    def demote(self, broker: int) -> None:
        self.site.signals.override(broker, OverrideState.DEMOTED, "its disk")
        self.reconciles()

    def waiting(self) -> Condition | None:
        said = self.operator.reports[-1].conditions
        return next((c for c in said if c.type == "WaitingForExternalOperation"), None)

    @property
    def orders(self) -> list[tuple[int, ...]]:
        return [p.replicas for p in self.cluster.partitions(["orders"])]

    @property
    def noted(self) -> set[tuple[str, Reason]]:
        return {(n.topic, n.reason) for r in self.operator.reports for n in r.notes}


@pytest.fixture
def shared() -> Shared:
    return Shared()


def test_without_an_external_operation_nothing_is_reported(shared: Shared):
    shared.demote(1)
    assert shared.waiting() is None


class TestReassignments:
    def test_a_partition_in_reassignment_is_left_alone_and_named_until_it_has_ended(self, shared: Shared):
        name = shared.cluster.partition("orders", 0).name
        shared.cluster.foreign_reassign(name, (1, 2, 4))
        shared.demote(1)
        waits = shared.waiting()
        assert waits == Condition(
            "WaitingForExternalOperation", True, Reason.REASSIGNING, "Reassigning: 1 partition (orders-0)"
        )
        assert shared.cluster.partition("orders", 0).leader == 1
        shared.cluster.finish_reassignments()
        shared.reconciles()
        assert shared.waiting() is None
        assert shared.cluster.partition("orders", 0).replicas[-1] == 1

    def test_a_single_move_by_hand_does_not_hold_a_promotion(self, shared: Shared):
        shared.demote(1)
        shared.cluster.foreign_reassign(shared.cluster.partition("orders", 2).name, (3, 2, 4))
        shared.site.signals.lift(1)
        shared.reconciles()
        assert shared.cluster.partition("orders", 0).leader == 1
        assert shared.cluster.partition("orders", 2).reassigning

    @pytest.mark.parametrize("mark", ["cruise control", "throttle"])
    def test_a_rebalance_is_recognised_by_its_marks_and_holds_promotion(self, shared: Shared, mark: str):
        if mark == "cruise control":
            shared.cluster.create_topic("__CruiseControlMetrics", assignment=[(2, 3, 4)])
        else:
            shared.cluster.settings["orders"][MARK] = "2:3,2:4"
        shared.demote(1)
        shared.cluster.foreign_reassign(shared.cluster.partition("orders", 2).name, (3, 2, 4))
        shared.site.signals.lift(1)
        shared.reconciles()
        waits = shared.waiting()
        assert waits is not None
        assert (waits.reason, "broker 1" in waits.message) == (Reason.EXTERNAL_OPERATION, True)
        assert shared.cluster.snapshot().leaders()[1] == 0
        broker = next(b for b in shared.operator.reports[-1].brokers if b.broker == 1)
        assert_wording(broker.condition("Demoted").message)
        shared.cluster.finish_reassignments()
        shared.reconciles()
        assert shared.waiting() is None
        assert shared.cluster.partition("orders", 0).leader == 1

    def test_a_rebalance_lets_a_persons_word_and_hard_faults_pass(self, shared: Shared):
        shared.cluster.create_topic("__CruiseControlMetrics", assignment=[(2, 3, 4)])
        shared.cluster.foreign_reassign(shared.cluster.partition("orders", 2).name, (3, 2, 4))
        shared.site.signals.say(1, Reading.FAILING)
        shared.reconciles()
        assert shared.cluster.partition("orders", 0).leader != 1
        shared.site.signals.override(1, OverrideState.PROMOTED, "needed")
        shared.reconciles()
        assert shared.cluster.partition("orders", 0).leader == 1

    def test_marks_are_asked_for_only_while_replicas_move(self, shared: Shared):
        configs = shared.operator.world.configs
        asked = configs.asked  # type: ignore[union-attr]
        shared.demote(1)
        assert configs.asked == asked  # type: ignore[union-attr]

    def test_what_cannot_be_asked_is_no_mark(self, shared: Shared):
        shared.cluster.settings["orders"][MARK] = "2:3,2:4"
        shared.demote(1)
        shared.operator.world = replace(shared.operator.world, configs=None)
        shared.cluster.foreign_reassign(shared.cluster.partition("orders", 2).name, (3, 2, 4))
        shared.site.signals.lift(1)
        shared.reconciles()
        assert shared.cluster.partition("orders", 0).leader == 1


@pytest.mark.parametrize(
    ("strimzi", "reason"),
    [
        (Strimzi(namespace="kafka", name="one", listener="tls", paused=True), Reason.EXTERNAL_OPERATION),
        (Strimzi(namespace="kafka", name="one", listener="tls", rebalancing=("full",)), Reason.EXTERNAL_OPERATION),
    ],
)
def test_strimzi_at_work_is_waited_for_and_then_gone_on_without(shared: Shared, strimzi: Strimzi, reason: Reason):
    shared.demote(1)
    shared.operator.world = replace(shared.operator.world, strimzi=strimzi)
    shared.site.signals.lift(1)
    shared.reconciles()
    waits = shared.waiting()
    assert waits is not None
    assert (waits.reason, waits.message.startswith(f"{reason}: broker 1 (Kafka")) == (reason, True)
    at_rest = replace(strimzi, paused=False, rebalancing=())
    shared.operator.world = replace(shared.operator.world, strimzi=at_rest)
    shared.reconciles()
    assert shared.waiting() is None
    assert shared.orders == ROUND


class TestPreferredRacks:
    BUSY = Strimzi(namespace="kafka", name="one", listener="tls", rebalancing=("full",))

    @pytest.fixture
    def placed(self, shared: Shared) -> Shared:
        """Brokers 1 and 4 are in the rack that leads."""
        for broker, rack in zip(shared.cluster.brokers.values(), "abba", strict=True):
            broker.rack = rack
        shared.operator.policy = replace(POLICY, placement=Placement(Preference(("a",))))
        shared.reconciles()
        assert shared.orders == [(1, 2, 3), (1, 2, 3), (1, 3, 2)]
        shared.operator.world = replace(shared.operator.world, strimzi=self.BUSY)
        return shared

    def test_what_rebalance_puts_elsewhere_stays_there_until_it_has_ended(self, placed: Shared):
        placed.cluster.foreign_reorder(placed.cluster.partition("orders", 0).name, (2, 1, 3))
        placed.reconciles()
        assert placed.orders[0] == (2, 1, 3)
        waits = placed.waiting()
        assert waits is not None
        assert_wording(waits.message)
        placed.operator.world = replace(placed.operator.world, strimzi=None)
        placed.reconciles()
        assert placed.waiting() is None
        assert placed.orders[0] == (1, 2, 3)

    def test_changed_preferred_racks_wait_and_a_demotion_does_not(self, placed: Shared):
        placed.operator.policy = replace(POLICY, placement=Placement(Preference(("b",))))
        placed.reconciles()
        assert (placed.orders[0], placed.orders[2]) == ((1, 2, 3), (1, 3, 2))
        placed.demote(1)
        assert [order[-1] for order in placed.orders] == [1, 1, 1]


class TestOrders:
    def test_a_foreign_order_is_waited_with_named_and_then_displaced_and_gone_back_to(self, shared: Shared):
        shared.demote(1)
        name = shared.cluster.partition("orders", 0).name
        shared.cluster.foreign_reorder(name, (1, 3, 2))
        shared.reconciles(1)
        waits = shared.waiting()
        assert waits is not None
        assert (waits.reason, waits.message) == (Reason.ORDER_OVERWRITTEN, "OrderOverwritten: 1 partition (orders-0)")
        shared.reconciles(8)
        assert shared.waiting() is None
        assert shared.cluster.partition("orders", 0).replicas[-1] == 1
        shared.site.signals.lift(1)
        shared.reconciles()
        assert shared.orders[0] == (1, 3, 2)

    def test_kafkas_own_election_of_preferred_leaders_finds_nothing_to_take_back(self, shared: Shared):
        shared.demote(1)
        assert shared.cluster.auto_balance() == 0
        shared.reconciles()
        assert shared.cluster.snapshot().leaders()[1] == 0

    def test_added_replicas_keep_their_place_and_others_return(self, shared: Shared):
        shared.demote(1)
        shared.cluster.raise_rf("orders")
        shared.reconciles()
        assert ("orders", Reason.CHANGED_SINCE_PLAN) in shared.noted
        shared.site.signals.lift(1)
        shared.reconciles()
        assert [order[:3] for order in shared.orders] == ROUND


class TestTopics:
    def test_a_topic_that_is_deleted_takes_its_baselines_along(self, shared: Shared):
        shared.demote(1)
        shared.cluster.delete_topic("orders")
        shared.reconciles(40)
        assert ("orders", Reason.CHANGED_SINCE_PLAN) in shared.noted
        assert shared.site.store.record is not None
        assert not shared.site.store.record.entries
        assert shared.waiting() is None

    def test_a_topic_of_the_same_name_is_another_one(self, shared: Shared):
        shared.demote(1)
        shared.cluster.recreate_topic("orders", assignment=[(1, 3, 2)])
        shared.reconciles(40)
        assert ("orders", Reason.CHANGED_SINCE_PLAN) in shared.noted
        assert shared.cluster.partition("orders", 0).leader != 1
        shared.site.signals.lift(1)
        shared.reconciles()
        assert shared.orders == [(1, 3, 2)]

    def test_a_topic_that_is_made_meanwhile_is_taken_from_the_demoted_broker_and_given_back(self, shared: Shared):
        shared.demote(1)
        shared.cluster.create_topic("later", assignment=[(1, 2, 3)])
        shared.reconciles()
        assert shared.cluster.partition("later").leader != 1
        shared.site.signals.lift(1)
        shared.reconciles()
        assert shared.cluster.partition("later").replicas == (1, 2, 3)
        assert shared.cluster.partition("later").leader == 1


class TestExpanding:
    def test_nothing_of_ours_moves_a_leader_to_a_broker_that_has_just_come(self, shared: Shared):
        before = shared.cluster.mutations
        shared.reconciles(10)
        assert shared.cluster.mutations == before
        assert 4 in {b.broker for b in shared.operator.reports[-1].brokers}
        assert shared.orders == ROUND

    def test_a_foreign_replica_stays_behind_until_it_is_put_first(self, shared: Shared):
        shared.cluster.foreign_reassign(shared.cluster.partition("orders", 0).name, (1, 2, 4))
        shared.cluster.finish_reassignments()
        before = shared.cluster.mutations
        shared.reconciles(10)
        assert shared.cluster.mutations == before
        assert shared.cluster.snapshot().leaders()[4] == 0

    def test_after_a_demotion_it_leads_no_more_than_before(self, shared: Shared):
        shared.cluster.foreign_reassign(shared.cluster.partition("orders", 0).name, (1, 2, 4))
        shared.cluster.finish_reassignments()
        shared.demote(1)
        shared.site.signals.lift(1)
        shared.reconciles(10)
        assert shared.cluster.partition("orders", 0).replicas == (1, 2, 4)
        assert shared.cluster.snapshot().leaders()[4] == 0


class TestShrinking:
    def leave(self, shared: Shared) -> None:
        """Its replicas are moved away, then it is taken out."""
        for index in range(3):
            target = [b if b != 1 else 4 for b in shared.cluster.partition("orders", index).replicas]
            shared.cluster.foreign_reassign(shared.cluster.partition("orders", index).name, target)
        shared.cluster.finish_reassignments()
        shared.cluster.brokers.pop(1)

    @pytest.mark.parametrize("how", ["override", "drain", "signals"])
    def test_a_broker_that_has_left_is_forgotten_whole(self, shared: Shared, how: str):
        if how == "signals":
            shared.site.signals.say(1, Reading.FAILING)
        elif how == "drain":
            shared.site.signals.drain(1)
        else:
            shared.site.signals.override(1, OverrideState.DEMOTED)
        shared.reconciles()
        memory = shared.operator.memory
        assert memory is not None
        assert 1 in memory.record.demoted
        self.leave(shared)
        shared.site.signals.lift(1)  # its BrokerHealth goes, and the override with it
        shared.reconciles(60)
        memory = shared.operator.memory
        assert memory is not None
        assert 1 not in memory.record.demoted
        assert 1 not in memory.flaps
        assert 1 not in memory.verdicts
        assert not any(1 in e.baseline for e in memory.record.entries.values())
        assert 1 not in {b.broker for b in shared.operator.reports[-1].brokers}

    def test_a_new_broker_of_the_same_id_starts_without_history(self, shared: Shared):
        shared.site.signals.say(1, Reading.FAILING)
        shared.reconciles()
        self.leave(shared)
        shared.reconciles(3)
        memory = shared.operator.memory
        assert memory is not None
        assert (1 in memory.flaps, 1 in memory.record.demoted) == (False, False)

    def test_while_a_replica_list_still_names_it_it_is_kept(self, shared: Shared):
        shared.demote(1)
        shared.cluster.brokers.pop(1)
        shared.reconciles()
        assert shared.operator.memory is not None
        assert 1 in shared.operator.memory.record.demoted
        assert 1 in {b.broker for b in shared.operator.reports[-1].brokers}
