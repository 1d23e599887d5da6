"""Prometheus metrics of the operator's own work. Labels are bounded: policies, brokers, reasons, sources of signals.

Told by the policy loops; served by ``bellwether operator --metrics-port``. A process that stands by says that it does,
what it asks of others, and nothing of brokers.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from bellwether.core.doctor.risks import Risk
from bellwether.core.planning.preferred_election import PreferredElectionStatus
from bellwether.core.reasons import Reason
from bellwether.core.rebalance.lifecycle import RebalanceRun
from bellwether.core.reporting.report import Report
from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.broker_metrics import BrokerMetrics, Patience
from bellwether.telemetry.metrics.client_metrics import ExchangeMetrics
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, PolicyGauge
from bellwether.telemetry.metrics.quarantine_metrics import QuarantineMetrics
from bellwether.telemetry.metrics.rebalance_metrics import RebalanceMetrics

_POLICY = ("namespace", "policy")
_TURN_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class OperatorMetrics:
    """What the operator says of itself, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = LabelledRegistry("operator")
        self._gone: set[tuple[str, str]] = set()
        self.exchanges = ExchangeMetrics(self.registry, self._gone)
        self._brokers = BrokerMetrics(self.registry)
        self._quarantines = QuarantineMetrics(self.registry)
        self._rebalances = RebalanceMetrics(self.registry)
        self._turns = Histogram(
            "bellwether_turn_seconds",
            "Time that one turn took.",
            _POLICY,
            buckets=_TURN_BUCKETS,
            registry=self.registry,
        )
        self._started = self._gauge(
            "turn_start_timestamp_seconds",
            "When the turn under way began; 0 between turns. A turn that stands still is a stuck loop.",
        )
        self._finished = self._gauge("turn_last_success_timestamp_seconds", "When the last turn ended well.")
        self._errors = self._counter("errors", "Turns that failed, by kind of error.", "kind")
        self._stopped = self._counter(
            "runs_stopped", "Turns that did not carry their plan out to its end, by reason.", "reason"
        )
        self._leading = self._gauge(
            "leadership_held", "1 while this process holds the Lease of the policy's cluster, 0 while it stands by."
        )
        self._epoch = self._gauge("epoch", "Epoch of the undo record, raised by whoever takes over.")
        self._acts = self._gauge("policy_acts", "1 while the policy enforces and is not suspended.")
        self._trouble = self._told("policy_trouble", "1, with the reason why no turn can be taken.", "reason")
        self._at_rest = self._gauge("at_rest", "1 when the last turn asked Kafka for nothing.")
        self._held = self._told("moves_held", "Partitions whose move is held back, by reason.", "reason")
        self._brokers_held = self._told(
            "brokers_held", "Brokers whose demotion or promotion is held back, by reason.", "reason"
        )
        self._partitions = self._gauge("partitions", "Partitions of the cluster in the last turn.")
        self._leaderless = self._gauge("partitions_leaderless", "Partitions without a leader.")
        self._risks = self._told(
            "partitions_at_risk", "Partitions that miss replicas in sync, or a leader, by class of risk.", "risk"
        )
        self._displaced = self._gauge("partitions_displaced", "Partitions whose replica order is not their baseline.")
        self._for_racks = self._gauge(
            "partitions_displaced_for_racks",
            "Those of the displaced partitions that stand so for good, as the racks of spec.placement want it.",
        )
        self._out_of_place = self._gauge(
            "leaders_out_of_place", "Partitions led by another broker than their baseline's first."
        )
        self._imbalance = self._told(
            "preferred_leader_imbalance",
            "Partitions led by another broker than the first of their order: now, and before and after the last"
            " periodic election that moved any. Absent without spec.election.intervalSeconds.",
            "when",
        )
        self._entries = self._gauge("undo_record_entries", "Partitions in the undo record, tombstones included.")
        self._reordered = self._counter("partitions_reordered", "Partitions given another replica order.")
        self._elected = self._counter("leaders_elected", "Leaders moved by preferred election.")
        self._touched = self._counter("replica_sets_touched", "Replica sets that changed around a reorder of ours.")
        self._by_policy = (
            self._held,
            self._brokers_held,
            self._risks,
            self._trouble,
            self._brokers,
            self._imbalance,
            self._quarantines,
            self._rebalances,
        )

    def known(self, namespace: str, policy: str) -> None:
        """A policy is watched from now on; nobody is said to lead it yet."""
        self._gone.discard((namespace, policy))
        self.leading(namespace, policy, False)

    def turn_begins(self, namespace: str, policy: str, timestamp: float) -> None:
        """A turn starts; ``timestamp`` is Unix time in seconds."""
        if (namespace, policy) not in self._gone:
            self._started.labels(namespace, policy).set(timestamp)

    def turn_ends(self, namespace: str, policy: str) -> None:
        """No turn is under way any more."""
        if (namespace, policy) not in self._gone:
            self._started.labels(namespace, policy).set(0)

    def turn_ended(
        self, namespace: str, policy: str, seconds: float, report: Report, entries: int, acts: bool = True
    ) -> None:
        """A turn ended well. ``acts``: the policy may change Kafka."""
        labels = (namespace, policy)
        if labels in self._gone:
            return
        self._turns.labels(*labels).observe(seconds)
        self._finished.labels(*labels).set(report.now.timestamp())
        self._trouble.tell(namespace, policy, {})
        self._epoch.labels(*labels).set(report.epoch)
        self._acts.labels(*labels).set(acts)
        self._at_rest.labels(*labels).set(report.settled)
        self._partitions.labels(*labels).set(report.partitions)
        self._leaderless.labels(*labels).set(report.leaderless)
        self._displaced.labels(*labels).set(report.displaced)
        self._for_racks.labels(*labels).set(report.displaced_for_racks)
        self._out_of_place.labels(*labels).set(report.leaders_out_of_place)
        self._entries.labels(*labels).set(entries)
        self._reordered.labels(*labels).inc(report.result.reordered)
        self._elected.labels(*labels).inc(report.result.elected)
        self._touched.labels(*labels).inc(len(report.result.touched))
        if report.result.stopped is not None:
            self._stopped.labels(*labels, str(report.result.stopped.reason)).inc()
        self._brokers.judged(namespace, policy, report)
        self._quarantines.stand(namespace, policy, report)
        self._imbalance.tell(namespace, policy, _imbalances(report.election))
        counts = report.risk_summary.counts
        risks = {(str(risk),): float(counts.get(risk, 0)) for risk in Risk if risk is not Risk.IN_SYNC}
        self._risks.tell(namespace, policy, risks)
        held = {(str(reason),): float(count) for reason, count in report.blocked_by_reason.items()}
        self._held.tell(namespace, policy, held)
        reasons = [str(hold.reason) for hold in report.plan.decisions.held]
        self._brokers_held.tell(namespace, policy, {(r,): float(reasons.count(r)) for r in reasons})

    def turn_failed(self, namespace: str, policy: str, kind: str) -> None:
        """A turn ended with an error of that kind."""
        if (namespace, policy) not in self._gone:
            self._errors.labels(namespace, policy, kind).inc()

    def troubled(self, namespace: str, policy: str, reason: Reason) -> None:
        """No turn can be taken, and why; until one ends well or somebody else leads."""
        if (namespace, policy) not in self._gone:
            self._trouble.tell(namespace, policy, {(str(reason),): 1.0})

    def leading(self, namespace: str, policy: str, held: bool) -> None:
        """Whether this process holds the Lease."""
        labels = (namespace, policy)
        if labels in self._gone:
            return
        self._leading.labels(*labels).set(held)
        if held:
            # Counters stand at 0 before they rise, as a rise from nothing is none to Prometheus.
            for counter in (self._reordered, self._elected, self._touched):
                counter.labels(*labels)
            self._quarantines.led(namespace, policy)
            return
        for told in self._by_policy:
            told.forget(namespace, policy)
        for gauge in (self._epoch, self._acts, self._at_rest, self._partitions, self._leaderless, self._displaced):
            gauge.remove_by_labels({"namespace": namespace, "policy": policy})
        for gauge in (self._for_racks, self._out_of_place, self._entries):
            gauge.remove_by_labels({"namespace": namespace, "policy": policy})

    def rebalance(self, namespace: str, policy: str, run: RebalanceRun | None) -> None:
        """How the rebalance by load stands; None where the policy asks for none."""
        if (namespace, policy) not in self._gone:
            self._rebalances.stands(namespace, policy, run)

    def heard(self, namespace: str, policy: str, signals: Iterable[Signal], patience: Patience) -> None:
        """How old each source's word is, and how many signals say what; ``patience`` as the policy has it."""
        if (namespace, policy) not in self._gone:
            self._brokers.heard(namespace, policy, signals, patience)

    def forget(self, namespace: str, policy: str) -> None:
        """Drop everything about a policy that is gone; what its loop says while it ends is not listened to."""
        self._gone.add((namespace, policy))
        for told in self._by_policy:
            told.forget(namespace, policy)
        self.exchanges.forget(namespace, policy)
        self._quarantines.drop(namespace, policy)
        for metric in vars(self).values():
            if isinstance(metric, Gauge | Counter | Histogram):
                metric.remove_by_labels({"namespace": namespace, "policy": policy})

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"bellwether_{name}", text, _POLICY, registry=self.registry)

    def _told(self, name: str, text: str, *labels: str) -> PolicyGauge:
        return PolicyGauge(f"bellwether_{name}", text, labels, self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"bellwether_{name}", text, (*_POLICY, *labels), registry=self.registry)


def _imbalances(found: PreferredElectionStatus | None) -> dict[tuple[str, ...], float]:
    if found is None:
        return {}
    told: dict[tuple[str, ...], float] = {("now",): float(found.imbalance)}
    if (last := found.last) is not None:
        told[("before",)] = float(last.before)
        if last.after is not None:
            told[("after",)] = float(last.after)
    return told
