"""Prometheus metrics of brokers: verdicts, and the signals behind them.

Told by ``telemetry.metrics.operator_metrics`` at the end of a turn. Labels are bounded: the brokers of a cluster,
states, reasons, kinds of signals. No partition and no topic is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report
from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.metric_registry import PolicyGauge

Patience = Callable[[str, str], float | None]
"""How many seconds a signal of that type and source stays evidence; None where it is none anyway."""

SIGNAL_STATES = ("passing", "failing", "unknown", "stale")


class BrokerMetrics:
    """Gauges by broker; each holds one series a broker, the verdict's one for each state."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> PolicyGauge:
            return PolicyGauge(f"bellwether_{name}", text, labels, registry)

        self._verdict = gauge(
            "broker_verdict", "1 for the verdict that the broker has, 0 for the others.", "broker", "verdict"
        )
        self._reason = gauge("broker_verdict_reason", "1, with the reason of the broker's verdict.", "broker", "reason")
        self._leaders = gauge("broker_leaders", "Partitions that the broker leads.", "broker")
        self._preferred = gauge(
            "broker_preferred_leaders", "Partitions in whose replica order the broker stands first.", "broker"
        )
        self._demoted = gauge("broker_demoted", "1 while the broker is kept from leading.", "broker")
        self._since = gauge(
            "broker_demoted_since_timestamp_seconds",
            "When the broker was demoted; absent while it is not.",
            "broker",
        )
        self._held = gauge(
            "broker_held", "1, with the reason why the broker's demotion or promotion is held back.", "broker", "reason"
        )
        self._returning = gauge(
            "broker_returning_ratio",
            "Part of its leaders, from 0 to 1, that a broker on its way back may lead; absent while none is.",
            "broker",
        )
        self._withheld = gauge(
            "broker_partitions_withheld",
            "Partitions that a broker on its way back gets with a later wave; absent while none is.",
            "broker",
        )
        self._waits = gauge(
            "broker_returning_waits",
            "1, with the reason what the next wave of a broker on its way back waits for; absent while it waits for"
            " nothing.",
            "broker",
            "reason",
        )
        self._holds_back = gauge(
            "broker_holds_back_isr",
            "1 while acks=all waits for the broker: it follows slowly and is in the ISR of what others lead.",
            "broker",
        )
        self._age = gauge(
            "signal_age_seconds",
            "Time from when the source of signals was last heard of to the end of the last turn; -1 for never.",
            "type",
            "source",
        )
        self._signals = gauge(
            "signals",
            "Signals by what they say; a stale one's prober has not been heard of for too long.",
            "type",
            "state",
        )
        self._of_brokers = (
            self._verdict,
            self._reason,
            self._leaders,
            self._preferred,
            self._demoted,
            self._since,
            self._held,
            self._returning,
            self._withheld,
            self._waits,
            self._holds_back,
        )

    def judged(self, namespace: str, policy: str, report: Report) -> None:
        """What a turn says of each broker."""

        def tell(gauge: PolicyGauge, value: Callable[[BrokerReport], float]) -> None:
            gauge.tell(namespace, policy, {(str(b.broker),): value(b) for b in report.brokers})

        tell(self._leaders, lambda b: b.leaders)
        tell(self._preferred, lambda b: b.preferred_leaders)
        tell(self._demoted, lambda b: b.demoted is not None)
        tell(self._holds_back, lambda b: b.condition("HoldsBackISR").status is True)
        verdicts = {(str(b.broker), str(s)): float(b.verdict.state is s) for b in report.brokers for s in HealthState}
        self._verdict.tell(namespace, policy, verdicts)
        reasons = {(str(b.broker), str(b.verdict.reason)): 1.0 for b in report.brokers}
        self._reason.tell(namespace, policy, reasons)
        since = {(str(b.broker),): b.demoted.since.timestamp() for b in report.brokers if b.demoted is not None}
        self._since.tell(namespace, policy, since)
        ways = [(str(b.broker), b.restoration) for b in report.brokers if b.restoration is not None]
        self._returning.tell(namespace, policy, {(b,): way.returning.share / 100 for b, way in ways})
        self._withheld.tell(namespace, policy, {(b,): float(way.withheld) for b, way in ways})
        waits = {(b, str(way.wait.reason)): 1.0 for b, way in ways if way.wait is not None}
        self._waits.tell(namespace, policy, waits)
        held = {(str(h.broker), str(h.reason)): 1.0 for h in report.plan.decisions.held}
        self._held.tell(namespace, policy, held)

    def heard(self, namespace: str, policy: str, signals: Iterable[Signal], patience: Patience) -> None:
        """How old each source's word is, and how many signals say what."""
        ages: dict[tuple[str, ...], float] = {}
        states: Counter[tuple[str, ...]] = Counter()
        for signal in signals:
            enough = patience(signal.type, signal.source)
            if enough is None:
                continue  # the policy does not judge by it
            kind, source = str(signal.type), (str(signal.type), signal.source)
            age = -1.0 if signal.age_seconds is None else signal.age_seconds
            last = ages.get(source, -1.0)
            ages[source] = age if last < 0 else last if age < 0 else min(last, age)
            stale = age < 0 or age > enough
            states.update({(kind, state): 0 for state in SIGNAL_STATES})
            states[kind, "stale" if stale else str(signal.reading).lower()] += 1
        self._age.tell(namespace, policy, ages)
        self._signals.tell(namespace, policy, states)

    def forget(self, namespace: str, policy: str) -> None:
        """Say nothing of a policy that another process leads, or that is gone."""
        for gauge in (*self._of_brokers, self._age, self._signals):
            gauge.forget(namespace, policy)
