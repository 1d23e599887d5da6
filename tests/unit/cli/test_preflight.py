"""Before it watches, the operator says what it lacks, and waits for the definitions where it could not hear of them."""

from __future__ import annotations

import pytest
import structlog

from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, POLICIES, KubernetesClient, NotFound, Object, Resource
from bellwether.cli.preflight import WAIT_SECONDS, await_definitions, tell_missing_permissions
from bellwether.ports import Terminal, Transient
from testkit.apistores import MemoryApi


class Reviewing(KubernetesClient):
    """Refuses one verb, or everything while it is away."""

    def __init__(self, refused: str, *, away: bool = False) -> None:
        super().__init__(None)
        self._refused = refused
        self._away = away

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:  # noqa: ARG002 - the signature
        if self._away:
            raise Transient("no answer in 5 s")
        return {"status": {"allowed": body["spec"]["resourceAttributes"]["verb"] != self._refused}}


def test_each_permission_that_is_missing_is_an_error_in_the_log() -> None:
    with structlog.testing.capture_logs() as logs:
        tell_missing_permissions(Reviewing("delete"), [], "ops")
    assert {entry["log_level"] for entry in logs} == {"error"}
    assert ["on brokerhealths in API group" in e["permission"] for e in logs] == [True, False]
    assert ["on configmaps in the core API group" in e["permission"] for e in logs] == [False, True]


def test_an_api_that_is_away_does_not_keep_the_operator_from_starting() -> None:
    with structlog.testing.capture_logs() as logs:
        tell_missing_permissions(Reviewing("", away=True), [], "ops")
    assert [(entry["log_level"], entry["why"]) for entry in logs] == [("warning", "no answer in 5 s")]


def test_definitions_that_are_missing_are_waited_for_and_told_once() -> None:
    api, slept = MemoryApi(), list[float]()
    api.refuse("list", BROKER_HEALTHS, NotFound("brokerhealths ns/* not found"))

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            api.refuse("list", BROKER_HEALTHS, None)

    with structlog.testing.capture_logs() as logs:
        await_definitions(api, ["ns"], sleep)
    assert slept == [WAIT_SECONDS] * 3
    assert ["install those of the chart" in entry["event"] for entry in logs] == [True]


def test_where_all_namespaces_are_watched_nothing_is_waited_for() -> None:
    api = MemoryApi()
    api.refuse("list", POLICIES, NotFound("no such kind"))
    await_definitions(api, [], lambda _: pytest.fail("it waited"))


@pytest.mark.parametrize("error", [Transient("away"), Terminal("forbidden")])
def test_what_the_watches_will_tell_is_left_to_them(error: Transient | Terminal) -> None:
    api = MemoryApi()
    api.refuse("list", POLICIES, error)
    await_definitions(api, ["ns"], lambda _: pytest.fail("it waited"))
