"""Prometheus metrics of the Prometheus prober's queries, in addition to those of every prober.

Updated by ``probes.prometheus.prometheus_probe``. Labels are bounded: a policy has at most 32
rules.
"""

from __future__ import annotations

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.probe_metrics import READING_VALUES, ProbeMetrics


class QueryMetrics:
    """Counts and durations of one policy's queries, in the prober's registry."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self._queries = metrics.registry.counter(
            "bellwether_probe_queries",
            "Queries to Prometheus, by rule and result (ok, failed, timeout).",
            "rule",
            "result",
        )
        self._seconds = metrics.registry.histogram(
            "bellwether_probe_query_duration_seconds",
            "Duration of a successful query to Prometheus, in seconds.",
            "rule",
        )
        self._reading = metrics.registry.gauge(
            "bellwether_probe_rule_reading",
            "Reading of a broker by a rule: 1 passing, 0 failing, -1 unknown.",
            "rule",
            "broker",
        )

    def asked(self, rule: str, result: str, seconds: float) -> None:
        """One query."""
        self._queries.labels(rule, result).inc()
        if result == "ok":
            self._seconds.labels(rule).observe(seconds)

    def judged(self, signal: Signal) -> None:
        """A broker's reading."""
        self._reading.labels(signal.source, signal.broker).set(READING_VALUES[signal.reading])

    def gone(self, rule: str, broker: int | None = None) -> None:
        """A rule was removed, or a broker is no longer known: remove their series."""
        if broker is not None:
            self._reading.remove_by_labels({"rule": rule, "broker": str(broker)})
            return
        for metric in (self._queries, self._seconds, self._reading):
            metric.remove_by_labels({"rule": rule})
