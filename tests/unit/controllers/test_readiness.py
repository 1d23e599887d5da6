"""Whether the operator can do its work, and the reason and remedy where it cannot."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.api.v1alpha1.schema import crd_manifests
from bellwether.controllers.readiness import (
    DELIVERED_SECONDS,
    FIELDS_SECONDS,
    SETTLE_SECONDS,
    WAIT_SECONDS,
    Readiness,
    await_definitions,
)
from bellwether.ports.errors import Terminal, Transient
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from waiting import limit

MAIN = ("default", "main")


@pytest.fixture
def api() -> MemoryApi:
    made = MemoryApi()
    made.put(POLICIES, api_objects.policy())
    return made


@pytest.fixture
def known() -> set[tuple[str, str]]:
    return set()


@pytest.fixture
def readiness(api: MemoryApi, known: set[tuple[str, str]], clock: ManualClock) -> Readiness:
    return Readiness(api, (), lambda: known, clock)


def test_readiness_fails_before_the_watches_have_listed(readiness: Readiness) -> None:
    assert_wording(readiness.problems())
    readiness.ask()
    assert_wording(readiness.problems())


def test_it_is_ready_once_they_have(readiness: Readiness, known: set[Any]) -> None:
    known.add(MAIN)
    readiness.ask()
    assert readiness.problems() == []


def test_with_no_policy_at_all_it_is_ready(readiness: Readiness, api: MemoryApi) -> None:
    api.delete(POLICIES, "default", "main")
    readiness.ask()
    assert readiness.problems() == []


def test_while_the_api_is_away_it_is_not_and_afterwards_it_is(
    readiness: Readiness, api: MemoryApi, known: set[Any]
) -> None:
    known.add(MAIN)
    readiness.ask()
    api.away = True
    readiness.ask()
    (text,) = readiness.problems()
    assert_wording(text)
    api.away = False
    readiness.ask()
    assert readiness.problems() == []


@pytest.mark.parametrize("kind", [POLICIES, BROKER_HEALTHS])
def test_missing_definitions_are_named_with_the_remedy(
    readiness: Readiness, api: MemoryApi, known: set[Any], kind: Any
) -> None:
    known.add(MAIN)
    api.refuse("list", kind, NotFound("no such kind"))
    readiness.ask()
    (text,) = readiness.problems()
    assert f"missing: {kind.plural}.bellwether.dev: " in text
    assert "kubectl apply -f crds/" in text
    assert readiness.stuck() == [], "the watches have not begun"
    api.refuse("list", kind, None)
    readiness.ask()
    assert readiness.problems() == []


def test_definition_without_a_field_of_this_version_is_named(
    readiness: Readiness, api: MemoryApi, known: set[Any], clock: ManualClock
) -> None:
    known.add(MAIN)
    api.definitions = {kind.name: kind.schema() for kind in crd_manifests.KINDS}
    spec = api.definitions["LeadershipPolicy"]["properties"]["spec"]["properties"]
    scope = spec.pop("scope")
    readiness.ask()
    assert "leadershippolicies.spec.scope" in readiness.problems()[0]
    assert_wording(readiness.problems())
    assert readiness.stuck() == []
    spec["scope"] = scope
    clock.advance(FIELDS_SECONDS)
    readiness.ask()
    assert readiness.problems() == []


def test_definitions_removed_while_it_runs_need_a_restart(
    readiness: Readiness, api: MemoryApi, known: set[Any]
) -> None:
    known.add(MAIN)
    readiness.ask()
    api.refuse("list", POLICIES, NotFound("no such kind"))
    readiness.ask()
    (text,) = readiness.stuck()
    assert_wording(text)


def test_watches_that_deliver_no_policy_for_long_need_a_restart(
    readiness: Readiness, clock: ManualClock, known: set[Any]
) -> None:
    readiness.ask()
    assert readiness.stuck() == []
    clock.advance(DELIVERED_SECONDS)
    readiness.ask()
    assert_wording(readiness.stuck())
    known.add(MAIN)
    readiness.ask()
    assert readiness.stuck() == []


def test_a_refused_list_is_reported_unchanged(readiness: Readiness, api: MemoryApi) -> None:
    api.refuse("list", POLICIES, Terminal("grant this account the verb list"))
    readiness.ask()
    assert_wording(readiness.problems())


def test_once_the_watches_have_listed_policies_are_listed_no_more(
    readiness: Readiness, api: MemoryApi, known: set[Any]
) -> None:
    known.add(MAIN)
    readiness.ask()
    api.refuse("list", POLICIES, Terminal("it was listed again"))
    readiness.ask()
    assert readiness.problems() == []


def test_only_the_namespaces_that_are_watched_count(api: MemoryApi, clock: ManualClock) -> None:
    readiness = Readiness(api, ("elsewhere",), set, clock)
    readiness.ask()
    assert readiness.problems() == []


def test_it_looks_on_its_own_until_it_is_stopped(readiness: Readiness, known: set[Any]) -> None:
    known.add(MAIN)
    readiness.start()
    readiness.end()
    readiness.join(limit(10))
    assert readiness.problems() == []


def test_an_error_of_what_it_attends_to_does_not_end_it(api: MemoryApi, clock: ManualClock) -> None:
    def attend() -> None:
        readiness.end()
        raise Terminal("forbidden")

    readiness = Readiness(api, (), set, clock, attend)
    with structlog.testing.capture_logs() as logs:
        readiness.run()
    assert "policies_not_attended" in [log["event"] for log in logs]


def test_a_readiness_thread_that_stopped_is_reported(readiness: Readiness, clock: ManualClock) -> None:
    assert readiness.stuck() == []
    readiness.start()
    readiness.end()
    readiness.join(limit(10))
    clock.advance(1000)
    assert_wording(readiness.stuck()[0])


@pytest.mark.parametrize("kind", [POLICIES, BROKER_HEALTHS])
def test_definitions_that_are_missing_are_waited_for_and_named_once(kind: Any) -> None:
    api, slept = MemoryApi(), list[float]()
    api.refuse("list", kind, NotFound("no such kind"))

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            api.refuse("list", kind, None)

    with structlog.testing.capture_logs() as logs:
        await_definitions(api, sleep)
    assert slept == [WAIT_SECONDS] * 3 + [SETTLE_SECONDS]
    named = [(entry["event"], entry.get("missing")) for entry in logs]
    assert named == [("definitions_missing", [f"{kind.plural}.bellwether.dev"]), ("definitions_served", None)]
    assert "kubectl apply -f crds/" in logs[0]["remedy"]


def test_where_both_are_served_nothing_is_waited_for() -> None:
    await_definitions(MemoryApi(), lambda _: pytest.fail("it waited"))


def test_an_api_that_is_away_is_waited_for() -> None:
    api, slept = MemoryApi(), list[float]()
    api.refuse("served", POLICIES, Transient("no answer"))

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        api.refuse("served", POLICIES, None)

    await_definitions(api, sleep)
    assert slept == [WAIT_SECONDS]


def test_an_account_that_may_not_ask_does_not_wait() -> None:
    api = MemoryApi()
    api.refuse("served", POLICIES, Terminal("forbidden"))
    await_definitions(api, lambda _: pytest.fail("it waited"))
