"""Prometheus metrics of the Alertmanager webhook, in addition to those of every prober.

Updated by ``probes.alertmanager`` and ``adapters.webhook_server``. Labels are bounded: alert names are
not a label.
"""

from __future__ import annotations

from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

_ALERTS = (
    "bellwether_probe_webhook_alerts",
    "Alerts in valid notifications, by result: firing, resolved, or ignored because the policy does not name the alert"
    " (unlisted), its labels do not match (other_cluster), or its broker is missing (no_broker) or unknown"
    " (unknown_broker); without a policy: because no policy claims it (unclaimed).",
    "result",
)


class WebhookServerMetrics:
    """Counts of a webhook that serves several policies, in the registry of its process."""

    def __init__(self, registry: LabelledRegistry) -> None:
        self._requests = registry.counter(
            "bellwether_probe_webhook_requests", "Requests to the webhook, by HTTP status of the response.", "status"
        )
        self._alerts = registry.counter(*_ALERTS)

    def answered(self, status: int) -> None:
        """One request."""
        self._requests.labels(status).inc()

    def unclaimed(self, alerts: int) -> None:
        """So many alerts concern no policy."""
        if alerts:
            self._alerts.labels("unclaimed").inc(alerts)


class WebhookMetrics:
    """Counts of the alerts of one policy, in its prober's registry."""

    def __init__(self, metrics: ProbeMetrics) -> None:
        self._metrics = metrics
        self._alerts = metrics.registry.counter(*_ALERTS)

    def took(self, what: str) -> None:
        """One alert."""
        self._alerts.labels(what).inc()

    def judged(self, signal: Signal) -> None:
        """An alert's reading of a broker; the series has the last one."""
        self._metrics.judged(signal)

    def gone(self, broker: int) -> None:
        """The broker no longer exists: remove its series."""
        self._metrics.gone(broker)
