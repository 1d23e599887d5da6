"""The operator with LeaderRebalances: which one it uses, what it reports on the others, and what wakes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, POLICIES
from bellwether.controllers.policy_manager import PolicyManager
from bellwether.core.signals import Reading
from bellwether.ports.errors import Transient
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.simulation.rebalance_fixture import SPEC, Desked


def ready(operator: MemoryOperator, name: str) -> tuple[str, str, str]:
    conditions = operator.api.get(LEADER_REBALANCES, "default", name)["status"]["conditions"]
    return next((c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == "Ready")


def created(name: str, moment: str, **spec: Any) -> api_objects.Body:
    body = api_objects.rebalance(name, **spec)
    body["metadata"]["creationTimestamp"] = moment
    return body


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


def test_a_sick_broker_is_demoted_while_rebalances_cannot_be_read(tmp_path: Path):
    made = Desked(tmp_path)
    loop = made.proposed()
    made.api.refuse("list", LEADER_REBALANCES, Transient("the API server is overloaded"))
    made.site.signals.say(1, Reading.FAILING)
    made.go(loop, 10)
    assert [p.leader for p in made.site.cluster.partitions() if p.leader == 1] == []
    assert len(made.desks) == 1
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
