"""Definitions older than the operator, an undo record newer than it: both are named, and nothing is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS
from bellwether.core.model.undo_record import FORMAT_VERSION
from testkit.processes.health_requests import ask

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

CRDS = Path(__file__).parents[3] / "crds"


def older(field: str, part: str = "status") -> dict[str, Any]:
    """The definition of policies before a field of status, or of spec, was added."""
    definition = copy.deepcopy(yaml.safe_load((CRDS / "leadershippolicies.yaml").read_text()))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]
    del schema["properties"][field]
    return dict(definition)


@pytest.fixture
def older_definitions(bare_site: Site, apiserver: ApiServer) -> Iterator[ApiServer]:
    """The definition of policies does not know ``status.displacedPartitions``; in the end the present one is served."""
    assert bare_site.namespace
    apiserver.kubectl("replace", "-f", "-", stdin=json.dumps(older("displacedPartitions")))
    bare_site.until(lambda: "displacedPartitions" not in served(apiserver), 60, "the older definition is served")
    yield apiserver
    apiserver.apply(CRDS)


def served(apiserver: ApiServer) -> str:
    """What the API server publishes of our kinds."""
    return apiserver.kubectl("get", "--raw", "/openapi/v3/apis/bellwether.dev/v1alpha1")


def test_definitions_of_an_older_version_are_named_and_work_goes_on_without_a_restart(
    bare_site: Site, older_definitions: ApiServer
) -> None:
    site, port = bare_site, bare_site.free_port()
    site.topics()
    site.policy()
    before = site.orders()
    process = site.operator("--health-port", str(port))
    site.until(lambda: site.ready()[0] == "CRDOutdated", 60, "it is named", site.ready)
    message = site.ready()[1]
    assert ".status.displacedPartitions" in message
    assert "kubectl apply -f crds/" in message
    status, text = ask(port, "/readyz")
    assert (status, "kubectl apply -f crds/" in text) == (503, True)
    assert ask(port, "/healthz") == (200, "ok\n")
    assert process.log.read_text().count("status_not_written") <= 3, "logged once, not at every reconcile"

    site.demote(1)
    site.until(lambda: site.displaced(1, before), 60, "demotion goes on", site.orders)
    older_definitions.apply(CRDS)
    site.change(promotion={"stabilizationSeconds": 1})  # any news; the next turn would come by itself
    site.until(lambda: site.status().get("displacedPartitions"), 60, "the whole status is written", site.status)
    site.until(lambda: ask(port, "/readyz")[0] == 200, 30, "it is ready", lambda: ask(port, "/readyz"))
    assert process.alive
    site.lift_and_wait(1, before)


def test_field_of_spec_that_an_older_definition_drops_is_named_at_readyz(
    bare_site: Site, older_definitions: ApiServer
) -> None:
    site, port = bare_site, bare_site.free_port()
    older_definitions.kubectl("replace", "-f", "-", stdin=json.dumps(older("deletionTimeoutSeconds", "spec")))
    site.until(lambda: "deletionTimeoutSeconds" not in served(older_definitions), 60, "the older definition is served")
    site.operator("--health-port", str(port))
    dropped = "leadershippolicies.spec.deletionTimeoutSeconds"
    site.until(lambda: dropped in ask(port, "/readyz")[1], 60, "it is named", lambda: ask(port, "/readyz"))
    older_definitions.apply(CRDS)
    site.until(lambda: ask(port, "/readyz")[0] == 200, 90, "it is ready", lambda: ask(port, "/readyz"))


def test_an_older_operator_refuses_a_newer_undo_record_and_loses_nothing_of_it(site: Site) -> None:
    before = site.demote_and_wait(1)
    displaced = site.orders()
    site.processes[0].stop()
    newer = str(FORMAT_VERSION + 1)
    parts = [
        m["metadata"]["name"] for m in site.api.list(CONFIG_MAPS, site.namespace) if "undo" in m["metadata"]["name"]
    ]
    for name in parts:
        site.api.merge(CONFIG_MAPS, site.namespace, name, {"data": {"format": newer}})
    versions = record_versions(site)

    site.operator()
    site.until(lambda: site.ready()[0] == "RecordUnavailable", 60, "it refuses", site.ready)
    message = site.ready()[1]
    assert f"format version {newer}" in message
    assert f"reads {FORMAT_VERSION}" in message
    assert "run the newer version" in message
    site.lift(1)
    site.until(lambda: "reconcile_failed" in site.logs(), 30, "the reconcile fails")
    assert site.orders() == displaced
    assert record_versions(site) == versions

    # What the newer version would do on coming back: here it is this one again.
    for name in parts:
        site.api.merge(CONFIG_MAPS, site.namespace, name, {"data": {"format": str(FORMAT_VERSION)}})
    site.until_restored(before)


def record_versions(site: Site) -> dict[str, str]:
    """The resourceVersion of each part of the undo record."""
    return {name: version for name, version in site.versions().items() if "bellwether-undo" in name}
