"""Prometheus metrics of requests to Kafka brokers and to the Kubernetes API.

Told by the adapters through plain functions; served with the operator's other metrics. Labels are bounded: the kinds of
requests that we make, the stages at which a conversation breaks, the kinds of objects that we handle.
"""

from __future__ import annotations

from collections.abc import Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from bellwether.telemetry.metrics.metric_registry import LATENCY_BUCKETS

_POLICY = ("namespace", "policy")


class ExchangeMetrics:
    """Counts and times of requests, by what came of them."""

    def __init__(self, registry: CollectorRegistry, gone: Collection[tuple[str, str]] = frozenset()) -> None:
        """``gone`` holds policies (namespace, name) of which nothing is told any more: their loops may still ask."""
        self._gone = gone
        self.kafka_requests = Counter(
            "bellwether_kafka_requests",
            "Requests to brokers, opening a connection (Open) among them, by outcome: ok when an answer came, else the"
            " stage at which the conversation broke (Connect, Tls, Sasl, Request); Silent where TLS or SASL got no"
            " answer in time.",
            (*_POLICY, "request", "outcome"),
            registry=registry,
        )
        self.kafka_seconds = Histogram(
            "bellwether_kafka_request_seconds",
            "Time until a broker answered a request.",
            (*_POLICY, "request"),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.certificates = Gauge(
            "bellwether_kafka_certificate_expiry_timestamp_seconds",
            "When a certificate ends: the last of the trusted authorities' (authority), the operator's own (own), the"
            " first of the brokers' that were seen (broker).",
            (*_POLICY, "certificate"),
            registry=registry,
        )
        self.kubernetes_requests = Counter(
            "bellwether_kubernetes_requests",
            "Requests to the Kubernetes API, by outcome: ok, conflict (somebody else was first), absent, refused,"
            " unavailable (no answer, overloaded).",
            ("verb", "resource", "outcome"),
            registry=registry,
        )
        self.kubernetes_seconds = Histogram(
            "bellwether_kubernetes_request_seconds",
            "Time of a request to the Kubernetes API, whatever came of it.",
            ("verb",),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )

    def kafka(self, namespace: str, policy: str, request: str, outcome: str, seconds: float) -> None:
        """One request to a broker of a policy's cluster."""
        if (namespace, policy) in self._gone:
            return
        self.kafka_requests.labels(namespace, policy, request, outcome).inc()
        if outcome == "ok":
            self.kafka_seconds.labels(namespace, policy, request).observe(seconds)

    def certificate(self, namespace: str, policy: str, which: str, ends: float | None) -> None:
        """When a certificate ends (Unix time); None where there is none any more."""
        if (namespace, policy) in self._gone:
            return
        if ends is None:
            self.certificates.remove_by_labels({"namespace": namespace, "policy": policy, "certificate": which})
        else:
            self.certificates.labels(namespace, policy, which).set(ends)

    def kubernetes(self, verb: str, resource: str, outcome: str, seconds: float) -> None:
        """One request to the Kubernetes API."""
        self.kubernetes_requests.labels(verb, resource, outcome).inc()
        self.kubernetes_seconds.labels(verb).observe(seconds)

    def forget(self, namespace: str, policy: str) -> None:
        """Drop everything about a policy that is gone."""
        for metric in (self.kafka_requests, self.kafka_seconds, self.certificates):
            metric.remove_by_labels({"namespace": namespace, "policy": policy})
