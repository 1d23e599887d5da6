"""Prometheus metrics of requests to Kafka brokers and to the Kubernetes API.

Updated by the adapters through plain functions; served with the operator's other metrics. Labels are bounded: request
names, the stages at which a connection fails, and the kinds of Kubernetes objects.
"""

from __future__ import annotations

from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, TimedResults


class ClientMetrics:
    """Counts and durations of requests, by outcome."""

    def __init__(self, registry: LabelledRegistry) -> None:
        self._kafka = TimedResults(
            registry,
            (
                "bellwether_kafka_requests",
                "Requests to brokers, including opened connections (Open), by outcome: ok, the stage that failed"
                " (Connect, Tls, Sasl, Request), or Timeout if TLS or SASL got no answer in time.",
            ),
            ("bellwether_kafka_request_duration_seconds", "Duration of a successful request to a broker, in seconds."),
            "namespace policy request",
            "outcome",
        )
        self.certificates = registry.gauge(
            "bellwether_kafka_certificate_expiry_timestamp_seconds",
            "Unix time of a certificate's expiry, in seconds: the last of the trusted CAs to expire (authority), the"
            " operator's client certificate (own), the first broker certificate to expire (broker).",
            "namespace policy certificate",
        )
        self.kubernetes_requests = registry.counter(
            "bellwether_kubernetes_requests",
            "Requests to the Kubernetes API, by outcome: ok, conflict (changed by another client), not_found, refused"
            " (forbidden or invalid), unavailable (no answer, overload).",
            "verb resource outcome",
        )
        self.kubernetes_seconds = registry.histogram(
            "bellwether_kubernetes_request_duration_seconds",
            "Duration of a request to the Kubernetes API, in seconds, with any outcome.",
            "verb",
        )

    def kafka(self, namespace: str, policy: str, request: str, outcome: str, seconds: float) -> None:
        """One request to a broker of a policy's cluster."""
        self._kafka.add(namespace, policy, request, outcome, seconds=seconds)

    def certificate(self, namespace: str, policy: str, which: str, ends: float | None) -> None:
        """When a certificate expires (Unix time); None if it no longer exists."""
        if ends is None:
            self.certificates.remove_by_labels({"namespace": namespace, "policy": policy, "certificate": which})
        else:
            self.certificates.labels(namespace, policy, which).set(ends)

    def kubernetes(self, verb: str, resource: str, outcome: str, seconds: float) -> None:
        """One request to the Kubernetes API."""
        self.kubernetes_requests.labels(verb, resource, outcome).inc()
        self.kubernetes_seconds.labels(verb).observe(seconds)
