"""A policy's rebalances, from the asking to the last wave: real store, recheck and loop; a small planner for Spark."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import EVENTS
from bellwether.core.signals import Reading
from testkit.messages import assert_wording
from testkit.simulation.rebalance_fixture import SPEC, Desked


def conditions(desked: Desked) -> dict[str, tuple[str, str]]:
    return {t: desked.rebalance_condition(t)[:2] for t in ("RebalanceProposed", "Rebalancing")}


def test_a_policy_that_says_nothing_of_it_shows_nothing_of_it(desked: Desked):
    loop = desked.make()
    desked.go(loop, 3)
    assert desked.desks == []


def test_without_a_request_nothing_is_planned(desked: Desked):
    loop = desked.make(rebalance=SPEC)
    desked.go(loop, 5, seconds=3600)
    assert (desked.state, desked.status["reason"]) == ("Idle", "NoPlanPending")
    assert desked.planner.started == []


def test_a_plan_that_was_asked_for_is_proposed_with_its_figures_and_moves_nothing(desked: Desked):
    before = desked.site.cluster.mutations
    desked.proposed()
    plan = desked.status["plan"]
    assert plan["loadAfter"] < plan["loadBefore"]
    assert plan["bound"] <= plan["loadAfter"]
    assert plan["moves"] >= 1
    assert [line.split()[0] for line in plan["summary"][:2]] == ["measured", "The"]
    assert conditions(desked) == {
        "RebalanceProposed": ("True", "PlanProposed"),
        "Rebalancing": ("False", "PlanProposed"),
    }
    assert desked.site.cluster.mutations == before
    assert len(desked.planner.started) == 1


def test_the_digest_is_the_approval_and_the_leaders_move_in_waves(desked: Desked):
    loop = desked.proposed()
    before = desked.led()
    digest = desked.approve()
    desked.until(loop, "Done")
    after = desked.led()
    assert max(after.values()) < max(before.values())
    assert desked.status["digest"] == digest
    assert desked.status["applied"] == desked.status["plan"]["moves"] + desked.status["plan"]["reorders"]
    assert desked.status["skipped"] == 0
    assert all(p.leader == p.replicas[0] for p in desked.site.cluster.partitions())
    assert_wording(desked.status["message"])


def test_another_digest_approves_nothing_and_the_condition_says_so(desked: Desked):
    loop = desked.proposed()
    desked.annotate(approve_plan="f" * 16)
    desked.go(loop, 3)
    status, reason, message = desked.rebalance_condition("RebalanceProposed")
    assert (status, reason) == ("True", "OtherPlanApproved")
    assert_wording(message)
    assert desked.state == "Proposed"
    assert all(p.replicas[0] == p.leader for p in desked.site.cluster.partitions())


def test_a_repeated_annotation_value_gets_a_plan_of_current_facts(desked: Desked):
    loop = desked.proposed()
    first = desked.status["madeAt"]
    for word in ("another", "please"):
        desked.annotate(rebalance=word)
        desked.go(loop, 5, seconds=60)
    assert desked.state == "Proposed"
    assert desked.status["madeAt"] > first
    assert len(desked.planner.started) == 3


def test_the_schedule_asks_once_each_time(desked: Desked):
    loop = desked.make(rebalance={**SPEC, "schedule": "0 4 * * *"})
    desked.go(loop, 2)
    assert desked.planner.started == []
    due = desked.status["nextAt"]
    desked.site.clock.advance(86400)
    desked.go(loop, 5)
    assert desked.planner.started == [f"at-{due[:10].replace('-', '')}-0400"]
    assert desked.status["nextAt"] > due
    assert desked.state == "Proposed"
    desked.site.clock.advance(86400)
    desked.go(loop, 5)
    assert len(desked.planner.started) == 2


def test_no_wave_comes_while_a_broker_is_sick_and_it_goes_on_when_it_is_well(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    desked.approve()
    desked.until(loop, "Applying")
    desked.site.signals.say(3, Reading.FAILING)
    desked.go(loop, 10)
    stopped = desked.status["applied"]
    assert (desked.state, desked.status["reason"]) == ("Applying", "AnotherBrokerUnhealthy")
    assert "broker 3" in desked.status["message"]
    assert conditions(desked)["Rebalancing"] == ("True", "AnotherBrokerUnhealthy")
    desked.go(loop, 10)
    assert desked.status["applied"] == stopped
    desked.site.signals.say(3, Reading.PASSING)
    desked.go(loop, 40, seconds=5)
    assert desked.state == "Done"
    assert desked.led()[3] > 0


def test_an_approval_that_is_taken_back_stops_the_waves(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    desked.approve()
    desked.until(loop, "Applying")
    desked.annotate(approve_plan="")
    desked.go(loop, 4)
    stopped = desked.led()
    assert desked.state == "Proposed"
    desked.go(loop, 10)
    assert desked.led() == stopped
    desked.approve()
    desked.until(loop, "Done")


def test_a_request_for_another_plan_ends_the_applied_one(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0}, minimumImprovementPercent=0)
    first = desked.approve()
    desked.until(loop, "Applying")
    desked.annotate(rebalance="another")
    desked.until(loop, "Proposed")
    assert desked.status["digest"] != first
    assert any(e.get("reason") == "NoPlanPending" for e in desked.api.all(EVENTS))


@pytest.mark.parametrize("mode", [{"mode": "Observe"}, {"suspend": True}])
def test_a_policy_that_does_not_act_plans_and_does_not_apply(desked: Desked, mode: dict[str, Any]):
    loop = desked.make(rebalance=SPEC, **mode)
    desked.annotate(rebalance="please")
    desked.until(loop, "Proposed")
    before = desked.site.cluster.mutations
    desked.approve()
    desked.go(loop, 6)
    assert desked.state == "Approved"
    assert desked.status["reason"] == "NotEnforcing"
    assert desked.site.cluster.mutations == before
    desked.change(mode="Enforce", suspend=False)
    desked.until(loop, "Done")


def test_a_policy_that_gives_rebalancing_up_shows_nothing_of_it_and_stops(desked: Desked):
    loop = desked.proposed(waves={"partitions": 1, "pauseSeconds": 0})
    desked.approve()
    desked.until(loop, "Applying")
    desked.change(rebalance=None)
    desked.go(loop, 3)
    stopped = desked.led()
    desked.go(loop, 10)
    assert desked.led() == stopped


@pytest.mark.parametrize("state", ["Proposed", "Done"])
def test_a_settled_policy_causes_no_write_at_all(desked: Desked, state: str):
    loop = desked.proposed()
    if state == "Done":
        desked.approve()
    desked.until(loop, state)
    desked.go(loop, 40)
    desked.api.writes.clear()
    before = desked.site.cluster.mutations
    desked.go(loop, 5, seconds=30)
    assert [w for w in desked.api.writes if " leases " not in w] == []
    assert desked.site.cluster.mutations == before
