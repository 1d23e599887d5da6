"""Prometheus metrics of a canary prober, in addition to those of every prober. Updated by ``probes.canary``."""

from __future__ import annotations

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics


class CanaryMetrics:
    """Counts and durations of one vantage's requests, in the prober's registry."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self._metrics = metrics
        self._requests = metrics.registry.counter(
            "bellwether_probe_canary_requests",
            "Requests of the canary, by kind (produce, fetch) and result (ok, failed, unmeasured).",
            "broker",
            "kind",
            "result",
        )
        self._seconds = metrics.registry.histogram(
            "bellwether_probe_canary_duration_seconds",
            "Duration of a successful request of the canary, in seconds.",
            "broker",
            "kind",
        )

    def ended(self, broker: int, kind: str, result: str, seconds: float) -> None:
        """One request of a kind: ``ok``, ``failed`` or ``unmeasured``, and its duration."""
        self._requests.labels(broker, kind, result).inc()
        if result == "ok":
            self._seconds.labels(broker, kind).observe(seconds)

    def judged(self, signal: Signal) -> None:
        """A broker's reading."""
        self._metrics.judged(signal)

    def gone(self, broker: int) -> None:
        """The broker is no longer measured: remove its series."""
        for metric in (self._requests, self._seconds):
            metric.remove_by_labels({"broker": str(broker)})
        self._metrics.gone(broker)
