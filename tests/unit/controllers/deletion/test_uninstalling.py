"""Bellwether is taken away and its policies stay: orders are put back, the rest exported, nothing waits for us."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES, NamespaceEnding
from bellwether.controllers.deletion.finalizer import ABANDON, FINALIZER
from bellwether.controllers.deletion.policy_deletion import RETRY_SECONDS
from bellwether.controllers.deletion.uninstall_request import STAYS_AWAY, UNINSTALL, UninstallRequest
from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal, Transient
from testkit.offices import Office

HOME = [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)]
ENOUGH = 60


def demoting(office: Office, **spec: Any) -> PolicyController:
    """A policy under which broker 1 is demoted."""
    loop = office.make(**spec)
    office.step(loop)
    office.site.signals.say(1, Reading.FAILING)
    office.step(loop, 2)
    assert orders(office) != HOME
    return loop


def ask(office: Office, restore: bool = True, seconds: float = 60) -> UninstallRequest:
    asked = UninstallRequest(restore, office.site.clock.now() + timedelta(seconds=seconds))
    annotations = {"annotations": {UNINSTALL: str(asked)}}
    office.api.merge(POLICIES, "default", "main", {"metadata": annotations})
    return asked


def let_go(office: Office, loop: PolicyController, most: int = ENOUGH) -> None:
    """Steps until the policy has no finalizer, and one more, that sees it."""
    for _ in range(most):
        office.step(loop)
        if not office.body()["metadata"]["finalizers"]:
            office.step(loop)
            return
    raise AssertionError(f"still held after {most} steps: {office.body()}")


def orders(office: Office) -> list[tuple[int, ...]]:
    return [p.replicas for p in office.site.cluster.partitions()]


def exports(office: Office) -> list[dict[str, Any]]:
    return [json.loads(c["data"]["record.json"]) for c in office.api.all(CONFIG_MAPS) if "-export-" in name_of(c)]


def records(office: Office) -> list[str]:
    names = [name_of(c) for c in office.api.all(CONFIG_MAPS)]
    return [name for name in names if name.startswith("bellwether-undo-") and "-export-" not in name]


def name_of(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"])


def test_a_well_brokers_leaders_are_given_back_and_the_policy_stays(office: Office):
    loop = demoting(office)
    office.site.signals.say(1, Reading.PASSING)
    ask(office)
    let_go(office, loop)
    assert orders(office) == HOME
    assert (records(office), exports(office)) == ([], [])
    assert office.condition()[:2] == ("False", "Withdrawn")


def test_a_sick_broker_stays_demoted_and_its_baselines_are_exported(office: Office):
    loop = demoting(office)
    away = orders(office)
    ask(office)
    let_go(office, loop)
    assert (orders(office), records(office), len(exports(office))) == (away, [], 1)


def test_asked_for_an_export_it_touches_no_order(office: Office):
    loop = demoting(office)
    office.site.signals.say(1, Reading.PASSING)
    away, before = orders(office), office.site.cluster.mutations
    ask(office, restore=False)
    let_go(office, loop, most=1)
    assert (orders(office), office.site.cluster.mutations) == (away, before)
    assert (records(office), len(exports(office))) == ([], 1)


def test_what_is_not_restored_in_time_is_exported(office: Office):
    loop = demoting(office)
    loop.release()
    office.connector.trouble = Transient("no answer")
    ask(office, seconds=30)
    assert office.step(loop, 30) == RETRY_SECONDS
    assert office.body()["metadata"]["finalizers"] == [FINALIZER]
    let_go(office, loop, most=3)
    assert (records(office), len(exports(office))) == ([], 1)


def test_afterwards_it_holds_no_lease_and_writes_nothing(office: Office):
    loop = demoting(office)
    ask(office)
    let_go(office, loop)
    office.api.writes.clear()
    assert office.step(loop, 5) > RETRY_SECONDS
    assert office.api.writes == []
    assert loop._session.link is None


def test_an_installation_that_stays_goes_on_when_the_wish_has_ended(office: Office):
    loop = demoting(office)
    asked = ask(office)
    let_go(office, loop)
    wait = office.step(loop)
    assert wait <= STAYS_AWAY.total_seconds() + 60
    office.site.clock.advance((asked.ends - office.site.clock.now()).total_seconds())
    office.step(loop, 3)
    assert office.body()["metadata"]["finalizers"] == [FINALIZER]
    assert office.condition()[1] != "Withdrawn"
    assert loop.record is not None


def test_uninstalled_twice_with_another_demotion_between_both_records_are_kept(office: Office):
    loop = demoting(office)
    asked = ask(office)
    let_go(office, loop)
    office.site.clock.advance((asked.ends - office.site.clock.now()).total_seconds())
    office.step(loop, 2)
    office.site.signals.say(2, Reading.FAILING)
    office.step(loop, 3)
    ask(office)
    let_go(office, loop)
    first, second = exports(office)
    assert first != second


def test_a_policy_that_cannot_be_understood_is_let_go_all_the_same(office: Office):
    loop = demoting(office)
    office.change(demotion={"maxBrokers": 0})
    ask(office)
    let_go(office, loop)
    assert (records(office), len(exports(office))) == ([], 1)


def test_a_policy_that_was_never_adopted_is_left_alone(office: Office):
    loop = office.make()
    ask(office)
    office.step(loop)
    assert office.body()["metadata"].get("finalizers", []) == []
    assert office.api.list(CONFIG_MAPS, "default") == []


def in_an_ending_namespace(office: Office) -> None:
    """What Kubernetes does when a namespace is deleted: nothing new is made in it, and everything is marked."""
    office.api.refuse("create", CONFIG_MAPS, NamespaceEnding("its namespace is being deleted"))
    office.api.delete(POLICIES, "default", "main")
    stamp = office.site.clock.now().isoformat()
    office.api.objects["leadershippolicies", "default", "main"]["metadata"]["deletionTimestamp"] = stamp
    for found in office.api.list(CONFIG_MAPS, "default"):
        office.api.delete(CONFIG_MAPS, "default", name_of(found))


def test_a_namespace_that_ends_in_mid_demotion_gets_its_orders_back_first(office: Office):
    loop = demoting(office)
    office.site.signals.say(1, Reading.PASSING)
    in_an_ending_namespace(office)
    office.step(loop, ENOUGH)
    assert orders(office) == HOME
    assert office.api.find(POLICIES, "default", "main") is None
    assert office.api.all(CONFIG_MAPS) == []


def test_no_baseline_goes_with_a_namespace_that_ends(office: Office):
    loop = demoting(office)
    in_an_ending_namespace(office)
    before = records(office)
    assert office.step(loop, ENOUGH) == RETRY_SECONDS
    assert records(office) == before
    assert office.api.find(POLICIES, "default", "main") is not None


def test_a_person_may_give_the_baselines_up(office: Office):
    loop = demoting(office)
    in_an_ending_namespace(office)
    office.step(loop)
    office.api.merge(POLICIES, "default", "main", {"metadata": {"annotations": {ABANDON: "true"}}})
    office.step(loop)
    assert office.api.find(POLICIES, "default", "main") is None
    assert office.api.all(CONFIG_MAPS) == []


@pytest.mark.parametrize(
    "refuse",
    [
        pytest.param(lambda o: o.api.refuse("create", CONFIG_MAPS, Terminal("too large")), id="too large to export"),
    ],
)
def test_a_record_that_is_too_large_to_export_is_left_only_where_it_stays(
    office: Office, refuse: Callable[[Office], None]
):
    loop = demoting(office)
    refuse(office)
    ask(office)
    let_go(office, loop)
    left = [c for c in office.api.all(CONFIG_MAPS) if name_of(c) in records(office)]
    assert left
    assert all(not c["metadata"].get("finalizers") for c in left)


def test_a_record_that_is_too_large_to_export_is_kept_while_it_is_being_deleted(office: Office):
    loop = demoting(office)
    in_an_ending_namespace(office)
    office.api.refuse("create", CONFIG_MAPS, Terminal("too large"))
    before = records(office)
    assert office.step(loop, 5) == RETRY_SECONDS
    assert records(office) == before
