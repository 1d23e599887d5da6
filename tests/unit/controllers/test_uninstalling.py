"""Bellwether is taken away and its policies stay: orders are put back, the rest exported, nothing waits for us."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES
from bellwether.adapters.kubernetes.api_errors import NamespaceEnding
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_deletion import RETRY_SECONDS, STAYS_AWAY, UNINSTALL, UninstallRequest
from bellwether.controllers.policy_finalizer import ABANDON, FINALIZER
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal, Transient
from testkit.simulation.operator_fixture import MemoryOperator

HOME = [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)]
ENOUGH = 60


def demoting(operator: MemoryOperator, **spec: Any) -> PolicyController:
    """A policy under which broker 1 is demoted."""
    loop = operator.begin(**spec)
    operator.site.signals.say(1, Reading.FAILING)
    operator.step(loop, 2)
    assert orders(operator) != HOME
    return loop


def ask(operator: MemoryOperator, restore: bool = True, seconds: float = 60) -> UninstallRequest:
    asked = UninstallRequest(restore, operator.site.clock.now() + timedelta(seconds=seconds))
    annotations = {"annotations": {UNINSTALL: str(asked)}}
    operator.api.merge(POLICIES, "default", "main", {"metadata": annotations})
    return asked


def let_go(operator: MemoryOperator, loop: PolicyController, most: int = ENOUGH) -> None:
    """Steps until the policy has no finalizer, and one more, that sees it."""
    for _ in range(most):
        operator.step(loop)
        if not operator.body()["metadata"]["finalizers"]:
            operator.step(loop)
            return
    raise AssertionError(f"still held after {most} steps: {operator.body()}")


def orders(operator: MemoryOperator) -> list[tuple[int, ...]]:
    return [p.replicas for p in operator.site.cluster.partitions()]


def exports(operator: MemoryOperator) -> list[dict[str, Any]]:
    return [json.loads(c["data"]["record.json"]) for c in operator.api.all(CONFIG_MAPS) if "-export-" in name_of(c)]


def records(operator: MemoryOperator) -> list[str]:
    names = [name_of(c) for c in operator.api.all(CONFIG_MAPS)]
    return [name for name in names if name.startswith("bellwether-undo-")]


def name_of(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"])


def test_a_well_brokers_leaders_are_given_back_and_the_policy_stays(operator: MemoryOperator):
    loop = demoting(operator)
    operator.site.signals.say(1, Reading.PASSING)
    ask(operator)
    let_go(operator, loop)
    assert orders(operator) == HOME
    assert (records(operator), exports(operator)) == ([], [])
    assert operator.condition()[:2] == ("False", "Uninstalling")


def test_a_sick_broker_stays_demoted_and_its_baselines_are_exported(operator: MemoryOperator):
    loop = demoting(operator)
    away = orders(operator)
    ask(operator)
    let_go(operator, loop)
    assert (orders(operator), records(operator), len(exports(operator))) == (away, [], 1)


def test_asked_for_an_export_it_touches_no_order(operator: MemoryOperator):
    loop = demoting(operator)
    operator.site.signals.say(1, Reading.PASSING)
    away, before = orders(operator), operator.site.cluster.mutations
    ask(operator, restore=False)
    let_go(operator, loop, most=1)
    assert (orders(operator), operator.site.cluster.mutations) == (away, before)
    assert (records(operator), len(exports(operator))) == ([], 1)


def test_what_is_not_restored_in_time_is_exported(operator: MemoryOperator):
    loop = demoting(operator)
    loop.release()
    operator.connector.trouble = Transient("no answer")
    ask(operator, seconds=30)
    assert operator.step(loop, 30) == RETRY_SECONDS
    assert operator.body()["metadata"]["finalizers"] == [FINALIZER]
    let_go(operator, loop, most=3)
    assert (records(operator), len(exports(operator))) == ([], 1)


def test_afterwards_it_holds_no_lease_and_writes_nothing(operator: MemoryOperator):
    loop = demoting(operator)
    ask(operator)
    let_go(operator, loop)
    operator.api.writes.clear()
    assert operator.step(loop, 5) > RETRY_SECONDS
    assert operator.api.writes == []
    assert loop._session.link is None


def test_an_installation_that_stays_continues_after_the_request_ends(operator: MemoryOperator):
    loop = demoting(operator)
    asked = ask(operator)
    let_go(operator, loop)
    wait = operator.step(loop)
    assert wait <= STAYS_AWAY.total_seconds() + 60
    operator.site.clock.advance((asked.ends - operator.site.clock.now()).total_seconds())
    operator.step(loop, 3)
    assert operator.body()["metadata"]["finalizers"] == [FINALIZER]
    assert operator.condition()[1] != "Uninstalling"
    assert loop.record is not None


def test_uninstalled_twice_with_another_demotion_between_both_records_are_kept(operator: MemoryOperator):
    loop = demoting(operator)
    asked = ask(operator)
    let_go(operator, loop)
    operator.site.clock.advance((asked.ends - operator.site.clock.now()).total_seconds())
    operator.step(loop, 2)
    operator.site.signals.say(2, Reading.FAILING)
    operator.step(loop, 3)
    ask(operator)
    let_go(operator, loop)
    first, second = exports(operator)
    assert first != second


def test_a_policy_that_cannot_be_understood_is_let_go_all_the_same(operator: MemoryOperator):
    loop = demoting(operator)
    operator.change(demotion={"maxBrokers": 0})
    ask(operator)
    let_go(operator, loop)
    assert (records(operator), len(exports(operator))) == ([], 1)


def test_a_policy_that_was_never_adopted_is_left_alone(operator: MemoryOperator):
    loop = operator.make()
    ask(operator)
    operator.step(loop)
    assert operator.body()["metadata"].get("finalizers", []) == []
    assert operator.api.list(CONFIG_MAPS, "default") == []


def in_an_ending_namespace(operator: MemoryOperator) -> None:
    """What Kubernetes does when a namespace is deleted: nothing new is made in it, and everything is marked."""
    operator.api.refuse("create", CONFIG_MAPS, NamespaceEnding("its namespace is being deleted"))
    operator.api.delete(POLICIES, "default", "main")
    stamp = operator.site.clock.now().isoformat()
    operator.api.objects["leadershippolicies", "default", "main"]["metadata"]["deletionTimestamp"] = stamp
    for found in operator.api.list(CONFIG_MAPS, "default"):
        operator.api.delete(CONFIG_MAPS, "default", name_of(found))


def test_a_namespace_that_ends_in_mid_demotion_gets_its_orders_back_first(operator: MemoryOperator):
    loop = demoting(operator)
    operator.site.signals.say(1, Reading.PASSING)
    in_an_ending_namespace(operator)
    operator.step(loop, ENOUGH)
    assert orders(operator) == HOME
    assert operator.api.find(POLICIES, "default", "main") is None
    assert operator.api.all(CONFIG_MAPS) == []


def test_no_baseline_goes_with_a_namespace_that_ends(operator: MemoryOperator):
    loop = demoting(operator)
    in_an_ending_namespace(operator)
    before = records(operator)
    assert operator.step(loop, ENOUGH) == RETRY_SECONDS
    assert records(operator) == before
    assert operator.api.find(POLICIES, "default", "main") is not None


def test_a_person_may_give_the_baselines_up(operator: MemoryOperator):
    loop = demoting(operator)
    in_an_ending_namespace(operator)
    operator.step(loop)
    operator.api.merge(POLICIES, "default", "main", {"metadata": {"annotations": {ABANDON: "true"}}})
    operator.step(loop)
    assert operator.api.find(POLICIES, "default", "main") is None
    assert operator.api.all(CONFIG_MAPS) == []


@pytest.mark.parametrize(
    "refuse",
    [
        pytest.param(lambda o: o.api.refuse("create", CONFIG_MAPS, Terminal("too large")), id="too large to export"),
    ],
)
def test_a_record_that_is_too_large_to_export_is_left_only_where_it_stays(
    operator: MemoryOperator, refuse: Callable[[MemoryOperator], None]
):
    loop = demoting(operator)
    refuse(operator)
    ask(operator)
    let_go(operator, loop)
    left = [c for c in operator.api.all(CONFIG_MAPS) if name_of(c) in records(operator)]
    assert left
    assert all(not c["metadata"].get("finalizers") for c in left)


def test_a_record_that_is_too_large_to_export_is_kept_while_it_is_being_deleted(operator: MemoryOperator):
    loop = demoting(operator)
    in_an_ending_namespace(operator)
    operator.api.refuse("create", CONFIG_MAPS, Terminal("too large"))
    before = records(operator)
    assert operator.step(loop, 5) == RETRY_SECONDS
    assert records(operator) == before
