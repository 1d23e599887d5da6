"""What the models refuse, and what they tell the person who wrote it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bellwether.api.v1alpha1.base_model import InvalidObject, explain, timestamp
from bellwether.api.v1alpha1.broker_health import BrokerHealth, Override
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.schema import crd_manifests
from testkit.kubernetes import api_objects, bad_objects
from testkit.messages import assert_wording

KINDS = {kind.name: kind.model for kind in crd_manifests.KINDS}
BAD = {
    f"{name} in {body['kind']}": (body, field)
    for objects in (
        bad_objects.BAD_POLICIES,
        bad_objects.BAD_SOURCES,
        bad_objects.BAD_REBALANCES,
        bad_objects.BAD_HEALTHS,
        bad_objects.UNKNOWN_FIELDS,
    )
    for name, (body, field) in objects.items()
}


@pytest.mark.parametrize(("body", "field"), BAD.values(), ids=BAD)
def test_a_bad_object_is_refused_and_the_field_named(body: api_objects.Body, field: str):
    with pytest.raises(InvalidObject) as refused:
        KINDS[body["kind"]].read(body)
    assert field in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_refusal_does_not_repeat_what_was_given():
    body = api_objects.policy(kafka=api_objects.kafka(tls={}, sasl={**api_objects.SASL, "password": "hunter2"}))
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(body)
    assert "spec.kafka.sasl.password" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"promotion": {"stabilisationSeconds": 5}},
            "promotion.stabilisationSeconds: no such field (did you mean stabil",
        ),
        (
            {"kafka": {"bootstrapServer": ["h:1"]}},
            "kafka.bootstrapServer: no such field (did you mean bootstrapServers?)",
        ),
        (
            {"detection": {"signalSources": [{"name": "wear", "kind": 1}]}},
            "signalSources[0].kind: no such field: remove it",
        ),
        ({"mode": "enforce"}, "mode: must be 'Observe' or 'Enforce' (did you mean Enforce?)"),
        ({"mode": "Dance"}, "mode: must be 'Observe' or 'Enforce'"),
        ({"mode": None}, "mode: must be 'Observe' or 'Enforce'"),
        ({"election": {"batchSize": 9000}}, "election.batchSize: is 9000: must be at most 5000"),
        ({"election": {"batchSize": 0}}, "election.batchSize: is 0: must be at least 1"),
        ({"election": {"batchSize": "5"}}, "election.batchSize: must be an integer, without quotes"),
        (
            {"promotion": {"stabilizationSeconds": "1m"}},
            "promotion.stabilizationSeconds: must be an integer of seconds, without a unit",
        ),
        ({"suspend": "no"}, "suspend: must be true or false, without quotes"),
        ({"kafka": {"strimzi": {}}}, "kafka.strimzi.clusterName: is required: set it"),
        ({"kafka": ["h:1"]}, "kafka: must be an object with fields"),
        ({"kafka": {"bootstrapServers": []}}, "kafka.bootstrapServers: has 0 entries: at least 1 must be set"),
        ({"kafka": {"bootstrapServers": "h:1"}}, "kafka.bootstrapServers: must be a list"),
        ({"kafka": {"strimzi": {"clusterName": 7}}}, "kafka.strimzi.clusterName: must be a string: put it in quotes"),
        ({"kafka": {"strimzi": {"clusterName": "x" * 254}}}, "clusterName: is too long: at most 253 characters"),
        ({"kafka": {"strimzi": {"clusterName": ""}}}, "clusterName: is too short: at least 1 characters"),
    ],
)
def test_a_message_names_the_field_and_the_remedy(spec: dict[str, Any], message: str):
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(api_objects.policy(**spec))
    assert message in str(refused.value)


def test_unknown_field_is_named_without_model():
    with pytest.raises(ValidationError) as refused:
        Override.model_validate({"state": "Demoted", "reason": "x", "untill": "x"})
    assert_wording(explain(refused.value), explain(refused.value, Override))


def test_all_that_is_wrong_is_said_at_once():
    body = api_objects.policy(mode="Dance", demotion={"maxBrokers": 0}, election={"batchSize": 0})
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(body)
    assert all(f in str(refused.value) for f in ("main", "spec.mode", "spec.demotion", "spec.election.batchSize"))


def test_what_is_no_object_is_refused_without_a_crash():
    for body in ({}, {"metadata": None, "spec": None}, {"metadata": [], "spec": []}, {"metadata": {"name": 7}}):
        with pytest.raises(InvalidObject):
            LeadershipPolicy.read(body)


def test_unknown_fields_of_status_are_ignored():
    body = {**api_objects.policy(), "status": {"clusterId": "abc", "mood": "sunny", "brokers": {"sick": 1, "tired": 2}}}
    status = LeadershipPolicy.read(body).status
    assert status.cluster_id == "abc"
    assert status.brokers is not None
    assert status.brokers.sick == 1


def test_a_body_goes_to_the_api_as_it_was_read():
    body = api_objects.health(override={"state": "Demoted", "reason": "disk", "until": "2030-01-01T00:00:00Z"})
    assert BrokerHealth.read(body).spec.body()["override"] == {
        **body["spec"]["override"],
        "by": "",
        "acceptUnavailableWrites": False,
    }


def test_a_time_is_written_as_kubernetes_writes_it():
    until = BrokerHealth.read(
        api_objects.health(override={"state": "Demoted", "reason": "x", "until": "2030-01-01T02:00:00.25+02:00"})
    ).spec.override
    assert until is not None
    assert until.until is not None
    assert timestamp(until.until) == "2030-01-01T00:00:00Z"


REFERENCE = {"name": "a", "key": "b"}
PROMETHEUS = {"url": "https://p", "rules": [{"name": "r", "query": "up", "threshold": "1"}]}


def detection(kind: str, **fields: Any) -> dict[str, Any]:
    return {"detection": {kind: fields}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            detection("prometheus", **PROMETHEUS),
            "spec.detection.prometheus: has become a SignalSource: write {apiVersion: bellwether.dev/v1alpha1, kind:"
            " SignalSource, metadata: {name: NAME}, spec: {prometheus: THESE FIELDS}} in this namespace, and"
            " signalSources: [{name: NAME}] here",
        ),
        (
            {"detection": {"plugins": [{"type": "Wear"}]}},
            "spec: {plugin: ONE OF THESE ENTRIES}} in this namespace, and signalSources: [{name: NAME}] here",
        ),
        (detection("alertmanager", alerts=["A"]), "spec.detection.alertmanager: has become the preset FiringAlerts"),
        (detection("externalReachability", listener="A"), "externalReachability.listener: has become listeners: set"),
    ],
)
def test_a_removed_field_is_named_with_the_remedy(spec: dict[str, Any], message: str):
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(api_objects.policy(**spec))
    assert message in str(refused.value)


def test_message_names_whole_fields_and_how_many_more_there_are() -> None:
    wrong = {f"field{n}\x1b": 1 for n in range(500)} | {"x" * 5_000: 1}
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(api_objects.policy(**wrong))
    said = str(refused.value)
    assert len(said) < 400
    assert said.startswith("LeadershipPolicy main: spec.field0?: no such field")
    count = said.count("no such field")
    assert said.endswith(f"; and {501 - count} more")
