"""Prometheus metrics of quarantines: ordered, in force, and how they ended.

Told by ``telemetry.metrics.operator_metrics`` at the end of a turn. Only brokers with an order that stands or ended
lately, or that their quarantine agents have paused, have series; so a policy that quarantines nobody has next to none.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from bellwether.core.quarantine.pause_decision import ENDINGS
from bellwether.core.reasons import reason_named
from bellwether.core.reporting.report import Report
from bellwether.telemetry.metrics.metric_registry import PolicyGauge

_POLICY = ("namespace", "policy")


class QuarantineMetrics:
    """Orders and pauses by broker, and counts of orders by what ended them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> PolicyGauge:
            return PolicyGauge(f"bellwether_broker_quarantine_{name}", text, ("broker", *labels), registry)

        self._ordered = gauge(
            "ordered",
            "1 while an order to pause the broker stands, 0 for spec.quarantine.limitSeconds after it; else absent.",
        )
        self._paused = gauge(
            "paused",
            "1 while the agent beside the broker says that it has paused it, 0 while it does not though an order"
            " stands or ended lately; else absent.",
        )
        self._since = gauge(
            "since_timestamp_seconds", "When the order to pause the broker was given; absent while none stands."
        )
        self._until = gauge(
            "until_timestamp_seconds",
            "When the order to pause the broker ends at the latest; absent while none stands.",
        )
        self._ended_lately = gauge(
            "ended",
            "1, with the reason why the broker's last quarantine ended, for spec.quarantine.limitSeconds after that.",
            "reason",
        )
        self._gauges = (self._ordered, self._paused, self._since, self._until, self._ended_lately)
        self._begun = Counter(
            "bellwether_quarantines_begun", "Orders to pause a broker that were given.", _POLICY, registry=registry
        )
        self._ended = Counter(
            "bellwether_quarantines_ended",
            "Orders to pause a broker that ended, by reason.",
            (*_POLICY, "reason"),
            registry=registry,
        )

    def led(self, namespace: str, policy: str) -> None:
        """Somebody leads the policy: its count stands at 0 before it rises."""
        self._begun.labels(namespace, policy)

    def stand(self, namespace: str, policy: str, report: Report) -> None:
        """How quarantines stand at the end of a turn; what began or ended in it is counted."""
        about = [(str(b.broker), b) for b in report.brokers if b.quarantine_order is not None or b.paused]
        orders = [(broker, b.quarantine_order) for broker, b in about if b.quarantine_order is not None]
        standing = [(broker, order) for broker, order in orders if order.active]
        self._paused.tell(namespace, policy, {(broker,): float(b.paused) for broker, b in about})
        ordered = {
            (broker,): float(b.quarantine_order is not None and b.quarantine_order.active) for broker, b in about
        }
        self._ordered.tell(namespace, policy, ordered)
        self._since.tell(namespace, policy, {(broker,): order.since.timestamp() for broker, order in standing})
        self._until.tell(namespace, policy, {(broker,): order.until.timestamp() for broker, order in standing})
        ended = {(broker, str(reason_named(order.reason))): 1.0 for broker, order in orders if not order.active}
        self._ended_lately.tell(namespace, policy, ended)
        for _, order in orders:
            for reason in ENDINGS:  # at 0 before they rise, as a rise from nothing is none to Prometheus
                self._ended.labels(namespace, policy, str(reason))
            if order.since == report.now:
                self._begun.labels(namespace, policy).inc()
            if order.ended_at == report.now:
                self._ended.labels(namespace, policy, str(reason_named(order.reason))).inc()

    def forget(self, namespace: str, policy: str) -> None:
        """Say nothing of the brokers of a policy that another process leads, or that is gone."""
        for gauge in self._gauges:
            gauge.forget(namespace, policy)

    def drop(self, namespace: str, policy: str) -> None:
        """Forget the counts of a policy that is gone, too."""
        for counter in (self._begun, self._ended):
            counter.remove_by_labels({"namespace": namespace, "policy": policy})
