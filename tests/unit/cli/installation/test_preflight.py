"""Before it watches, the operator says which permissions it lacks."""

from __future__ import annotations

import structlog

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object, Resource
from bellwether.cli.installation.preflight import log_missing_permissions
from bellwether.ports.errors import Transient


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
        log_missing_permissions(Reviewing("delete"), [], "ops")
    assert {entry["log_level"] for entry in logs} == {"error"}
    assert ["on brokerhealths in API group" in e["permission"] for e in logs] == [True, False, False]
    assert ["on configmaps in the core API group" in e["permission"] for e in logs] == [False, True, False]
    assert ["on leases in API group" in e["permission"] for e in logs] == [False, False, True]


def test_an_api_that_is_away_does_not_keep_the_operator_from_starting() -> None:
    with structlog.testing.capture_logs() as logs:
        log_missing_permissions(Reviewing("", away=True), [], "ops")
    assert [(entry["log_level"], entry["error"]) for entry in logs] == [("warning", "no answer in 5 s")]
