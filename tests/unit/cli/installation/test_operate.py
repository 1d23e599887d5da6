from __future__ import annotations

from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object, Resource
from bellwether.cli.installation.operate import log_missing_permissions
from bellwether.cli.main import main
from bellwether.ports.errors import Transient


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lease-duration", "20", "--lease-renew", "8"], "three times --lease-renew"),
        (["--lease-duration", "5", "--lease-renew", "1"], "more than 4 s"),
        (["--stuck-after", "21"], "must exceed 21 s, the longest that a read of 24 MiB (--metadata-limit) takes"),
        (["--metadata-limit", "192", "--stuck-after", "100"], "must exceed 105 s"),
    ],
)
def test_times_too_short_to_work_with_are_refused(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(main, ["operator", *arguments])
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())


def test_an_invalid_configuration_ends_the_start_with_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "load.yaml"
    path.write_text("stores: {default: {uri: /x}}\nprofiles: {default: {namespaces: ['*'], image: x, img: x}}")
    found = CliRunner().invoke(main, ["operator", "--load-config", str(path), "--metrics-port", "0"])
    assert found.exit_code == 1
    said = " ".join(found.output.split())
    assert (
        f"--load-config {path}: stores.default.namespaces: is required: set it; profiles.default.img: no such" in said
    )


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
