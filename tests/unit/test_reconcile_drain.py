"""What turns say of a drain: whether the broker may be stopped, and of an override whose time is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bellwether.core.condition import Condition
from bellwether.core.model.broker_identity import Pod
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Capacity, Demotion, Mode, Policy, Promotion
from bellwether.core.signals import OverrideState, Reading
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site


@pytest.fixture
def made() -> MemorySite:
    return site(3, {"orders": 6}).well()


def said(operator: Operator, type_: str, broker: int = 2) -> Any:
    report = next(b for b in operator.reports[-1].brokers if b.broker == broker)
    return next((c for c in report.conditions if c.type == type_), None)


def test_a_broker_without_maintenance_has_no_such_condition(made: MemorySite):
    operator = Operator(made).reconciles(1)
    assert (said(operator, "Drained"), said(operator, "Overridden")) == (None, None)


def test_it_is_drained_once_it_leads_nothing_and_is_first_nowhere(made: MemorySite):
    operator = Operator(made)
    made.signals.drain(2)
    operator.reconciles(1)
    assert said(operator, "Drained") == Condition(
        "Drained", False, Reason.LEADERS_MOVING, "leads 2 partitions, and is first in the replica order of 2"
    )
    operator.reconciles(1)
    drained = said(operator, "Drained")
    assert (drained.status, drained.reason) == (True, Reason.LEADS_NOTHING)


def test_it_is_not_while_first_where_another_broker_leads():
    made = site(4, {"orders": 6})
    operator = Operator(made).reconciles(1)
    led = next(p for p in made.cluster.partitions() if p.leader == 2)
    made.cluster.kill(2)
    made.cluster.revive(2, catch_up=False)
    (other,) = made.cluster.brokers.keys() - set(led.replicas)
    made.cluster.foreign_reassign(led.name, (*led.replicas, other))
    made.signals.drain(2)
    operator.reconciles(3)
    assert made.cluster.snapshot().leaders()[2] == 0
    assert said(operator, "Drained") == Condition(
        "Drained",
        False,
        Reason.MOVES_BLOCKED,
        "leads 0 partitions, and is first in the replica order of 1; blocked: 1 Reassigning",
    )


def test_what_stays_with_it_for_want_of_room_is_counted(made: MemorySite):
    """Nothing is on its way any more: the status must say what keeps the drain from ending."""
    operator = Operator(made, replace(POLICY, demotion=Demotion(capacity=Capacity(max_leaders=2))))
    made.signals.drain(2)
    operator.reconciles(5)
    assert operator.reports[-1].plan.empty
    drained = said(operator, "Drained")
    assert_wording(drained.message)


def test_what_only_a_sicker_broker_could_lead_is_counted(made: MemorySite):
    made.cluster.create_topic("pair", assignment=[(2, 3)])
    operator = Operator(made).reconciles(1)
    made.signals.say(3, Reading.FAILING)
    operator.reconciles(3)
    made.signals.drain(2)
    operator.reconciles(5)
    assert operator.reports[-1].plan.empty
    drained = said(operator, "Drained")
    assert_wording(drained.message)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        pytest.param(replace(POLICY, mode=Mode.OBSERVE), Reason.NOT_ENFORCING, id="observing"),
        pytest.param(replace(POLICY, suspend=True), Reason.NOT_ENFORCING, id="suspended"),
    ],
)
def test_a_policy_that_does_not_act_never_says_that_a_broker_may_be_stopped(
    made: MemorySite, policy: Policy, reason: Reason
):
    operator = Operator(made, policy)
    made.signals.drain(2)
    operator.reconciles(3)
    drained = said(operator, "Drained")
    assert (drained.status, drained.reason) == (False, reason)


def test_hold_is_said_by_broker_and_by_policy(made: MemorySite):
    operator = Operator(made)
    for other in (1, 3):
        made.signals.override(other, OverrideState.DEMOTED)
    operator.reconciles(1)
    made.signals.drain(2)
    operator.reconciles(2)
    for condition in (said(operator, "Drained"), said(operator, "Demoted")):
        assert condition is not None
        assert (condition.status, condition.reason) == (False, Reason.ANOTHER_BROKER_UNHEALTHY)
    held = operator.reports[-1].condition("DemotionBlocked")
    assert (held.status, held.reason) == (True, Reason.ANOTHER_BROKER_UNHEALTHY)
    ready = operator.reports[-1].condition("Ready")
    assert ready.reason is Reason.ANOTHER_BROKER_UNHEALTHY
    assert_wording(ready.message)


def test_a_drain_asks_the_controller_quorum(made: MemorySite):
    made.margins.voters = frozenset({1, 2, 3})
    operator = Operator(made)
    made.signals.drain(2)
    operator.reconciles(2)
    assert said(operator, "Drained").status is True
    made.margins.problem = "DescribeQuorum is not allowed"
    operator.reconciles(1)
    assert said(operator, "Drained") == Condition(
        "Drained",
        False,
        Reason.NO_EVIDENCE,
        "whether the controllers keep a majority without broker 2 is not known (DescribeQuorum is not allowed): wait"
        " until it is read, or set spec.override.acceptUnavailableWrites"
        " (bellwether drain --accept-unavailable-writes)",
    )


def test_min_insync_replicas_is_read_when_a_broker_is_called_safe_to_stop(made: MemorySite):
    operator = Operator(made)
    made.signals.drain(2)
    operator.reconciles(3)
    assert said(operator, "Drained").status is True
    made.cluster.settings["orders"]["min.insync.replicas"] = "3"
    operator.reconciles(1)
    assert said(operator, "Drained").reason is Reason.NO_FAULT_TOLERANCE


def test_it_is_not_safe_to_stop_in_the_turn_that_gives_it_what_only_a_sicker_broker_could_lead(made: MemorySite):
    made.cluster.create_topic("pair", assignment=[(3, 2)])
    operator = Operator(made)
    made.signals.drain(2)
    operator.reconciles(3)
    assert said(operator, "Drained").status is True
    made.signals.say(3, Reading.FAILING)
    operator.reconciles(1)
    assert made.cluster.snapshot().leaders()[2] == 1
    text = "leads 0 partitions, and is first in the replica order of 0; 1 move to it, as only sicker brokers could lead"
    assert said(operator, "Drained") == Condition("Drained", False, Reason.LEADERS_MOVING, text)


def test_ready_names_a_drain_that_an_override_holds(made: MemorySite):
    made.pods = {b: Pod(f"kafka-{b}", ready=b != 2) for b in (1, 2, 3)}
    made.signals.override(2, OverrideState.PROMOTED)
    operator = Operator(made).reconciles(3)
    text = "not drained: spec.override of its BrokerHealth lets it lead; remove it to drain the broker"
    assert said(operator, "Drained") == Condition("Drained", False, Reason.MOVES_BLOCKED, text)
    ready = next(c for c in operator.reports[-1].conditions if c.type == "Ready")
    assert ready.reason is Reason.MOVES_BLOCKED


def test_what_only_two_drained_brokers_can_lead_is_led_by_the_later_one(made: MemorySite):
    made.cluster.create_topic("pair", assignment=[(1, 2), (2, 1)])
    operator = Operator(made)
    made.signals.drain(2)
    operator.reconciles(3)
    made.signals.drain(1)
    operator.reconciles(5)
    assert {p.leader for p in made.cluster.partitions(frozenset({"pair"}))} == {1}
    assert (said(operator, "Drained", 2).status, said(operator, "Drained", 1).status) == (True, False)


def test_a_pod_that_is_not_ready_again_and_again_is_damped_as_flapping_is(made: MemorySite):
    made.pods = {b: Pod(f"kafka-{b}") for b in (1, 2, 3)}
    operator = Operator(made, replace(POLICY, promotion=Promotion(stabilization_seconds=10)))
    away = []
    for _ in range(3):
        made.pods[2] = Pod("kafka-2", ready=False)
        operator.reconciles(2)
        made.pods[2] = Pod("kafka-2")
        away.append(0)
        assert operator.memory is not None
        while 2 in operator.memory.record.demoted:
            operator.reconciles(1)
            away[-1] += 1
        operator.reconciles(2)
    made.pods[2] = Pod("kafka-2", ready=False)
    operator.reconciles(2)
    for seconds_ready in (50, 50, 10):
        made.pods[2] = Pod("kafka-2")
        operator.reconciles(seconds_ready)
        made.pods[2] = Pod("kafka-2", ready=False)
        operator.reconciles(2)
    assert 2 in operator.memory.record.demoted, "80 s are asked for, and it was ready for 50 s at most"
    assert away[0] >= 10
    assert away[1] >= 20
    assert away[2] >= 40


def test_an_override_that_has_ended_is_named_until_it_is_taken_away(made: MemorySite):
    operator = Operator(made)
    made.signals.override(2, OverrideState.PROMOTED, "well", made.clock.now() + timedelta(seconds=2))
    operator.reconciles(1)
    assert said(operator, "Overridden") is None
    operator.reconciles(2)
    assert said(operator, "Overridden") == Condition(
        "Overridden",
        False,
        Reason.OVERRIDE_EXPIRED,
        "spec.override ended at 2026-01-01T00:00:02Z and has no effect; remove it",
    )
    made.signals.lift(2)
    operator.reconciles(1)
    assert said(operator, "Overridden") is None
