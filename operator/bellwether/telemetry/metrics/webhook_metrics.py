"""Prometheus metrics of the Alertmanager webhook, in addition to those of every prober.

Updated by ``probes.alertmanager.alert_receiver`` and ``adapters.webhook_server``. Labels are bounded: alert names are
not a label.
"""

from __future__ import annotations

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics


class WebhookMetrics:
    """Counts of one webhook, in the prober's registry."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self._metrics = metrics
        self._requests = metrics.registry.counter(
            "bellwether_probe_webhook_requests", "Requests to the webhook, by HTTP status of the response.", "status"
        )
        self._alerts = metrics.registry.counter(
            "bellwether_probe_webhook_alerts",
            "Alerts in valid notifications, by result: firing, resolved, or ignored because the policy does not name"
            " the alert (unlisted), its labels do not match (other_cluster), or its broker is missing (no_broker)"
            " or unknown (unknown_broker).",
            "result",
        )

    def answered(self, status: int) -> None:
        """One request."""
        self._requests.labels(status).inc()

    def took(self, what: str) -> None:
        """One alert."""
        self._alerts.labels(what).inc()

    def judged(self, signal: Signal) -> None:
        """An alert's reading of a broker; the series has the last one."""
        self._metrics.judged(signal)

    def gone(self, broker: int) -> None:
        """The broker no longer exists: remove its series."""
        self._metrics.gone(broker)
