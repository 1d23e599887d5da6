"""What the models refuse, and what they tell the person who wrote it."""

from __future__ import annotations

import pytest

from bellwether.api.v1alpha1.base_model import InvalidObject, timestamp
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from testkit import apiobjects


@pytest.mark.parametrize(("body", "field"), apiobjects.BAD_POLICIES.values(), ids=apiobjects.BAD_POLICIES)
def test_a_bad_policy_is_refused_and_the_field_named(body: apiobjects.Body, field: str):
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(body)
    assert field in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("body", "field"), apiobjects.BAD_HEALTHS.values(), ids=apiobjects.BAD_HEALTHS)
def test_a_bad_broker_health_is_refused_and_the_field_named(body: apiobjects.Body, field: str):
    with pytest.raises(InvalidObject) as refused:
        BrokerHealth.read(body)
    assert field in str(refused.value)


@pytest.mark.parametrize(("body", "field"), apiobjects.UNKNOWN_FIELDS.values(), ids=apiobjects.UNKNOWN_FIELDS)
def test_an_unknown_field_is_refused_and_named(body: apiobjects.Body, field: str):
    model = LeadershipPolicy if body["kind"] == "LeadershipPolicy" else BrokerHealth
    with pytest.raises(InvalidObject, match=field):
        model.read(body)


def test_a_refusal_does_not_repeat_what_was_given():
    body = apiobjects.policy(kafka=apiobjects.kafka(tls={}, sasl={**apiobjects.SASL, "password": "hunter2"}))
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(body)
    assert "spec.kafka.sasl.password" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_all_that_is_wrong_is_said_at_once():
    body = apiobjects.policy(mode="Dance", demotion={"maxBrokers": 0}, election={"batchSize": 0})
    with pytest.raises(InvalidObject) as refused:
        LeadershipPolicy.read(body)
    assert all(f in str(refused.value) for f in ("main", "spec.mode", "spec.demotion", "spec.election.batchSize"))


def test_what_is_no_object_is_refused_without_a_crash():
    for body in ({}, {"metadata": None, "spec": None}, {"metadata": [], "spec": []}, {"metadata": {"name": 7}}):
        with pytest.raises(InvalidObject):
            LeadershipPolicy.read(body)


def test_a_status_of_a_newer_version_is_read_and_its_new_fields_passed_over():
    body = {**apiobjects.policy(), "status": {"clusterId": "abc", "mood": "sunny", "brokers": {"sick": 1, "tired": 2}}}
    status = LeadershipPolicy.read(body).status
    assert status.cluster_id == "abc"
    assert status.brokers is not None
    assert status.brokers.sick == 1


def test_a_body_goes_to_the_api_as_it_was_read():
    body = apiobjects.health(override={"state": "Demoted", "reason": "disk", "until": "2030-01-01T00:00:00Z"})
    assert BrokerHealth.read(body).spec.body()["override"] == {**body["spec"]["override"], "by": ""}


def test_a_time_is_written_as_kubernetes_writes_it():
    until = BrokerHealth.read(
        apiobjects.health(override={"state": "Demoted", "reason": "x", "until": "2030-01-01T02:00:00.25+02:00"})
    ).spec.override
    assert until is not None
    assert until.until is not None
    assert timestamp(until.until) == "2030-01-01T00:00:00Z"
