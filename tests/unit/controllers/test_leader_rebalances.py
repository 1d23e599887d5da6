"""The operator with LeaderRebalances: which one it uses, what it reports on the others, and what wakes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import EVENTS, LEADER_REBALANCES, POLICIES, Resource
from bellwether.controllers.policy_manager import PolicyManager
from bellwether.core.reasons import Reason
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal, Transient
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.simulation.rebalance_fixture import SPEC, Desked, asking


def ready(operator: MemoryOperator, name: str) -> tuple[str, str, str]:
    conditions = operator.api.get(LEADER_REBALANCES, "default", name)["status"]["conditions"]
    return next((c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == "Ready")


def created(name: str, moment: str, **spec: Any) -> api_objects.Body:
    body = api_objects.rebalance(name, **spec)
    body["metadata"]["creationTimestamp"] = moment
    return body


def leading(operator: MemoryOperator, broker: int) -> int:
    return [p.leader for p in operator.site.cluster.partitions()].count(broker)


@pytest.fixture
def two(tmp_path: Path) -> Desked:
    made = Desked(tmp_path)
    made.api.put(LEADER_REBALANCES, created("younger", "2026-11-29T02:00:00Z", **SPEC))
    made.api.put(LEADER_REBALANCES, created("older", "2026-11-29T01:00:00Z", **SPEC))
    return made


def test_older_of_two_is_used_and_the_other_names_it(two: Desked):
    two.go(two.make(), 3)
    assert ready(two, "older")[0] == "True"
    status, reason, message = ready(two, "younger")
    assert (status, reason) == ("False", "RebalanceUnused")
    assert_wording(message)
    assert len(two.desks) == 1
    two.close()


def test_younger_takes_over_once_the_older_is_deleted(two: Desked):
    loop = two.make()
    two.go(loop, 3)
    two.api.delete(LEADER_REBALANCES, "default", "older")
    two.go(loop, 3)
    assert ready(two, "younger")[0] == "True"
    assert len(two.desks) == 2
    two.close()


def test_settled_rebalances_cause_no_write(two: Desked):
    loop = two.make()
    two.go(loop, 10)
    two.api.writes.clear()
    two.go(loop, 5, seconds=30)
    assert [w for w in two.api.writes if " leases " not in w] == []
    two.close()


def test_a_rebalance_that_was_replaced_starts_without_a_plan(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.proposed()
    again = api_objects.rebalance(**SPEC)
    again["metadata"]["uid"] = "uid-again"
    made.api.put(LEADER_REBALANCES, again)
    made.go(loop, 3)
    assert (made.state, made.status["digest"], len(made.desks)) == ("Idle", "", 2)
    made.close()


def test_rebalance_without_policy_has_a_condition_that_names_it(operator: MemoryOperator):
    operator.api.put(LEADER_REBALANCES, api_objects.rebalance())
    operator.reporter.without_policy([api_objects.rebalance()])
    status, reason, message = ready(operator, api_objects.LOADS)
    assert (status, reason) == ("False", "RebalanceUnused")
    assert_wording(message)
    operator.api.put(POLICIES, api_objects.policy())
    before = operator.api.get(LEADER_REBALANCES, "default", api_objects.LOADS)
    operator.reporter.without_policy([before])
    assert operator.api.get(LEADER_REBALANCES, "default", api_objects.LOADS) == before


def test_failing_policy_reports_rebalances_without_listing_them(operator: MemoryOperator):
    found = operator.api.put(LEADER_REBALANCES, api_objects.rebalance())
    operator.api.refuse("list", LEADER_REBALANCES, Terminal("80 MiB of others"))
    operator.reporter.rebalances_of = lambda *_: [found]
    operator.reporter.trouble(api_objects.policy(), Reason.CLUSTER_UNREACHABLE, "connection refused")
    assert ready(operator, api_objects.LOADS)[:2] == ("False", "ClusterUnreachable")
    operator.reporter.without_policy([found])
    assert ready(operator, api_objects.LOADS)[:2] == ("False", "RebalanceUnused")


def test_a_sick_broker_is_demoted_while_rebalances_cannot_be_read(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.proposed()
    made.api.refuse("list", LEADER_REBALANCES, Transient("the API server is overloaded"))
    made.site.signals.say(1, Reading.FAILING)
    made.go(loop, 10)
    assert leading(made, 1) == 0
    assert len(made.desks) == 1
    made.close()


def test_a_sick_broker_is_demoted_before_rebalances_were_ever_read():
    operator = MemoryOperator.well()
    operator.api.refuse("list", LEADER_REBALANCES, Terminal("leaderrebalances is forbidden"))
    loop = operator.make()
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 10)
    assert leading(operator, 1) == 0
    assert operator.connector.renewed == 0
    status, reason, message = operator.condition("RebalanceUsable")
    assert (status, reason) == ("False", "NoEvidence")
    assert "leaderrebalances is forbidden" in message
    assert_wording(message)
    operator.close()


LIMITED = {"dwellSeconds": 0, "capacity": {"maxBytesPerSecond": 1}}


def test_unread_rebalances_let_no_leader_pass_limits_by_load():
    operator = MemoryOperator.well()
    operator.api.refuse("list", LEADER_REBALANCES, Terminal("leaderrebalances is forbidden"))
    loop = operator.make(demotion=LIMITED)
    before = leading(operator, 1)
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 10)
    assert leading(operator, 1) == before > 0
    operator.close()


@pytest.mark.parametrize("restarted", [False, True])
def test_an_invalid_rebalance_leaves_limits_by_load(tmp_path: Path, restarted: bool):
    made = Desked(tmp_path)
    loop = made.make(rebalance=SPEC, demotion=LIMITED)
    made.annotate(rebalance="please")
    made.until(loop, "Proposed")
    made.go(loop, 5)
    before = leading(made, 1)
    made.change(rebalance={"schedule": "99 99 * * *"})
    made.go(loop, 3)
    if restarted:
        loop.release()
        loop = made.loop()
    made.site.signals.say(1, Reading.FAILING)
    made.go(loop, 15)
    assert leading(made, 1) == before > 0
    status, reason, message = made.condition("RebalanceUsable")
    assert (status, reason) == ("False", "NoEvidence")
    assert f"LeaderRebalance {api_objects.LOADS}" in message
    assert_wording(message)
    made.change(rebalance={"schedule": None})
    made.go(loop, 3)
    assert "RebalanceUsable" not in {c["type"] for c in made.body()["status"]["conditions"]}
    made.close()


def refuse_status_of(name: str, operator: MemoryOperator) -> None:
    """The API refuses to write the status of that LeaderRebalance."""
    apply = operator.api.apply

    def refused(resource: Resource, namespace: str, called: str, *rest: Any, **how: Any) -> Any:
        if (resource, called) == (LEADER_REBALANCES, name):
            raise Terminal("a webhook denied the request")
        return apply(resource, namespace, called, *rest, **how)

    operator.api.apply = refused  # type: ignore[method-assign]


def events(operator: MemoryOperator, kind: str) -> list[str]:
    found = [body for key, body in operator.api.objects.items() if key[0] == EVENTS.plural]
    return [one["reason"] for one in found if one["regarding"]["kind"] == kind]


def test_a_refused_status_of_the_rebalance_silences_no_event(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.make(rebalance=SPEC)
    refuse_status_of(api_objects.LOADS, made)
    made.go(loop, 3)
    made.site.signals.say(1, Reading.FAILING)
    made.go(loop, 10)
    assert "Demoted" in events(made, "BrokerHealth")
    assert "LeadersMoved" in events(made, "LeadershipPolicy")
    made.close()


def test_a_refused_status_of_an_unused_rebalance_stops_no_plan(two: Desked):
    refuse_status_of("younger", two)
    loop = two.make()
    two.api.merge(LEADER_REBALANCES, "default", "older", dict(asking(rebalance="please")))
    two.go(loop, 10)
    assert len(two.planner.started) == 1
    two.close()


def test_a_job_waits_until_the_used_rebalance_is_written(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.make(rebalance=SPEC)
    refuse_status_of(api_objects.LOADS, made)
    made.annotate(rebalance="please")
    made.go(loop, 10)
    assert made.planner.started == []
    made.close()


def test_plans_of_a_replaced_rebalance_are_no_event_of_the_next(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.proposed()
    other = created("other", "2030-01-01T00:00:00Z", **SPEC)
    other["metadata"]["uid"] = "uid-other"
    other["status"] = {"state": "Proposed", "digest": "abcd", "reason": "PlanProposed", "message": "m"}
    made.api.put(LEADER_REBALANCES, other)
    made.go(loop, 3)
    before = events(made, "LeaderRebalance")
    made.api.delete(LEADER_REBALANCES, "default", api_objects.LOADS)
    made.go(loop, 3)
    assert ready(made, "other")[0] == "True"
    assert events(made, "LeaderRebalance") == before
    made.close()


def test_an_invalid_policy_makes_its_rebalance_not_ready(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.proposed()
    stood = made.status
    made.api.merge(POLICIES, "default", "main", {"spec": {"mode": "Bogus"}})
    made.go(loop, 3)
    status, reason, message = ready(made, api_objects.LOADS)
    assert (status, reason) == ("False", "InvalidPolicy")
    assert_wording(message)
    assert {**made.status, "conditions": []} == {**stood, "conditions": []}
    assert made.rebalance_condition("RebalanceProposed")[0] == "True"
    made.api.merge(POLICIES, "default", "main", {"spec": {"mode": "Enforce"}})
    made.go(loop, 3)
    assert ready(made, api_objects.LOADS)[0] == "True"
    made.close()


def test_an_unreachable_cluster_makes_rebalances_not_ready_from_the_start(two: Desked):
    two.connector.trouble = Transient("no broker answers")
    loop = two.make()
    two.go(loop, 3)
    two.api.writes.clear()
    two.go(loop, 3)
    assert two.api.writes == []
    for name in ("older", "younger"):
        assert ready(two, name)[:2] == ("False", "ClusterUnreachable")
    two.connector.trouble = None
    two.go(loop, 3)
    assert ready(two, "older")[0] == "True"
    assert ready(two, "younger")[:2] == ("False", "RebalanceUnused")
    two.close()


def test_rebalances_of_other_policies_keep_their_status(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.make()
    found = made.api.put(LEADER_REBALANCES, api_objects.rebalance(policy="other"))
    made.connector.trouble = Transient("no broker answers")
    made.go(loop, 3)
    assert made.api.get(LEADER_REBALANCES, "default", api_objects.LOADS) == found
    made.close()


def test_a_policy_in_deletion_makes_its_rebalance_not_ready(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.proposed()
    made.api.merge(POLICIES, "default", "main", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    made.go(loop)
    status, reason, message = ready(made, api_objects.LOADS)
    assert (status, reason) == ("False", "RebalanceUnused")
    assert_wording(message)
    made.close()


def test_changes_of_a_rebalance_wake_the_policy_that_it_names(operator: MemoryOperator):
    loop = operator.make()
    manager = PolicyManager(lambda _: loop, lambda *_: None)
    loop.start = lambda: None  # type: ignore[method-assign]
    manager.policy("ADDED", operator.body())
    found = operator.api.put(LEADER_REBALANCES, api_objects.rebalance())

    def wakes(event: str, body: dict[str, Any]) -> bool:
        loop._wakeups._wanted.clear()
        manager.rebalance(event, body)
        return loop._wakeups._wanted.is_set()

    assert wakes("ADDED", found)
    assert not wakes("MODIFIED", {**found, "status": {"state": "Running"}})
    assert wakes("MODIFIED", {**found, "metadata": {**found["metadata"], "annotations": {"a": "b"}}})
    assert wakes("DELETED", found)
    assert not wakes("ADDED", api_objects.rebalance(policy="other"))
    assert [one["metadata"]["name"] for one in manager.without_policy("default", "other")] == [api_objects.LOADS]
