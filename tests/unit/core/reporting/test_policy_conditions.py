"""What holds of a policy: a condition for each situation, and its words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.model.refusals import BrokerHold, Hold, Refusal
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.policy_conditions import EXTERNAL_REASONS, waiting_for_external_operations
from bellwether.core.reporting.report import Report
from bellwether.core.settings.detection import Canary, Detection
from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import Capacity, Demotion, Mode, Policy
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.core.waves.rebalance_waves import WaveResult
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, decisions, move, partition, record, said, snapshot

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)
OBSERVE = Policy(name="main", mode=Mode.OBSERVE)


def hold(index: int = 0, reason: Reason = Reason.ONLY_REPLICA, topic: str = "orders") -> Hold:
    return Hold(partition(topic, index).key, topic, reason, "so it is")


MOVE, NOTHING = Plan((move(),)), ExecutionResult()
STOPPED = ExecutionResult(stopped=Refusal(Reason.NO_ANSWER, "no answer in 2 s"))
SITUATIONS: dict[str, tuple[Policy, Plan, ExecutionResult, Reason, tuple[bool, Reason]]] = {
    "at rest": (ENFORCE, Plan(), NOTHING, Reason.UP_TO_DATE, (True, Reason.UP_TO_DATE)),
    "moving": (ENFORCE, MOVE, ExecutionResult(1, 1), Reason.LEADERS_MOVING, (False, Reason.LEADERS_MOVING)),
    "held": (ENFORCE, Plan(holds=(hold(),)), NOTHING, Reason.MOVES_BLOCKED, (True, Reason.MOVES_BLOCKED)),
    "stopped": (ENFORCE, MOVE, STOPPED, Reason.NO_ANSWER, (False, Reason.NO_ANSWER)),
    "observing": (OBSERVE, MOVE, NOTHING, Reason.NOT_ENFORCING, (False, Reason.NOT_ENFORCING)),
    "suspended": (replace(ENFORCE, suspend=True), Plan(), NOTHING, Reason.NOT_ENFORCING, (True, Reason.UP_TO_DATE)),
    "suspended while observing": (
        replace(OBSERVE, suspend=True), Plan(), NOTHING, Reason.NOT_ENFORCING, (True, Reason.UP_TO_DATE),
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_ready_and_settled(situation: str):
    policy, plan, result, ready, settled = SITUATIONS[situation]
    report = said(policy=policy, plan=plan, result=result)
    for name, wanted in (("Ready", (True, ready)), ("Settled", settled)):
        condition = report.condition(name)
        assert (condition.status, condition.reason) == wanted
        assert condition.message


def test_what_blocks_every_move_is_named_with_what_waits():
    seen = snapshot(replace(cluster(partition()), immovable="Grant this user the ACL Alter on Cluster"))
    settled = said(seen, ENFORCE, plan=Plan(holds=(hold(),))).condition("Settled")
    assert_wording(settled.message)


def test_a_cluster_without_partitions_is_ready_and_says_so():
    ready = said(snapshot(cluster()), ENFORCE).condition("Ready")
    assert ready.reason == Reason.UP_TO_DATE
    assert_wording(ready.message)


def test_contests_are_a_condition_of_their_own():
    assert said().condition("Contested").status is False
    contested = said(plan=Plan(holds=(hold(0, Reason.ORDER_OVERWRITTEN), hold(1, Reason.ORDER_OVERWRITTEN)))).condition(
        "Contested"
    )
    assert contested.status is True
    assert_wording(contested.message)


def test_a_held_demotion_is_a_condition_of_its_own():
    assert said().condition("DemotionBlocked").status is False
    held = decisions(held=[BrokerHold(4, Reason.CAP_REACHED, "the cap is 1"), BrokerHold(5, Reason.CAP_REACHED, "too")])
    condition = said(plan=Plan(decisions=held)).condition("DemotionBlocked")
    assert (condition.status, condition.reason) == (True, Reason.CAP_REACHED)
    assert_wording(condition.message)


def test_the_message_on_a_hundred_held_brokers_is_bounded():
    held = decisions(held=[BrokerHold(b, Reason.SYSTEMIC_CAUSE, "x" * 50) for b in range(100)])
    assert len(said(plan=Plan(decisions=held)).condition("DemotionBlocked").message) <= 1024


def test_an_unknown_condition_is_a_key_error():
    with pytest.raises(KeyError, match="Phase"):
        said().condition("Phase")


class TestPreferredRacks:
    WISH = Policy(name="main", mode=Mode.ENFORCE, placement=Placement(Preference(("a",))))

    def said(self, *partitions: Partition, policy: Policy = WISH, plan: Plan | None = None) -> Report:
        seen = cluster(*partitions, brokers=4, racks={1: "a", 2: "a", 3: "b", 4: "b"})
        return said(snapshot(seen), policy, plan=plan)

    def test_without_preferred_racks_no_condition_mentions_racks(self):
        types = {c.type for c in self.said(partition(), policy=ENFORCE).conditions}
        assert not types & {"PlacementFits", "PlacementMet"}

    def test_preferred_racks_that_fit_and_are_met(self):
        found = self.said(partition(replicas=(1, 3)))
        assert found.condition("PlacementFits").status is True
        assert found.condition("PlacementMet").status is True

    def test_leaders_in_another_rack_are_counted(self):
        abroad, at_home = partition(index=0, replicas=(3, 1)), partition(index=1, replicas=(1, 3))
        met = self.said(abroad, at_home).condition("PlacementMet")
        assert (met.status, met.reason) == (False, Reason.OTHER_RACKS_LEAD)
        assert met.message.startswith("1 of 2 partitions")
        assert "orders-0" in met.message

    def test_of_many_placement_warnings_some_are_named(self):
        wish = Placement(Preference(tuple(f"rack-{i}" for i in range(8))))
        fits = self.said(partition(), policy=replace(self.WISH, placement=wish)).condition("PlacementFits")
        assert (fits.status, fits.reason) == (False, Reason.PLACEMENT_UNSUITABLE)
        assert fits.message.endswith("; and 3 more")

    def test_partition_is_in_its_place_where_its_racks_want_it(self):
        away = partition(replicas=(1, 3))
        assert self.said(away, plan=Plan(targets={away.key: (1, 3)})).leaders_out_of_place == 0
        assert self.said(away, plan=Plan(targets={away.key: (3, 1)})).leaders_out_of_place == 1


class TestCanary:
    POLICY = replace(ENFORCE, detection=Detection(canary=Canary(enabled=True)))

    def said(self, *words: Signal, policy: Policy = POLICY) -> Report:
        return said(replace(snapshot(), signals=words), policy)

    def word(self, broker: int, reading: Reading, message: str = "", age: float | None = 0.0) -> Signal:
        return Signal(broker, SignalType.CANARY, "a", reading, after(0), age, message=message)

    @pytest.mark.parametrize(
        "why",
        [
            "not measured: topic bellwether-canary does not exist: create it as docs/signals/canary.md describes",
            "not measured: not authorized to describe topic bellwether-canary: grant Read and Write on it",
            "not measured: the canary topic has no partition with broker 1 as its only replica: add one",
        ],
    )
    def test_unusable_topic_is_reported_with_field_and_remedy(self, why: str):
        found = self.said(self.word(1, Reading.UNKNOWN, why), self.word(2, Reading.PASSING))
        condition = found.condition("CanaryAvailable")
        assert (condition.status, condition.reason) == (False, Reason.NO_EVIDENCE)
        assert condition.message.startswith("broker 1: ")
        assert why in condition.message
        assert "spec.detection.canary.topic is bellwether-canary" in condition.message
        assert (found.plan.moves, found.condition("DemotionBlocked").status) == ((), False)
        assert found.condition("Ready").message == condition.message.replace("; ", ", ")
        assert found.condition("Ready").status is True

    def test_a_canary_that_measures_is_available_also_where_it_fails(self):
        words = [
            self.word(1, Reading.FAILING),
            self.word(1, Reading.UNKNOWN, "no right"),
            self.word(2, Reading.PASSING),
        ]
        found = self.said(*words).condition("CanaryAvailable")
        assert (found.status, found.reason) == (True, Reason.UP_TO_DATE)

    @pytest.mark.parametrize("age", [None, 11.0])
    def test_without_fresh_word_of_a_prober_it_is_unknown(self, age: float | None):
        found = self.said(self.word(1, Reading.UNKNOWN, "gone", age)).condition("CanaryAvailable")
        assert (found.status, found.reason) == (None, Reason.NO_EVIDENCE)

    def test_a_policy_without_a_canary_says_nothing_of_it(self):
        found = self.said(self.word(1, Reading.UNKNOWN, "no topic"), policy=ENFORCE)
        assert "CanaryAvailable" not in {c.type for c in found.conditions}


class TestLimitsByLoad:
    LIMITED = replace(ENFORCE, demotion=Demotion(capacity=Capacity(max_load=100)))

    def said(self, loads: Loads | None, policy: Policy = LIMITED, plan: Plan | None = None) -> Report:
        return said(replace(snapshot(), loads=loads), policy, plan=plan)

    def test_without_loads_the_limit_is_said_not_to_hold(self):
        found = self.said(None).condition("LoadsAvailable")
        assert (found.status, found.reason) == (False, Reason.NO_EVIDENCE)

    @pytest.mark.parametrize("loads", [Loads(), LOADS_PENDING])
    def test_known_or_awaited_loads_are_not_mentioned(self, loads: Loads):
        assert "LoadsAvailable" not in {c.type for c in self.said(loads).conditions}

    def test_a_policy_without_such_a_limit_says_nothing_of_loads(self):
        assert "LoadsAvailable" not in {c.type for c in self.said(None, ENFORCE).conditions}

    def test_held_leaders_have_the_age_of_the_loads_in_ready(self):
        stay = Plan(holds=(hold(0, Reason.CAPACITY_REACHED),))
        ready = self.said(Loads(measured_at=after(0)), plan=stay).condition("Ready")
        assert_wording(ready.message)

    def test_leaders_awaiting_loads_are_not_called_without_room(self):
        waiting = Plan(holds=(hold(0, Reason.NO_EVIDENCE),))
        ready = self.said(LOADS_PENDING, plan=waiting).condition("Ready")
        assert ready.reason == Reason.MOVES_BLOCKED
        assert_wording(ready.message)


def waiting_hold(reason: Reason, topic: str = "orders", index: int = 0) -> Hold:
    return Hold(PartitionKey(f"id-of-{topic}", index), topic, reason, "")


def held_brokers(reason: Reason, *ids: int) -> Plan:
    return Plan(decisions=decisions(held=[BrokerHold(b, reason, "") for b in ids]))


def test_nothing_waits_where_nothing_is_held():
    assert waiting_for_external_operations(Plan(), [], WaveResult(record())) is None


@pytest.mark.parametrize("reason", [Reason.ONLY_REPLICA, Reason.PREFERRED_NOT_IN_ISR, Reason.REQUEST_REFUSED])
def test_holds_by_the_clusters_own_state_wait_for_no_operation(reason: Reason):
    assert waiting_for_external_operations(held_brokers(Reason.CAP_REACHED, 1), [waiting_hold(reason)], None) is None


@pytest.mark.parametrize("reason", EXTERNAL_REASONS)
def test_partitions_that_wait_are_counted_and_a_few_are_named(reason: Reason):
    found = waiting_for_external_operations(Plan(), [waiting_hold(reason, index=i) for i in (7, 2, 4, 1)], None)
    assert found == Refusal(reason, f"{reason}: 4 partitions (orders-1, orders-2, orders-4 and 1 more)")


@pytest.mark.parametrize("reason", EXTERNAL_REASONS)
def test_brokers_that_wait_are_named(reason: Reason):
    assert waiting_for_external_operations(held_brokers(reason, 3), [], None) == Refusal(reason, f"{reason}: broker 3")
    found = waiting_for_external_operations(held_brokers(reason, *range(9)), [], None)
    assert found is not None
    assert_wording(found.message)


def test_a_load_plan_that_waits_is_named():
    progress = WaveResult(record(), waits=Refusal(Reason.EXTERNAL_OPERATION, "annotated"))
    assert waiting_for_external_operations(Plan(), [], progress) == Refusal(
        Reason.EXTERNAL_OPERATION, "ExternalOperation: the next wave of the load plan"
    )
    pausing = WaveResult(record(), waits=Refusal(Reason.APPLYING, "30 s"))
    assert waiting_for_external_operations(Plan(), [], pausing) is None


def test_the_most_far_reaching_comes_first_and_the_others_follow():
    found = waiting_for_external_operations(
        held_brokers(Reason.EXTERNAL_OPERATION, 1),
        [waiting_hold(Reason.ORDER_OVERWRITTEN), waiting_hold(Reason.REASSIGNING, "logs")],
        None,
    )
    assert found == Refusal(
        Reason.EXTERNAL_OPERATION,
        "ExternalOperation: broker 1; Reassigning: 1 partition (logs-0); OrderOverwritten: 1 partition (orders-0)",
    )
