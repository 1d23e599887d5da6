"""A rolling restart that nobody announced: pods come and go, and the policy's loop drains and hands back."""

from __future__ import annotations

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, PODS
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import LOOK_SECONDS
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.signals import Reading
from testkit.brokerpods import pod
from testkit.offices import Office

PODS_OF_BROKERS = {"pods": {"selector": "app=kafka", "firstBrokerId": 1}}
QUICK = {"stabilizationSeconds": 5, "waves": {"steps": [100]}}


@pytest.fixture
def office() -> Office:
    made = Office.well()
    for number in (0, 1, 2):
        made.api.put(PODS, pod(number))
    return made


@pytest.fixture
def loop(office: Office) -> PolicyController:
    made = office.make(maintenance=PODS_OF_BROKERS, promotion=QUICK)
    office.step(made, 2)
    return made


def becomes(office: Office, loop: PolicyController, number: int, **state: bool) -> None:
    office.api.put(PODS, pod(number, **state))
    office.site.clock.advance(LOOK_SECONDS)
    office.step(loop, 3)


def gone(office: Office, loop: PolicyController, number: int) -> None:
    office.api.objects.pop(("pods", "default", f"kafka-{number}"))
    office.site.clock.advance(LOOK_SECONDS)
    office.step(loop, 3)


def leaders(office: Office) -> dict[int, int]:
    return office.site.cluster.snapshot().leaders()


def said(office: Office, broker: int, type_: str) -> tuple[str, str] | None:
    health = office.api.get(BROKER_HEALTHS, "default", f"main-{broker}")
    found = [c for c in health["status"]["conditions"] if c["type"] == type_]
    return (found[0]["status"], found[0]["reason"]) if found else None


def test_a_broker_is_drained_while_its_pod_goes_and_comes_and_leads_again_afterwards(
    office: Office, loop: PolicyController
):
    before = {p.key: p.replicas for p in office.site.cluster.partitions()}
    becomes(office, loop, 1, leaving=True)
    assert leaders(office)[2] == 0
    assert said(office, 2, "Demoted") == ("True", "Restarting")
    assert said(office, 2, "Drained") == ("True", "Drained")
    office.site.cluster.kill(2)
    office.site.signals.say(2, Reading.FAILING)
    gone(office, loop, 1)
    assert said(office, 2, "Healthy") == ("False", "InMaintenance")
    becomes(office, loop, 1, ready=False)
    office.site.cluster.revive(2)
    office.step(loop, 3)
    assert said(office, 2, "Demoted") == ("True", "Restarting")
    becomes(office, loop, 1)
    # Its vantages have not reached it yet: no demotion comes of it, and no leader either.
    assert said(office, 2, "Demoted") == ("True", "HandingBack")
    assert said(office, 2, "Drained") is None
    office.site.signals.say(2, Reading.PASSING)
    office.step(loop, 12)
    assert leaders(office) == {1: 2, 2: 2, 3: 2}
    assert {p.key: p.replicas for p in office.site.cluster.partitions()} == before
    assert said(office, 2, "Demoted") == ("False", "LeadingAllowed")


def test_without_it_in_the_policy_pods_are_not_even_listed(office: Office):
    loop = office.make()
    office.api.refuse("list", PODS, AssertionError("listed"))  # type: ignore[arg-type]
    office.step(loop, 3)
    becomes(office, loop, 1, leaving=True)
    assert leaders(office)[2] == 2


def test_a_second_pod_waits_its_turn(office: Office, loop: PolicyController):
    becomes(office, loop, 1, leaving=True)
    becomes(office, loop, 2, ready=False)
    assert leaders(office)[2] == 0
    assert said(office, 3, "Demoted") == ("False", "SystemicCause")


def test_a_pod_that_changes_ends_the_loops_rest(office: Office, loop: PolicyController):
    loop._wakeups.changed(office.body())
    assert not loop._wakeups.changed(office.body())
    office.api.put(PODS, pod(1, leaving=True))
    office.site.clock.advance(LOOK_SECONDS)
    assert loop._wakeups.changed(office.body())


def test_pods_that_cannot_be_told_apart_are_said_in_a_condition_that_goes_away(office: Office, loop: PolicyController):
    office.api.put(PODS, pod(1, "controller"))
    office.site.clock.advance(LOOK_SECONDS)
    office.step(loop, 2)
    status, reason, message = office.condition("RestartDetection")
    assert (status, reason) == ("False", "PodsUnknown")
    assert "controller-1, kafka-1 share a number" in message
    office.api.objects.pop(("pods", "default", "controller-1"))
    office.site.clock.advance(LOOK_SECONDS)
    office.step(loop, 2)
    assert "RestartDetection" not in {c["type"] for c in office.body()["status"]["conditions"]}


def test_a_settled_cluster_with_pods_watched_causes_no_write(office: Office, loop: PolicyController):
    office.step(loop, 3)
    office.api.writes.clear()
    for _ in range(5):
        office.site.clock.advance(LOOK_SECONDS)
        office.step(loop)
    assert office.api.writes == []
