"""Prometheus metrics of the operator's own work. Labels are bounded: policies, brokers, reasons, sources of signals.

Updated by the policy controllers; served by ``bellwether operator --metrics-port``. A standby process serves only its
own state and the requests that it makes, and nothing about brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import Counter, Gauge

from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.core.quarantine.hold_decision import ENDINGS
from bellwether.core.reasons import Reason, reason_named
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report
from bellwether.core.signals import SourceSignals
from bellwether.telemetry.metrics.client_metrics import ClientMetrics
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, PolicyGauge
from bellwether.telemetry.metrics.policy_series import OF_BROKERS, OF_REBALANCE, OF_REPORT, Table

Patience = Callable[[str, str], float | None]
"""Seconds after which a signal of that type and source is stale; None if the policy does not use it."""

SIGNAL_STATES = ("passing", "failing", "unknown", "stale")
_POLICY = ("namespace", "policy")
_RECONCILE_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class OperatorMetrics:
    """The operator's metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = LabelledRegistry("operator")
        self.exchanges = ClientMetrics(self.registry)
        self._of_report = Table(OF_REPORT, self.registry)
        self._of_brokers = Table(OF_BROKERS, self.registry)
        self._of_rebalance = Table(OF_REBALANCE, self.registry)
        self._reported: dict[tuple[str, str], tuple[BrokerReport, ...]] = {}
        """The broker reports that the series are made of."""
        self._reconciles = self.registry.histogram(
            "bellwether_reconcile_duration_seconds",
            "Duration of one successful reconcile, in seconds.",
            *_POLICY,
            buckets=_RECONCILE_BUCKETS,
        )
        self._started = self._gauge(
            "reconcile_start_timestamp_seconds",
            "Unix time at which the current reconcile started, in seconds; 0 between reconciles. A value that stays"
            " the same is a stuck reconcile.",
        )
        self._finished = self._gauge(
            "reconcile_last_success_timestamp_seconds",
            "Unix time at which the last successful reconcile ended, in seconds.",
        )
        self._errors = self._counter("reconcile_errors", "Failed reconciles, by kind of error.", "kind")
        self._stopped = self._counter(
            "executions_aborted", "Executions that were aborted before their plan was complete, by reason.", "reason"
        )
        self._leading = self._gauge(
            "operator_leading", "1 while this process holds the Lease of the policy's Kafka cluster, 0 on standby."
        )
        self._enforcing = self._policy_gauge(
            "policy_enforcing", "1 while the policy may change Kafka: mode Enforce and not suspended; else 0."
        )
        self._policy_error = self._policy_gauge(
            "policy_error", "1, with the reason why the policy cannot be reconciled; else absent.", "reason"
        )
        self._entries = self._policy_gauge(
            "undo_record_entries", "Partitions in the undo record, including tombstones."
        )
        self._reordered = self._counter("partitions_reordered", "Partitions whose replica order was changed.")
        self._elected = self._counter("leaders_elected", "Leaders moved by preferred election.")
        self._conflicts = self._counter(
            "replica_set_conflicts", "Replica sets that another tool changed while Bellwether changed their order."
        )
        self._age = self._policy_gauge(
            "signal_age_seconds",
            "Seconds since the last Lease renewal of the source, at the last reconcile; -1 if never renewed.",
            "type",
            "source",
        )
        self._signals = self._policy_gauge(
            "signals",
            "Signals by state: passing, failing, unknown, or stale (its prober's Lease is not renewed).",
            "type",
            "state",
        )
        self._quarantines_started = self._counter("quarantines_started", "Orders to hold a broker.")
        self._quarantines_ended = self._counter(
            "quarantines_ended", "Ended orders to hold a broker, by reason.", "reason"
        )
        self._by_policy = (
            self._of_report,
            self._of_brokers,
            self._of_rebalance,
            self._enforcing,
            self._policy_error,
            self._entries,
            self._age,
            self._signals,
        )

    def begin_reconcile(self, namespace: str, policy: str, timestamp: float) -> None:
        """A reconcile starts; ``timestamp`` is Unix time in seconds."""
        self._started.labels(namespace, policy).set(timestamp)

    def end_reconcile(self, namespace: str, policy: str) -> None:
        """No reconcile is running any more."""
        self._started.labels(namespace, policy).set(0)

    def record_reconcile(
        self, namespace: str, policy: str, seconds: float, report: Report, entries: int, acts: bool = True
    ) -> None:
        """A reconcile succeeded. ``acts``: the policy may change Kafka."""
        labels = (namespace, policy)
        self._reconciles.labels(*labels).observe(seconds)
        self._finished.labels(*labels).set(report.now.timestamp())
        ready = [c.reason for c in report.conditions if c.type == "Ready"]  # one that only observes is reconciled, too
        self._policy_error.set_series(namespace, policy, {(str(r),): 1.0 for r in ready if r is Reason.CLUSTER_CLAIMED})
        self._enforcing.set_series(namespace, policy, {(): acts})
        self._entries.set_series(namespace, policy, {(): entries})
        self._reordered.labels(*labels).inc(report.result.reordered)
        self._elected.labels(*labels).inc(report.result.elected)
        self._conflicts.labels(*labels).inc(len(report.result.touched))
        if report.result.stopped is not None:
            self._stopped.labels(*labels, str(report.result.stopped.reason)).inc()
        self._of_report.update(namespace, policy, report)
        if self._reported.get(labels) is not report.brokers:
            self._reported[labels] = report.brokers
            self._of_brokers.update(namespace, policy, report.brokers)
        for order in (b.quarantine_order for b in report.brokers if b.quarantine_order is not None):
            for reason in ENDINGS:  # start at 0: Prometheus does not see an increase of a missing series
                self._quarantines_ended.labels(*labels, str(reason))
            if order.since == report.now:
                self._quarantines_started.labels(*labels).inc()
            if order.ended_at == report.now:
                self._quarantines_ended.labels(*labels, str(reason_named(order.reason))).inc()

    def count_failure(self, namespace: str, policy: str, kind: str) -> None:
        """A reconcile ended with an error of that kind."""
        self._errors.labels(namespace, policy, kind).inc()

    def troubled(self, namespace: str, policy: str, reason: Reason) -> None:
        """The policy cannot be reconciled, and why; until a reconcile succeeds or another process leads."""
        self._policy_error.set_series(namespace, policy, {(str(reason),): 1.0})

    def leading(self, namespace: str, policy: str, held: bool) -> None:
        """Whether this process holds the Lease."""
        labels = (namespace, policy)
        self._leading.labels(*labels).set(held)
        if held:
            # Counters start at 0: Prometheus does not see an increase of a series that did not exist.
            for counter in (self._reordered, self._elected, self._conflicts, self._quarantines_started):
                counter.labels(*labels)
        else:
            self._forget_series(namespace, policy)

    def rebalance(self, namespace: str, policy: str, now: LeaderRebalanceStatus | None) -> None:
        """State of the rebalance by load; None if the policy has none."""
        if now is None:
            self._of_rebalance.forget(namespace, policy)
        else:
            self._of_rebalance.update(namespace, policy, now)

    def export_signal_ages(
        self, namespace: str, policy: str, sources: Iterable[SourceSignals], patience: Patience
    ) -> None:
        """Age of each source and count of signals by state; ``patience``: maximum ages by the policy."""
        ages: dict[tuple[str, ...], float] = {}
        states: dict[tuple[str, ...], int] = {}
        for said in sources:
            enough = patience(said.type, said.source)
            if enough is None:
                continue  # the policy does not judge by it
            kind, source = str(said.type), (str(said.type), said.source)
            age = -1.0 if said.age_seconds is None else said.age_seconds
            last = ages.get(source, -1.0)
            ages[source] = age if last < 0 else last if age < 0 else min(last, age)
            if (kind, "stale") not in states:
                states |= {(kind, state): 0 for state in SIGNAL_STATES}
            stale = age < 0 or age > enough
            for reading, count in said.readings.items():
                states[kind, "stale" if stale else str(reading).lower()] += count
        self._age.set_series(namespace, policy, ages)
        self._signals.set_series(namespace, policy, states)

    def forget(self, namespace: str, policy: str) -> None:
        """Drop all series of a deleted policy."""
        self._forget_series(namespace, policy)
        self.registry.remove_series(namespace=namespace, policy=policy)

    def _forget_series(self, namespace: str, policy: str) -> None:
        self._reported.pop((namespace, policy), None)
        for group in self._by_policy:
            group.forget(namespace, policy)

    def _gauge(self, name: str, text: str) -> Gauge:
        return self.registry.gauge(f"bellwether_{name}", text, *_POLICY)

    def _policy_gauge(self, name: str, text: str, *labels: str) -> PolicyGauge:
        return PolicyGauge(f"bellwether_{name}", text, labels, self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return self.registry.counter(f"bellwether_{name}", text, *_POLICY, *labels)
