"""Whether the operator can do its work, and the reason and remedy where it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, NotFound
from bellwether.controllers.readiness import LIST_SECONDS, TRAILS_SECONDS, Readiness
from bellwether.ports.errors import Terminal
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
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
def begun() -> list[str]:
    """An entry for each time that the watches were to begin anew."""
    return []


@pytest.fixture
def readiness(api: MemoryApi, known: set[tuple[str, str]], clock: ManualClock, begun: list[str]) -> Readiness:
    return Readiness(api, (), lambda: known, clock, lambda: begun.append("anew"))


def test_nobody_is_ready_before_the_watches_have_listed(readiness: Readiness) -> None:
    assert readiness.problems() == ["the first list of policies has not been received yet"]
    readiness.ask()
    assert readiness.problems() == ["1 policies in the API are not delivered by the watch yet: default/main"]


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
    assert text.startswith("the Kubernetes API does not answer")
    api.away = False
    readiness.ask()
    assert readiness.problems() == []


@pytest.mark.parametrize("kind", [POLICIES, BROKER_HEALTHS])
def test_missing_definitions_are_named_with_the_remedy(
    readiness: Readiness, api: MemoryApi, known: set[Any], kind: Any, begun: list[str]
) -> None:
    known.add(MAIN)
    api.refuse("list", kind, NotFound("no such kind"))
    readiness.ask()
    (text,) = readiness.problems()
    assert f"missing: {kind.plural}.bellwether.dev: " in text
    assert "kubectl apply -f crds/" in text
    api.refuse("list", kind, None)
    readiness.ask()
    assert readiness.problems() == []
    assert begun == ["anew"], "a watch of a kind that is not served has ended"


def test_watches_that_know_no_policy_where_there_are_begin_anew_after_a_while(
    readiness: Readiness, clock: ManualClock, begun: list[str]
) -> None:
    readiness.ask()
    assert begun == []
    clock.advance(TRAILS_SECONDS)
    readiness.ask()
    assert begun == ["anew"]
    readiness.ask()
    assert begun == ["anew"], "they are given the same time again"


def test_what_is_refused_is_told_as_it_is(readiness: Readiness, api: MemoryApi) -> None:
    api.refuse("list", POLICIES, Terminal("grant this account the verb list"))
    readiness.ask()
    assert readiness.problems() == ["grant this account the verb list"]


def test_a_watch_may_trail_for_a_moment_and_not_for_long(
    readiness: Readiness, api: MemoryApi, known: set[Any], clock: ManualClock, begun: list[str]
) -> None:
    known.add(MAIN)
    readiness.ask()
    api.put(POLICIES, api_objects.policy("second"))
    clock.advance(LIST_SECONDS)
    readiness.ask()
    assert readiness.problems() == []
    clock.advance(TRAILS_SECONDS)
    readiness.ask()
    assert readiness.problems() == ["1 policies in the API are not delivered by the watch yet: default/second"]
    assert begun == [], "those that they know are at work"
    known.add(("default", "second"))
    readiness.ask()
    assert readiness.problems() == []


def test_only_the_namespaces_that_are_watched_count(api: MemoryApi, clock: ManualClock) -> None:
    readiness = Readiness(api, ("elsewhere",), set, clock, lambda: None)
    readiness.ask()
    assert readiness.problems() == []


def test_it_looks_by_itself_until_told_to_end(readiness: Readiness, known: set[Any]) -> None:
    known.add(MAIN)
    readiness.start()
    readiness.end()
    readiness.join(limit(10))
    assert readiness.problems() == []


def test_one_that_looks_no_more_is_told(readiness: Readiness, clock: ManualClock) -> None:
    assert readiness.stuck() == []
    readiness.start()
    readiness.end()
    readiness.join(limit(10))
    clock.advance(1000)
    assert "the readiness thread has been stuck" in readiness.stuck()[0]
