"""Turns beside other people: whom the policy waits for, what it puts back, and what it forgets.

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


class Beside:
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
def beside() -> Beside:
    return Beside()


def test_without_an_external_operation_nothing_is_reported(beside: Beside):
    beside.demote(1)
    assert beside.waiting() is None


class TestReassignments:
    def test_a_partition_in_reassignment_is_left_alone_and_named_until_it_has_ended(self, beside: Beside):
        name = beside.cluster.partition("orders", 0).name
        beside.cluster.foreign_reassign(name, (1, 2, 4))
        beside.demote(1)
        waits = beside.waiting()
        assert waits == Condition(
            "WaitingForExternalOperation", True, Reason.REASSIGNING, "Reassigning: 1 partition (orders-0)"
        )
        assert beside.cluster.partition("orders", 0).leader == 1
        beside.cluster.finish_reassignments()
        beside.reconciles()
        assert beside.waiting() is None
        assert beside.cluster.partition("orders", 0).replicas[-1] == 1

    def test_a_single_move_by_hand_does_not_hold_a_promotion(self, beside: Beside):
        beside.demote(1)
        beside.cluster.foreign_reassign(beside.cluster.partition("orders", 2).name, (3, 2, 4))
        beside.site.signals.lift(1)
        beside.reconciles()
        assert beside.cluster.partition("orders", 0).leader == 1
        assert beside.cluster.partition("orders", 2).reassigning

    @pytest.mark.parametrize("mark", ["cruise control", "throttle"])
    def test_a_rebalance_is_recognised_by_its_marks_and_holds_promotion(self, beside: Beside, mark: str):
        if mark == "cruise control":
            beside.cluster.create_topic("__CruiseControlMetrics", assignment=[(2, 3, 4)])
        else:
            beside.cluster.configure_topic("orders", MARK, "2:3,2:4")
        beside.demote(1)
        beside.cluster.foreign_reassign(beside.cluster.partition("orders", 2).name, (3, 2, 4))
        beside.site.signals.lift(1)
        beside.reconciles()
        waits = beside.waiting()
        assert waits is not None
        assert (waits.reason, "broker 1" in waits.message) == (Reason.EXTERNAL_OPERATION, True)
        assert beside.cluster.snapshot().leaders()[1] == 0
        broker = next(b for b in beside.operator.reports[-1].brokers if b.broker == 1)
        assert_wording(broker.condition("Demoted").message)
        beside.cluster.finish_reassignments()
        beside.reconciles()
        assert beside.waiting() is None
        assert beside.cluster.partition("orders", 0).leader == 1

    def test_a_rebalance_lets_a_persons_word_and_hard_faults_pass(self, beside: Beside):
        beside.cluster.create_topic("__CruiseControlMetrics", assignment=[(2, 3, 4)])
        beside.cluster.foreign_reassign(beside.cluster.partition("orders", 2).name, (3, 2, 4))
        beside.site.signals.say(1, Reading.FAILING)
        beside.reconciles()
        assert beside.cluster.partition("orders", 0).leader != 1
        beside.site.signals.override(1, OverrideState.PROMOTED, "needed")
        beside.reconciles()
        assert beside.cluster.partition("orders", 0).leader == 1

    def test_marks_are_asked_for_only_while_replicas_move(self, beside: Beside):
        configs = beside.operator.world.configs
        asked = configs.asked  # type: ignore[union-attr]
        beside.demote(1)
        assert configs.asked == asked  # type: ignore[union-attr]

    def test_what_cannot_be_asked_is_no_mark(self, beside: Beside):
        beside.cluster.configure_topic("orders", MARK, "2:3,2:4")
        beside.demote(1)
        beside.operator.world = replace(beside.operator.world, configs=None)
        beside.cluster.foreign_reassign(beside.cluster.partition("orders", 2).name, (3, 2, 4))
        beside.site.signals.lift(1)
        beside.reconciles()
        assert beside.cluster.partition("orders", 0).leader == 1


@pytest.mark.parametrize(
    ("strimzi", "reason"),
    [
        (Strimzi(namespace="kafka", name="one", listener="tls", paused=True), Reason.EXTERNAL_OPERATION),
        (Strimzi(namespace="kafka", name="one", listener="tls", rebalancing=("full",)), Reason.EXTERNAL_OPERATION),
    ],
)
def test_strimzi_at_work_is_waited_for_and_then_gone_on_without(beside: Beside, strimzi: Strimzi, reason: Reason):
    beside.demote(1)
    beside.operator.world = replace(beside.operator.world, strimzi=strimzi)
    beside.site.signals.lift(1)
    beside.reconciles()
    waits = beside.waiting()
    assert waits is not None
    assert (waits.reason, waits.message.startswith(f"{reason}: broker 1 (Kafka")) == (reason, True)
    at_rest = replace(strimzi, paused=False, rebalancing=())
    beside.operator.world = replace(beside.operator.world, strimzi=at_rest)
    beside.reconciles()
    assert beside.waiting() is None
    assert beside.orders == ROUND


class TestPreferredRacks:
    BUSY = Strimzi(namespace="kafka", name="one", listener="tls", rebalancing=("full",))

    @pytest.fixture
    def placed(self, beside: Beside) -> Beside:
        """Brokers 1 and 4 are in the rack that leads."""
        for broker, rack in zip(beside.cluster.brokers.values(), "abba", strict=True):
            broker.rack = rack
        beside.operator.policy = replace(POLICY, placement=Placement(Preference(("a",))))
        beside.reconciles()
        assert beside.orders == [(1, 2, 3), (1, 2, 3), (1, 3, 2)]
        beside.operator.world = replace(beside.operator.world, strimzi=self.BUSY)
        return beside

    def test_what_a_rebalance_puts_elsewhere_stays_there_until_it_has_ended(self, placed: Beside):
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

    def test_changed_preferred_racks_wait_and_a_demotion_does_not(self, placed: Beside):
        placed.operator.policy = replace(POLICY, placement=Placement(Preference(("b",))))
        placed.reconciles()
        assert (placed.orders[0], placed.orders[2]) == ((1, 2, 3), (1, 3, 2))
        placed.demote(1)
        assert [order[-1] for order in placed.orders] == [1, 1, 1]


class TestOrders:
    def test_a_foreign_order_is_waited_with_named_and_then_displaced_and_gone_back_to(self, beside: Beside):
        beside.demote(1)
        name = beside.cluster.partition("orders", 0).name
        beside.cluster.foreign_reorder(name, (1, 3, 2))
        beside.reconciles(1)
        waits = beside.waiting()
        assert waits is not None
        assert (waits.reason, waits.message) == (Reason.ORDER_OVERWRITTEN, "OrderOverwritten: 1 partition (orders-0)")
        beside.reconciles(8)
        assert beside.waiting() is None
        assert beside.cluster.partition("orders", 0).replicas[-1] == 1
        beside.site.signals.lift(1)
        beside.reconciles()
        assert beside.orders[0] == (1, 3, 2)

    def test_kafkas_own_election_of_preferred_leaders_finds_nothing_to_take_back(self, beside: Beside):
        beside.demote(1)
        assert beside.cluster.auto_balance() == 0
        beside.reconciles()
        assert beside.cluster.snapshot().leaders()[1] == 0

    def test_added_replicas_keep_their_place_and_others_return(self, beside: Beside):
        beside.demote(1)
        beside.cluster.raise_rf("orders")
        beside.reconciles()
        assert ("orders", Reason.CHANGED_SINCE_PLAN) in beside.noted
        beside.site.signals.lift(1)
        beside.reconciles()
        assert [order[:3] for order in beside.orders] == ROUND


class TestTopics:
    def test_a_topic_that_is_deleted_takes_its_baselines_along(self, beside: Beside):
        beside.demote(1)
        beside.cluster.delete_topic("orders")
        beside.reconciles(40)
        assert ("orders", Reason.CHANGED_SINCE_PLAN) in beside.noted
        assert beside.site.store.record is not None
        assert not beside.site.store.record.entries
        assert beside.waiting() is None

    def test_a_topic_of_the_same_name_is_another_one(self, beside: Beside):
        beside.demote(1)
        beside.cluster.recreate_topic("orders", assignment=[(1, 3, 2)])
        beside.reconciles(40)
        assert ("orders", Reason.CHANGED_SINCE_PLAN) in beside.noted
        assert beside.cluster.partition("orders", 0).leader != 1
        beside.site.signals.lift(1)
        beside.reconciles()
        assert beside.orders == [(1, 3, 2)]

    def test_a_topic_that_is_made_meanwhile_is_taken_from_the_demoted_broker_and_given_back(self, beside: Beside):
        beside.demote(1)
        beside.cluster.create_topic("later", assignment=[(1, 2, 3)])
        beside.reconciles()
        assert beside.cluster.partition("later").leader != 1
        beside.site.signals.lift(1)
        beside.reconciles()
        assert beside.cluster.partition("later").replicas == (1, 2, 3)
        assert beside.cluster.partition("later").leader == 1


class TestExpanding:
    def test_nothing_of_ours_moves_a_leader_to_a_broker_that_has_just_come(self, beside: Beside):
        before = beside.cluster.mutations
        beside.reconciles(10)
        assert beside.cluster.mutations == before
        assert 4 in {b.broker for b in beside.operator.reports[-1].brokers}
        assert beside.orders == ROUND

    def test_a_foreign_replica_stays_behind_until_it_is_put_first(self, beside: Beside):
        beside.cluster.foreign_reassign(beside.cluster.partition("orders", 0).name, (1, 2, 4))
        beside.cluster.finish_reassignments()
        before = beside.cluster.mutations
        beside.reconciles(10)
        assert beside.cluster.mutations == before
        assert beside.cluster.snapshot().leaders()[4] == 0

    def test_after_a_demotion_it_leads_no_more_than_before(self, beside: Beside):
        beside.cluster.foreign_reassign(beside.cluster.partition("orders", 0).name, (1, 2, 4))
        beside.cluster.finish_reassignments()
        beside.demote(1)
        beside.site.signals.lift(1)
        beside.reconciles(10)
        assert beside.cluster.partition("orders", 0).replicas == (1, 2, 4)
        assert beside.cluster.snapshot().leaders()[4] == 0


class TestShrinking:
    def leave(self, beside: Beside) -> None:
        """Its replicas are moved away, then it is taken out."""
        for index in range(3):
            target = [b if b != 1 else 4 for b in beside.cluster.partition("orders", index).replicas]
            beside.cluster.foreign_reassign(beside.cluster.partition("orders", index).name, target)
        beside.cluster.finish_reassignments()
        beside.cluster.brokers.pop(1)

    @pytest.mark.parametrize("how", ["override", "drain", "signals"])
    def test_a_broker_that_has_left_is_forgotten_whole(self, beside: Beside, how: str):
        if how == "signals":
            beside.site.signals.say(1, Reading.FAILING)
        elif how == "drain":
            beside.site.signals.drain(1)
        else:
            beside.site.signals.override(1, OverrideState.DEMOTED)
        beside.reconciles()
        memory = beside.operator.memory
        assert memory is not None
        assert 1 in memory.record.demoted
        self.leave(beside)
        beside.site.signals.lift(1)  # its BrokerHealth goes, and the override with it
        beside.reconciles(60)
        memory = beside.operator.memory
        assert memory is not None
        assert 1 not in memory.record.demoted
        assert 1 not in memory.flaps
        assert 1 not in memory.verdicts
        assert not any(1 in e.baseline for e in memory.record.entries.values())
        assert 1 not in {b.broker for b in beside.operator.reports[-1].brokers}

    def test_a_new_broker_of_the_same_id_starts_without_history(self, beside: Beside):
        beside.site.signals.say(1, Reading.FAILING)
        beside.reconciles()
        self.leave(beside)
        beside.reconciles(3)
        memory = beside.operator.memory
        assert memory is not None
        assert (1 in memory.flaps, 1 in memory.record.demoted) == (False, False)

    def test_while_a_replica_list_still_names_it_it_is_kept(self, beside: Beside):
        beside.demote(1)
        beside.cluster.brokers.pop(1)
        beside.reconciles()
        assert beside.operator.memory is not None
        assert 1 in beside.operator.memory.record.demoted
        assert 1 in {b.broker for b in beside.operator.reports[-1].brokers}
