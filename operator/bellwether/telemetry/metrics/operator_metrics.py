"""Prometheus metrics of the operator's own work. Labels are bounded: policies, brokers, reasons, sources of signals.

Updated by the policy controllers; served by ``bellwether operator --metrics-port``. A standby process serves only its
own state and the requests that it makes, and nothing about brokers.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from bellwether.core.doctor.risks import Risk
from bellwether.core.planning.preferred_election import PreferredElectionStatus
from bellwether.core.reasons import Reason
from bellwether.core.rebalance.lifecycle import RebalanceRun
from bellwether.core.reporting.report import Report
from bellwether.core.signals import SourceSignals
from bellwether.telemetry.metrics.broker_metrics import BrokerMetrics, Patience
from bellwether.telemetry.metrics.client_metrics import ClientMetrics
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, PolicyGauge
from bellwether.telemetry.metrics.quarantine_metrics import QuarantineMetrics
from bellwether.telemetry.metrics.rebalance_metrics import RebalanceMetrics

_POLICY = ("namespace", "policy")
_RECONCILE_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

MOST_GONE = 10_000
"""Deleted policies that are remembered, because their controllers may still report."""


class OperatorMetrics:
    """The operator's metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = LabelledRegistry("operator")
        self._gone: dict[tuple[str, str], None] = {}  # the oldest first
        self.exchanges = ClientMetrics(self.registry, self._gone)
        self._brokers = BrokerMetrics(self.registry)
        self._quarantines = QuarantineMetrics(self.registry)
        self._rebalances = RebalanceMetrics(self.registry)
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
        self._epoch = self._gauge("epoch", "Epoch of the undo record; each new Lease holder raises it.")
        self._enforcing = self._gauge(
            "policy_enforcing", "1 while the policy may change Kafka: mode Enforce and not suspended; else 0."
        )
        self._policy_error = self._policy_gauge(
            "policy_error", "1, with the reason why the policy cannot be reconciled; else absent.", "reason"
        )
        self._conditions = self._policy_gauge(
            "policy_condition", "1 while the condition of the policy is True, 0 while it is False; else absent.", "type"
        )
        self._idle = self._gauge("reconcile_idle", "1 if the last reconcile had nothing to change in Kafka, else 0.")
        self._moves_blocked = self._policy_gauge(
            "partition_moves_blocked", "Partitions whose leader move is blocked, by reason.", "reason"
        )
        self._brokers_blocked = self._policy_gauge(
            "brokers_action_blocked", "Brokers whose demotion or promotion is blocked, by reason.", "reason"
        )
        self._partitions = self._gauge("partitions", "Partitions of the cluster in the last reconcile.")
        self._leaderless = self._gauge("partitions_leaderless", "Partitions without a leader.")
        self._risks = self._policy_gauge(
            "partitions_at_risk", "Partitions with too few in-sync replicas or without a leader, by risk class.", "risk"
        )
        self._displaced = self._gauge(
            "partitions_displaced", "Partitions whose replica order differs from their baseline."
        )
        self._for_racks = self._gauge(
            "partitions_displaced_for_racks",
            "Displaced partitions whose order differs permanently because of the racks in spec.placement.",
        )
        self._misplaced = self._gauge(
            "leaders_misplaced", "Partitions led by another broker than the first one of their baseline."
        )
        self._imbalance = self._policy_gauge(
            "preferred_leader_imbalance",
            "Partitions not led by the first broker of their order: now, and before and after the last periodic"
            " election that moved leaders. Absent without spec.election.intervalSeconds.",
            "when",
        )
        self._entries = self._gauge("undo_record_entries", "Partitions in the undo record, including tombstones.")
        self._reordered = self._counter("partitions_reordered", "Partitions whose replica order was changed.")
        self._elected = self._counter("leaders_elected", "Leaders moved by preferred election.")
        self._conflicts = self._counter(
            "replica_set_conflicts", "Replica sets that another tool changed while Bellwether changed their order."
        )
        self._by_policy = (
            self._moves_blocked,
            self._brokers_blocked,
            self._risks,
            self._policy_error,
            self._conditions,
            self._brokers,
            self._imbalance,
            self._quarantines,
            self._rebalances,
        )

    def known(self, namespace: str, policy: str) -> None:
        """A policy is watched from now on; this process does not lead it yet."""
        self._gone.pop((namespace, policy), None)
        self.leading(namespace, policy, False)

    def turn_begins(self, namespace: str, policy: str, timestamp: float) -> None:
        """A reconcile starts; ``timestamp`` is Unix time in seconds."""
        if (namespace, policy) not in self._gone:
            self._started.labels(namespace, policy).set(timestamp)

    def turn_ends(self, namespace: str, policy: str) -> None:
        """No reconcile is running any more."""
        if (namespace, policy) not in self._gone:
            self._started.labels(namespace, policy).set(0)

    def turn_ended(
        self, namespace: str, policy: str, seconds: float, report: Report, entries: int, acts: bool = True
    ) -> None:
        """A reconcile succeeded. ``acts``: the policy may change Kafka."""
        labels = (namespace, policy)
        if labels in self._gone:
            return
        self._reconciles.labels(*labels).observe(seconds)
        self._finished.labels(*labels).set(report.now.timestamp())
        self._policy_error.set_series(namespace, policy, {})
        self._epoch.labels(*labels).set(report.epoch)
        self._enforcing.labels(*labels).set(acts)
        self._idle.labels(*labels).set(report.settled)
        self._partitions.labels(*labels).set(report.partitions)
        self._leaderless.labels(*labels).set(report.leaderless)
        self._displaced.labels(*labels).set(report.displaced)
        self._for_racks.labels(*labels).set(report.displaced_for_racks)
        self._misplaced.labels(*labels).set(report.leaders_out_of_place)
        self._entries.labels(*labels).set(entries)
        self._reordered.labels(*labels).inc(report.result.reordered)
        self._elected.labels(*labels).inc(report.result.elected)
        self._conflicts.labels(*labels).inc(len(report.result.touched))
        if report.result.stopped is not None:
            self._stopped.labels(*labels, str(report.result.stopped.reason)).inc()
        self._brokers.judged(namespace, policy, report)
        self._quarantines.update(namespace, policy, report)
        self._imbalance.set_series(namespace, policy, _imbalances(report.election))
        counts = report.risk_summary.counts
        risks = {(str(risk),): float(counts.get(risk, 0)) for risk in Risk if risk is not Risk.IN_SYNC}
        self._risks.set_series(namespace, policy, risks)
        held = {(str(reason),): float(count) for reason, count in report.blocked_by_reason.items()}
        self._moves_blocked.set_series(namespace, policy, held)
        reasons = [str(hold.reason) for hold in report.plan.decisions.held]
        known = {(c.type,): float(c.status) for c in report.conditions if c.status is not None}
        self._conditions.set_series(namespace, policy, known)
        self._brokers_blocked.set_series(namespace, policy, {(r,): float(reasons.count(r)) for r in reasons})

    def turn_failed(self, namespace: str, policy: str, kind: str) -> None:
        """A reconcile ended with an error of that kind."""
        if (namespace, policy) not in self._gone:
            self._errors.labels(namespace, policy, kind).inc()

    def troubled(self, namespace: str, policy: str, reason: Reason) -> None:
        """The policy cannot be reconciled, and why; until a reconcile succeeds or another process leads."""
        if (namespace, policy) not in self._gone:
            self._policy_error.set_series(namespace, policy, {(str(reason),): 1.0})

    def leading(self, namespace: str, policy: str, held: bool) -> None:
        """Whether this process holds the Lease."""
        labels = (namespace, policy)
        if labels in self._gone:
            return
        self._leading.labels(*labels).set(held)
        if held:
            # Counters start at 0: Prometheus does not see an increase of a series that did not exist.
            for counter in (self._reordered, self._elected, self._conflicts):
                counter.labels(*labels)
            self._quarantines.init_counters(namespace, policy)
            return
        for group in self._by_policy:
            group.forget(namespace, policy)
        for gauge in (self._epoch, self._enforcing, self._idle, self._partitions, self._leaderless, self._displaced):
            gauge.remove_by_labels({"namespace": namespace, "policy": policy})
        for gauge in (self._for_racks, self._misplaced, self._entries):
            gauge.remove_by_labels({"namespace": namespace, "policy": policy})

    def rebalance(self, namespace: str, policy: str, run: RebalanceRun | None) -> None:
        """State of the rebalance by load; None if the policy has none."""
        if (namespace, policy) not in self._gone:
            self._rebalances.update(namespace, policy, run)

    def export_signal_ages(
        self, namespace: str, policy: str, sources: Iterable[SourceSignals], patience: Patience
    ) -> None:
        """Age of each source and count of signals by state; ``patience``: maximum ages by the policy."""
        if (namespace, policy) not in self._gone:
            self._brokers.export_signal_ages(namespace, policy, sources, patience)

    def forget(self, namespace: str, policy: str) -> None:
        """Drop all series of a deleted policy, and ignore later updates by its controller."""
        self._gone.pop((namespace, policy), None)
        self._gone[namespace, policy] = None
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]
        for group in self._by_policy:
            group.forget(namespace, policy)
        self.exchanges.forget(namespace, policy)
        self._quarantines.remove_counters(namespace, policy)
        for metric in vars(self).values():
            if isinstance(metric, Gauge | Counter | Histogram):
                metric.remove_by_labels({"namespace": namespace, "policy": policy})

    def _gauge(self, name: str, text: str) -> Gauge:
        return self.registry.gauge(f"bellwether_{name}", text, *_POLICY)

    def _policy_gauge(self, name: str, text: str, *labels: str) -> PolicyGauge:
        return PolicyGauge(f"bellwether_{name}", text, labels, self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return self.registry.counter(f"bellwether_{name}", text, *_POLICY, *labels)


def _imbalances(found: PreferredElectionStatus | None) -> dict[tuple[str, ...], float]:
    if found is None:
        return {}
    series: dict[tuple[str, ...], float] = {("now",): float(found.imbalance)}
    if (last := found.last) is not None:
        series[("before",)] = float(last.before)
        if last.after is not None:
            series[("after",)] = float(last.after)
    return series
