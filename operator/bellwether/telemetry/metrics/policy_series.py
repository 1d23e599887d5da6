"""Series by policy: a table of gauges with their labels and what they are made of.

In: a reconcile's report, its brokers' reports, or the state of a rebalance. Out: gauges whose series of one policy are
replaced together. Updated and served by ``operator_metrics``. Labels are bounded: brokers, reasons, states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.core.detection.health_states import HealthState
from bellwether.core.doctor.risks import Risk
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.reasons import reason_named
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report
from bellwether.ports.rebalance import RunState
from bellwether.telemetry.metrics.metric_registry import LabelledRegistry, PolicyGauge

Values = Mapping[tuple[str, ...], float]
"""Values by the labels of their series."""

Brokers = Sequence[BrokerReport]
T = TypeVar("T")


@dataclass(frozen=True)
class Row(Generic[T]):
    """A gauge: its name without prefix, its meaning, its labels after namespace and policy, its values."""

    name: str
    text: str
    labels: tuple[str, ...]
    values: Callable[[T], Values]


class Table(Generic[T]):
    """The gauges of some rows."""

    def __init__(self, rows: Sequence[Row[T]], registry: LabelledRegistry) -> None:
        self._gauges = [(PolicyGauge(f"bellwether_{r.name}", r.text, r.labels, registry), r.values) for r in rows]

    def update(self, namespace: str, policy: str, source: T) -> None:
        """Replace all series of a policy."""
        for gauge, values in self._gauges:
            gauge.set_series(namespace, policy, values(source))

    def forget(self, namespace: str, policy: str) -> None:
        """Remove the series of a policy that another process leads, or that was deleted."""
        for gauge, _ in self._gauges:
            gauge.forget(namespace, policy)


def _one(name: str, text: str, value: Callable[[Report], float]) -> Row[Report]:
    return Row(name, text, (), lambda report: {(): value(report)})


def _imbalances(report: Report) -> Values:
    found = report.election
    if found is None:
        return {}
    series: dict[tuple[str, ...], float] = {("now",): found.imbalance}
    if (last := found.last) is not None:
        series[("before",)] = last.before
        if last.after is not None:
            series[("after",)] = last.after
    return series


OF_REPORT: Sequence[Row[Report]] = (
    _one("epoch", "Epoch of the undo record; each new Lease holder raises it.", lambda r: r.epoch),
    _one("reconcile_idle", "1 if the last reconcile had nothing to change in Kafka, else 0.", lambda r: r.settled),
    _one("partitions", "Partitions of the cluster in the last reconcile.", lambda r: r.partitions),
    _one("partitions_leaderless", "Partitions without a leader.", lambda r: r.leaderless),
    _one("partitions_displaced", "Partitions whose replica order differs from their baseline.", lambda r: r.displaced),
    _one(
        "partitions_displaced_for_racks",
        "Displaced partitions whose order differs permanently because of the racks in spec.placement.",
        lambda r: r.displaced_for_racks,
    ),
    _one(
        "leaders_misplaced",
        "Partitions led by another broker than the first one of their baseline.",
        lambda r: r.leaders_out_of_place,
    ),
    Row(
        "policy_condition",
        "1 while the condition of the policy is True, 0 while it is False; else absent.",
        ("type",),
        lambda r: {(c.type,): c.status for c in r.conditions if c.status is not None},
    ),
    Row(
        "partition_moves_blocked",
        "Partitions whose leader move is blocked, by reason.",
        ("reason",),
        lambda r: {(str(reason),): count for reason, count in r.blocked_by_reason.items()},
    ),
    Row(
        "brokers_action_blocked",
        "Brokers whose demotion or promotion is blocked, by reason.",
        ("reason",),
        lambda r: Counter((str(held.reason),) for held in r.plan.decisions.held),
    ),
    Row(
        "broker_action_blocked",
        "1, with the reason why the broker's demotion or promotion is blocked; else absent.",
        ("broker", "reason"),
        lambda r: {(str(held.broker), str(held.reason)): 1.0 for held in r.plan.decisions.held},
    ),
    Row(
        "partitions_at_risk",
        "Partitions with too few in-sync replicas or without a leader, by risk class.",
        ("risk",),
        lambda r: {(str(risk),): r.risk_summary.counts.get(risk, 0) for risk in Risk if risk is not Risk.IN_SYNC},
    ),
    Row(
        "preferred_leader_imbalance",
        "Partitions not led by the first broker of their order: now, and before and after the last periodic"
        " election that moved leaders. Absent without spec.election.intervalSeconds.",
        ("when",),
        _imbalances,
    ),
)
"""Of each reconcile."""


def _each(name: str, text: str, value: Callable[[BrokerReport], float | None]) -> Row[Brokers]:
    """A value for each broker; None: the series is absent."""
    return Row(
        name, text, ("broker",), lambda brokers: {(str(b.broker),): v for b in brokers if (v := value(b)) is not None}
    )


def _active(broker: BrokerReport) -> QuarantineOrder | None:
    order = broker.quarantine_order
    return order if order is not None and order.active else None


OF_BROKERS: Sequence[Row[Brokers]] = (
    Row(
        "broker_verdict",
        "1 for the current verdict of the broker, 0 for the others.",
        ("broker", "verdict"),
        lambda brokers: {(str(b.broker), str(s)): b.verdict.state is s for b in brokers for s in HealthState},
    ),
    Row(
        "broker_verdict_reason",
        "Always 1; the labels have the reason of the broker's verdict, and what requests to its listener break at"
        " (empty where that is not the reason).",
        ("broker", "reason", "cause"),
        lambda brokers: {(str(b.broker), str(b.verdict.reason), b.verdict.cause or ""): 1.0 for b in brokers},
    ),
    _each(
        "broker_verdict_since_timestamp_seconds",
        "Unix time since which the broker has its current verdict, in seconds.",
        lambda b: b.verdict.since.timestamp(),
    ),
    _each("broker_leaders", "Partitions that the broker leads.", lambda b: b.leaders),
    _each(
        "broker_preferred_leaders",
        "Partitions whose replica order starts with the broker.",
        lambda b: b.preferred_leaders,
    ),
    _each("broker_demoted", "1 while the broker is demoted, else 0.", lambda b: b.demoted is not None),
    _each(
        "broker_demoted_since_timestamp_seconds",
        "Unix time of the broker's demotion, in seconds; absent if it is not demoted.",
        lambda b: b.demoted.since.timestamp() if b.demoted is not None else None,
    ),
    _each(
        "broker_demoted_log_dirs",
        "Demoted log directories of a broker that is not demoted as a whole.",
        lambda b: sum(one.acts for one in b.log_dirs),
    ),
    _each(
        "broker_broken_links",
        "Brokers that the broker does not reach, nor they it, while others do.",
        lambda b: len(b.verdict.links.union(one.peer for one in b.links)),
    ),
    _each(
        "broker_restoration_ratio",
        "Share of its leaders, from 0 to 1, that a broker in restoration may have now; else absent.",
        lambda b: b.restoration.returning.share / 100 if b.restoration is not None else None,
    ),
    _each(
        "broker_restoration_pending_partitions",
        "Partitions whose leader returns to the broker in a later wave; absent if none is in restoration.",
        lambda b: b.restoration.withheld if b.restoration is not None else None,
    ),
    Row(
        "broker_restoration_blocked",
        "1, with the reason why the next restoration wave of the broker waits; absent if it does not wait.",
        ("broker", "reason"),
        lambda brokers: {
            (str(b.broker), str(b.restoration.wait.reason)): 1.0
            for b in brokers
            if b.restoration is not None and b.restoration.wait is not None
        },
    ),
    _each(
        "broker_holds_back_isr",
        "1 while acks=all writes wait for the broker, a slow follower in the ISR of others' partitions; else 0.",
        lambda b: b.holds_back_isr.status is True,
    ),
    _each(
        "broker_quarantine_ordered",
        "1 while an order to hold the broker is active, 0 for spec.quarantine.limitSeconds after it; else absent.",
        lambda b: _active(b) is not None if b.quarantine_order is not None or b.held else None,
    ),
    _each(
        "broker_quarantine_held",
        "1 while the broker's quarantine agent reports that it holds the broker, 0 while it does not and an"
        " order is active or ended recently; else absent.",
        lambda b: b.held if b.quarantine_order is not None or b.held else None,
    ),
    _each(
        "broker_quarantine_since_timestamp_seconds",
        "Unix time at which the active order to hold the broker was given, in seconds; absent without one.",
        lambda b: order.since.timestamp() if (order := _active(b)) is not None else None,
    ),
    _each(
        "broker_quarantine_until_timestamp_seconds",
        "Unix time at which the active order to hold the broker ends, in seconds; absent without one.",
        lambda b: order.until.timestamp() if (order := _active(b)) is not None else None,
    ),
    Row(
        "broker_quarantine_ended",
        "1, with the reason why the broker's last quarantine ended, for spec.quarantine.limitSeconds after it.",
        ("broker", "reason"),
        lambda brokers: {
            (str(b.broker), str(reason_named(b.quarantine_order.reason))): 1.0
            for b in brokers
            if b.quarantine_order is not None and not b.quarantine_order.active
        },
    ),
)
"""Of the brokers in a reconcile; made again only where their reports are others."""


def _loads(now: LeaderRebalanceStatus) -> Values:
    plan = now.plan
    return {} if plan is None else {("before",): plan.load_before, ("after",): plan.load_after, ("bound",): plan.bound}


def _losses(now: LeaderRebalanceStatus) -> Values:
    found = now.losses
    if found is None:
        return {}
    ratios = {("broker", "limit"): found.limit}
    for kind, of in (("broker", found.broker), ("rack", found.rack)):
        if of is not None:
            ratios |= {(kind, "now"): of.now.ratio, (kind, "planned"): of.planned.ratio, (kind, "bound"): of.bound}
    return {labels: float(ratio) for labels, ratio in ratios.items()}


OF_REBALANCE: Sequence[Row[LeaderRebalanceStatus]] = (
    Row(
        "rebalance_state",
        "1 for the current state of the rebalance by load, 0 for the others.",
        ("state",),
        lambda now: {(str(state),): now.state is state for state in RunState},
    ),
    Row(
        "rebalance_partitions",
        "Partitions of the load plan, by result (applied, skipped).",
        ("result",),
        lambda now: {("applied",): now.applied, ("skipped",): now.skipped},
    ),
    Row(
        "rebalance_load_bytes_per_second",
        "Load of the busiest broker, in bytes per second per 100 units of capacity: before the plan, after it, and"
        " the lower bound of any plan.",
        ("when",),
        _loads,
    ),
    Row(
        "rebalance_loss_ratio",
        "Load of the busiest survivor after the worst loss of one broker or of a rack, as a multiple of the busiest"
        " broker while none is lost: now, after the last plan, the lower bound of any plan, and the alert's limit.",
        ("kind", "when"),
        _losses,
    ),
)
"""Of the current rebalance."""
