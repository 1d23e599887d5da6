"""Maintenance as people ask for it: whose pods, overrides with a purpose, and the example's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.signals import Override, OverrideState, Purpose
from testkit.kubernetes import api_objects

EXAMPLE = Path(__file__).parents[5] / "examples" / "placement" / "rolling-restart"


def pods(**fields: Any) -> Any:
    found = LeadershipPolicy.read(api_objects.policy(maintenance={"pods": fields})).spec.maintenance
    assert found is not None
    return found.pods


def test_nobodys_restarts_are_watched_unless_asked_for():
    assert LeadershipPolicy.read(api_objects.policy()).spec.maintenance is None
    found = LeadershipPolicy.read(api_objects.policy(maintenance={})).spec.maintenance
    assert found is not None
    assert found.pods is None


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("app=kafka", {"app": "kafka"}),
        ("app.kubernetes.io/name=kafka,role=broker", {"app.kubernetes.io/name": "kafka", "role": "broker"}),
    ],
)
def test_a_selector_is_labels_with_their_values(selector: str, labels: dict[str, str]):
    assert pods(selector=selector).labels == labels


@pytest.mark.parametrize(
    "selector", ["app", "app=", "=kafka", "app==kafka", "app!=kafka", "app=a,", "a=b c=d", "a in (b)"]
)
def test_what_is_none_is_refused_with_an_example_of_one(selector: str):
    with pytest.raises(InvalidObject, match=r"spec.maintenance.pods.selector: .*such as app=kafka,role=broker"):
        pods(selector=selector)


def test_pods_of_a_strimzi_cluster_need_no_selector():
    body = api_objects.policy(maintenance={"pods": {}}, kafka={"strimzi": {"clusterName": "one"}})
    assert LeadershipPolicy.read(body).spec.pods_known()


def test_an_override_reaches_the_core_with_its_purpose():
    said = {"state": "Demoted", "reason": "new disk", "until": "2026-01-02T03:04:05Z", "purpose": "Maintenance"}
    found = BrokerHealth.read(api_objects.health(override=said)).override_()
    assert isinstance(found, Override)
    assert (found.state, found.purpose) == (OverrideState.DEMOTED, Purpose.MAINTENANCE)
    assert not found.accept_unavailable_writes
    accepted = BrokerHealth.read(api_objects.health(override={**said, "acceptUnavailableWrites": True})).override_()
    assert accepted == replace(found, accept_unavailable_writes=True)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"state": "Promoted", "until": api_objects.LATER}, "state: must be Demoted if purpose is Maintenance"),
        ({"state": "Demoted"}, "until: is required if purpose is Maintenance"),
    ],
)
def test_what_contradicts_itself_is_refused_with_the_field(said: dict[str, str], refused: str):
    with pytest.raises(InvalidObject, match=f"spec.override.{refused}"):
        BrokerHealth.read(api_objects.health(override={"reason": "x", "purpose": "Maintenance", **said}))


def test_the_examples_files_are_understood():
    policy = yaml.safe_load((EXAMPLE / "policy.yaml").read_text())
    assert LeadershipPolicy.read(policy).metadata.name == "main"
    patch = yaml.safe_load((EXAMPLE / "drain.yaml").read_text())
    override = BrokerHealth.read(api_objects.health(2, **patch["spec"])).override_()
    assert override is not None
    assert override.purpose is Purpose.MAINTENANCE
