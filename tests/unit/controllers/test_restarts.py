"""An unannounced rolling restart: pods come and go, and the policy's loop drains and hands back."""

from __future__ import annotations

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, PODS
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import LOOK_SECONDS
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.signals import Reading
from testkit.kubernetes.broker_pods import pod
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator

PODS_OF_BROKERS = {"pods": {"selector": "app=kafka", "firstBrokerId": 1}}
QUICK = {"stabilizationSeconds": 5, "waves": {"steps": [100]}}


@pytest.fixture
def operator() -> MemoryOperator:
    made = MemoryOperator.well()
    for number in (0, 1, 2):
        made.api.put(PODS, pod(number))
    return made


@pytest.fixture
def loop(operator: MemoryOperator) -> PolicyController:
    made = operator.make(maintenance=PODS_OF_BROKERS, promotion=QUICK)
    operator.step(made, 2)
    return made


def becomes(operator: MemoryOperator, loop: PolicyController, number: int, **state: bool) -> None:
    operator.api.put(PODS, pod(number, **state))
    operator.site.clock.advance(LOOK_SECONDS)
    operator.step(loop, 3)


def gone(operator: MemoryOperator, loop: PolicyController, number: int) -> None:
    operator.api.objects.pop(("pods", "default", f"kafka-{number}"))
    operator.site.clock.advance(LOOK_SECONDS)
    operator.step(loop, 3)


def leaders(operator: MemoryOperator) -> dict[int, int]:
    return operator.site.cluster.snapshot().leaders()


def said(operator: MemoryOperator, broker: int, type_: str) -> tuple[str, str] | None:
    health = operator.api.get(BROKER_HEALTHS, "default", f"main-{broker}")
    found = [c for c in health["status"]["conditions"] if c["type"] == type_]
    return (found[0]["status"], found[0]["reason"]) if found else None


def test_a_broker_is_drained_while_its_pod_goes_and_comes_and_leads_again_afterwards(
    operator: MemoryOperator, loop: PolicyController
):
    before = {p.key: p.replicas for p in operator.site.cluster.partitions()}
    becomes(operator, loop, 1, leaving=True)
    assert leaders(operator)[2] == 0
    assert said(operator, 2, "Demoted") == ("True", "Restarting")
    assert said(operator, 2, "Drained") == ("True", "LeadsNothing")
    operator.site.cluster.kill(2)
    operator.site.signals.say(2, Reading.FAILING)
    gone(operator, loop, 1)
    assert said(operator, 2, "Healthy") == ("False", "InMaintenance")
    becomes(operator, loop, 1, ready=False)
    operator.site.cluster.revive(2)
    operator.step(loop, 3)
    assert said(operator, 2, "Demoted") == ("True", "Restarting")
    becomes(operator, loop, 1)
    # Its vantages have not reached it yet: no demotion comes of it, and no leader either.
    assert said(operator, 2, "Demoted") == ("True", "Stabilizing")
    assert said(operator, 2, "Drained") is None
    operator.site.signals.say(2, Reading.PASSING)
    operator.step(loop, 12)
    assert leaders(operator) == {1: 2, 2: 2, 3: 2}
    assert {p.key: p.replicas for p in operator.site.cluster.partitions()} == before
    assert said(operator, 2, "Demoted") == ("False", "UpToDate")


def test_pod_is_the_broker_that_advertises_its_host_whatever_its_number(operator: MemoryOperator):
    for broker, number in ((1, 2), (2, 0), (3, 1)):
        address = f"INTERNAL://kafka-{number}.kafka.default.svc:9092"
        operator.site.cluster.own_settings[broker]["advertised.listeners"] = address
    loop = operator.begin(2, maintenance={"pods": {"selector": "app=kafka"}}, promotion=QUICK)
    health = operator.api.get(BROKER_HEALTHS, "default", "main-3")
    assert health["status"]["advertisedHosts"] == ["broker-3.test", "kafka-1.kafka.default.svc"]
    becomes(operator, loop, 1, leaving=True)
    assert leaders(operator)[3] == 0
    assert said(operator, 3, "Demoted") == ("True", "Restarting")
    assert leaders(operator)[1] > 0


def test_without_it_in_the_policy_pods_are_not_even_listed(operator: MemoryOperator):
    loop = operator.make()
    operator.api.refuse("list", PODS, AssertionError("listed"))  # type: ignore[arg-type]
    operator.step(loop, 3)
    becomes(operator, loop, 1, leaving=True)
    assert leaders(operator)[2] == 2


def test_a_second_pod_waits_its_turn(operator: MemoryOperator, loop: PolicyController):
    becomes(operator, loop, 1, leaving=True)
    becomes(operator, loop, 2, ready=False)
    assert leaders(operator)[2] == 0
    assert said(operator, 3, "Demoted") == ("False", "SystemicCause")


def test_a_pod_that_changes_ends_the_loops_rest(operator: MemoryOperator, loop: PolicyController):
    loop._wakeups.changed(operator.body())
    assert not loop._wakeups.changed(operator.body())
    operator.api.put(PODS, pod(1, leaving=True))
    operator.site.clock.advance(LOOK_SECONDS)
    assert loop._wakeups.changed(operator.body())


def test_ambiguous_pods_are_in_a_condition_that_clears_again(operator: MemoryOperator, loop: PolicyController):
    operator.api.put(PODS, pod(1, "controller"))
    operator.site.clock.advance(LOOK_SECONDS)
    operator.step(loop, 2)
    status, reason, message = operator.condition("RestartDetection")
    assert (status, reason) == ("False", "NoEvidence")
    assert_wording(message)
    operator.api.objects.pop(("pods", "default", "controller-1"))
    operator.site.clock.advance(LOOK_SECONDS)
    operator.step(loop, 2)
    assert "RestartDetection" not in {c["type"] for c in operator.body()["status"]["conditions"]}


def test_a_settled_cluster_with_pods_watched_causes_no_write(operator: MemoryOperator, loop: PolicyController):
    operator.step(loop, 3)
    operator.api.writes.clear()
    for _ in range(5):
        operator.site.clock.advance(LOOK_SECONDS)
        operator.step(loop)
    assert operator.api.writes == []
