"""What is asked of Kafka and of Kubernetes, and what comes of it."""

from __future__ import annotations

from bellwether.telemetry.metrics.client_metrics import ClientMetrics
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry

MINE = {"namespace": "kafka", "policy": "main", "request": "ElectLeaders"}


def test_only_an_answer_has_a_time() -> None:
    registry = LabelledRegistry("operator")
    noted = ClientMetrics(registry)
    noted.kafka("kafka", "main", "ElectLeaders", "ok", 0.2)
    noted.kafka("kafka", "main", "ElectLeaders", "Request", 2.0)
    assert registry.get_sample_value("bellwether_kafka_requests_total", {**MINE, "outcome": "ok"}) == 1
    assert registry.get_sample_value("bellwether_kafka_requests_total", {**MINE, "outcome": "Request"}) == 1
    assert registry.get_sample_value("bellwether_kafka_request_duration_seconds_count", MINE) == 1
    assert registry.get_sample_value("bellwether_kafka_request_duration_seconds_sum", MINE) == 0.2


def test_request_to_kubernetes_takes_its_time_whatever_comes_of_it() -> None:
    registry = LabelledRegistry("operator")
    noted = ClientMetrics(registry)
    noted.kubernetes("patch", "brokerhealths", "ok", 0.1)
    noted.kubernetes("patch", "brokerhealths", "unavailable", 5.0)
    labels = {"verb": "patch", "resource": "brokerhealths", "outcome": "unavailable"}
    assert registry.get_sample_value("bellwether_kubernetes_requests_total", labels) == 1
    assert registry.get_sample_value("bellwether_kubernetes_request_duration_seconds_sum", {"verb": "patch"}) == 5.1


def test_a_policy_that_is_gone_takes_its_requests_along() -> None:
    registry = LabelledRegistry("operator")
    noted = ClientMetrics(registry)
    noted.kafka("kafka", "main", "Metadata", "ok", 0.2)
    noted.kafka("kafka", "other", "Metadata", "ok", 0.2)
    registry.remove_series(namespace="kafka", policy="main")
    policies = {s.labels["policy"] for metric in registry.collect() for s in metric.samples if "policy" in s.labels}
    assert policies == {"other"}


def test_the_end_of_certificates_is_exported_by_owner() -> None:
    registry = LabelledRegistry("operator")
    noted = ClientMetrics(registry)
    name, own = "bellwether_kafka_certificate_expiry_timestamp_seconds", {"namespace": "kafka", "policy": "main"}
    noted.certificate("kafka", "main", "own", 100.0)
    noted.certificate("kafka", "main", "broker", 200.0)
    assert registry.get_sample_value(name, {**own, "certificate": "own"}) == 100.0
    noted.certificate("kafka", "main", "own", None)
    assert registry.get_sample_value(name, {**own, "certificate": "own"}) is None
    assert registry.get_sample_value(name, {**own, "certificate": "broker"}) == 200.0
    registry.remove_series(namespace="kafka", policy="main")
    assert registry.get_sample_value(name, {**own, "certificate": "broker"}) is None
