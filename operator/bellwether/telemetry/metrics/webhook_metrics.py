"""Prometheus metrics of the Alertmanager webhook, in addition to those of every prober.

Told by ``probes.alertmanager.alert_receiver`` and ``adapters.webhook_server`` what comes in. Labels are bounded: no
name of an alert is one.
"""

from __future__ import annotations

from prometheus_client import Counter

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics


class WebhookMetrics:
    """Counts of one webhook, in the prober's registry."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self._metrics = metrics
        self._requests = Counter(
            "bellwether_probe_webhook_requests",
            "Requests to the webhook, by status of the answer.",
            ["status"],
            registry=metrics.registry,
        )
        self._alerts = Counter(
            "bellwether_probe_webhook_alerts",
            "Alerts in notifications that were understood, by what became of them: firing, resolved, or why they were"
            " passed over (unlisted, without broker, unknown broker).",
            ["result"],
            registry=metrics.registry,
        )

    def answered(self, status: int) -> None:
        """One request."""
        self._requests.labels(status).inc()

    def took(self, what: str) -> None:
        """One alert."""
        self._alerts.labels(what).inc()

    def judged(self, signal: Signal) -> None:
        """An alert's reading on a broker: the broker's series has the last one."""
        self._metrics.judged(signal)

    def gone(self, broker: int) -> None:
        """The broker exists no longer: its series go."""
        self._metrics.gone(broker)
