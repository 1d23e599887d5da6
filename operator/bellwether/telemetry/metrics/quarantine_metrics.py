"""Prometheus metrics of quarantines: ordered, in force, and how they ended.

Updated by ``telemetry.metrics.operator_metrics`` at the end of a reconcile. Only brokers with an active or recently
ended order, or with a process that is held, have series.
"""

from __future__ import annotations

from bellwether.core.quarantine.hold_decision import ENDINGS
from bellwether.core.reasons import reason_named
from bellwether.core.reporting.report import Report
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, PolicyGauge

_POLICY = ("namespace", "policy")


class QuarantineMetrics:
    """Orders and holds by broker, and counts of ended orders by reason."""

    def __init__(self, registry: LabelledRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> PolicyGauge:
            return PolicyGauge(f"bellwether_broker_quarantine_{name}", text, ("broker", *labels), registry)

        self._ordered = gauge(
            "ordered",
            "1 while an order to hold the broker is active, 0 for spec.quarantine.limitSeconds after it; else absent.",
        )
        self._held = gauge(
            "held",
            "1 while the broker's quarantine agent reports that it holds the broker, 0 while it does not and an"
            " order is active or ended recently; else absent.",
        )
        self._since = gauge(
            "since_timestamp_seconds",
            "Unix time at which the active order to hold the broker was given, in seconds; absent without one.",
        )
        self._until = gauge(
            "until_timestamp_seconds",
            "Unix time at which the active order to hold the broker ends, in seconds; absent without one.",
        )
        self._ended_lately = gauge(
            "ended",
            "1, with the reason why the broker's last quarantine ended, for spec.quarantine.limitSeconds after it.",
            "reason",
        )
        self._gauges = (self._ordered, self._held, self._since, self._until, self._ended_lately)
        self._started = registry.counter("bellwether_quarantines_started", "Orders to hold a broker.", *_POLICY)
        self._ended = registry.counter(
            "bellwether_quarantines_ended", "Ended orders to hold a broker, by reason.", *_POLICY, "reason"
        )

    def init_counters(self, namespace: str, policy: str) -> None:
        """This process leads the policy: its counter starts at 0."""
        self._started.labels(namespace, policy)

    def update(self, namespace: str, policy: str, report: Report) -> None:
        """The quarantines at the end of a reconcile; count those that started or ended in it."""
        about = [(str(b.broker), b) for b in report.brokers if b.quarantine_order is not None or b.held]
        orders = [(broker, b.quarantine_order) for broker, b in about if b.quarantine_order is not None]
        standing = [(broker, order) for broker, order in orders if order.active]
        self._held.set_series(namespace, policy, {(broker,): float(b.held) for broker, b in about})
        ordered = {
            (broker,): float(b.quarantine_order is not None and b.quarantine_order.active) for broker, b in about
        }
        self._ordered.set_series(namespace, policy, ordered)
        self._since.set_series(namespace, policy, {(broker,): order.since.timestamp() for broker, order in standing})
        self._until.set_series(namespace, policy, {(broker,): order.until.timestamp() for broker, order in standing})
        ended = {(broker, str(reason_named(order.reason))): 1.0 for broker, order in orders if not order.active}
        self._ended_lately.set_series(namespace, policy, ended)
        for _, order in orders:
            for reason in ENDINGS:  # start at 0: Prometheus does not see an increase of a missing series
                self._ended.labels(namespace, policy, str(reason))
            if order.since == report.now:
                self._started.labels(namespace, policy).inc()
            if order.ended_at == report.now:
                self._ended.labels(namespace, policy, str(reason_named(order.reason))).inc()

    def forget(self, namespace: str, policy: str) -> None:
        """Remove the brokers' series of a policy that another process leads, or that was deleted."""
        for gauge in self._gauges:
            gauge.forget(namespace, policy)

    def remove_counters(self, namespace: str, policy: str) -> None:
        """Remove the counters of a deleted policy, too."""
        for counter in (self._started, self._ended):
            counter.remove_by_labels({"namespace": namespace, "policy": policy})
