"""Prometheus metrics of brokers: verdicts, and the signals behind them.

Updated by ``telemetry.metrics.operator_metrics`` at the end of a reconcile. Labels are bounded: the brokers of a
cluster, health states, reasons, types of signals. There is no label for partitions or topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report
from bellwether.core.signals import SourceSignals
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, PolicyGauge

Patience = Callable[[str, str], float | None]
"""Seconds after which a signal of that type and source is stale; None if the policy does not use it."""

SIGNAL_STATES = ("passing", "failing", "unknown", "stale")


class BrokerMetrics:
    """Gauges by broker: one series per broker; the verdict has one per health state."""

    def __init__(self, registry: LabelledRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> PolicyGauge:
            return PolicyGauge(f"bellwether_{name}", text, labels, registry)

        self._verdict = gauge(
            "broker_verdict", "1 for the current verdict of the broker, 0 for the others.", "broker", "verdict"
        )
        self._reason = gauge(
            "broker_verdict_reason",
            "Always 1; the labels have the reason of the broker's verdict, and what requests to its listener break at"
            " (empty where that is not the reason).",
            "broker",
            "reason",
            "cause",
        )
        self._verdict_since = gauge(
            "broker_verdict_since_timestamp_seconds",
            "Unix time since which the broker has its current verdict, in seconds.",
            "broker",
        )
        self._leaders = gauge("broker_leaders", "Partitions that the broker leads.", "broker")
        self._preferred = gauge(
            "broker_preferred_leaders", "Partitions whose replica order starts with the broker.", "broker"
        )
        self._demoted = gauge("broker_demoted", "1 while the broker is demoted, else 0.", "broker")
        self._since = gauge(
            "broker_demoted_since_timestamp_seconds",
            "Unix time of the broker's demotion, in seconds; absent if it is not demoted.",
            "broker",
        )
        self._log_dirs = gauge(
            "broker_demoted_log_dirs", "Demoted log directories of a broker that is not demoted as a whole.", "broker"
        )
        self._links = gauge(
            "broker_broken_links", "Brokers that the broker does not reach, nor they it, while others do.", "broker"
        )
        self._blocked = gauge(
            "broker_action_blocked",
            "1, with the reason why the broker's demotion or promotion is blocked; else absent.",
            "broker",
            "reason",
        )
        self._ratio = gauge(
            "broker_restoration_ratio",
            "Share of its leaders, from 0 to 1, that a broker in restoration may have now; else absent.",
            "broker",
        )
        self._pending = gauge(
            "broker_restoration_pending_partitions",
            "Partitions whose leader returns to the broker in a later wave; absent if none is in restoration.",
            "broker",
        )
        self._wave_blocked = gauge(
            "broker_restoration_blocked",
            "1, with the reason why the next restoration wave of the broker waits; absent if it does not wait.",
            "broker",
            "reason",
        )
        self._holds_back = gauge(
            "broker_holds_back_isr",
            "1 while acks=all writes wait for the broker, a slow follower in the ISR of others' partitions; else 0.",
            "broker",
        )
        self._age = gauge(
            "signal_age_seconds",
            "Seconds since the last Lease renewal of the source, at the last reconcile; -1 if never renewed.",
            "type",
            "source",
        )
        self._signals = gauge(
            "signals",
            "Signals by state: passing, failing, unknown, or stale (its prober's Lease is not renewed).",
            "type",
            "state",
        )
        self._reported: dict[tuple[str, str], tuple[BrokerReport, ...]] = {}
        """The broker reports that the series are made of."""
        self._of_brokers = (
            self._verdict,
            self._reason,
            self._verdict_since,
            self._leaders,
            self._preferred,
            self._demoted,
            self._log_dirs,
            self._links,
            self._since,
            self._blocked,
            self._ratio,
            self._pending,
            self._wave_blocked,
            self._holds_back,
        )

    def judged(self, namespace: str, policy: str, report: Report) -> None:
        """The result of a reconcile for each broker."""
        held = {(str(h.broker), str(h.reason)): 1.0 for h in report.plan.decisions.held}
        self._blocked.set_series(namespace, policy, held)
        if self._reported.get((namespace, policy)) is report.brokers:
            return  # the same values
        self._reported[namespace, policy] = report.brokers

        def set_all(gauge: PolicyGauge, value: Callable[[BrokerReport], float]) -> None:
            gauge.set_series(namespace, policy, {(str(b.broker),): value(b) for b in report.brokers})

        set_all(self._verdict_since, lambda b: b.verdict.since.timestamp())
        set_all(self._leaders, lambda b: b.leaders)
        set_all(self._preferred, lambda b: b.preferred_leaders)
        set_all(self._demoted, lambda b: b.demoted is not None)
        set_all(self._log_dirs, lambda b: sum(one.acts for one in b.log_dirs))
        set_all(self._links, lambda b: len(b.verdict.links.union(one.peer for one in b.links)))
        set_all(self._holds_back, lambda b: b.holds_back_isr.status is True)
        verdicts = {(str(b.broker), str(s)): float(b.verdict.state is s) for b in report.brokers for s in HealthState}
        self._verdict.set_series(namespace, policy, verdicts)
        reasons = {(str(b.broker), str(b.verdict.reason), b.verdict.cause or ""): 1.0 for b in report.brokers}
        self._reason.set_series(namespace, policy, reasons)
        since = {(str(b.broker),): b.demoted.since.timestamp() for b in report.brokers if b.demoted is not None}
        self._since.set_series(namespace, policy, since)
        ways = [(str(b.broker), b.restoration) for b in report.brokers if b.restoration is not None]
        self._ratio.set_series(namespace, policy, {(b,): way.returning.share / 100 for b, way in ways})
        self._pending.set_series(namespace, policy, {(b,): float(way.withheld) for b, way in ways})
        waits = {(b, str(way.wait.reason)): 1.0 for b, way in ways if way.wait is not None}
        self._wave_blocked.set_series(namespace, policy, waits)

    def export_signal_ages(
        self, namespace: str, policy: str, sources: Iterable[SourceSignals], patience: Patience
    ) -> None:
        """Age of each source, and count of signals by state."""
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
        """Remove the series of a policy that another process leads, or that was deleted."""
        self._reported.pop((namespace, policy), None)
        for gauge in (*self._of_brokers, self._age, self._signals):
            gauge.forget(namespace, policy)
