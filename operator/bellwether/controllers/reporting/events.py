"""Derive Kubernetes Events from the difference of two reports. Pure: two reports in, events out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.controllers.cluster_connection import CREDENTIALS_CURRENT
from bellwether.core.condition import Condition
from bellwether.core.demotion.restoration import RestorationProgress
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason, reason_named
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report
from bellwether.ports.rebalance import RunState

NOTES_SHOWN = 10

_PARTITIONS = (Reason.OFFLINE_PARTITIONS, Reason.UNDER_MIN_ISR, Reason.AT_MIN_ISR)
WARNED = frozenset({*_PARTITIONS, Reason.PLACEMENT_UNSUITABLE})
"""Reasons of Ready that are a warning event of the policy. Sick and Down brokers and blocked demotions have others."""

BLIND_AFTER = timedelta(seconds=60)
"""How long no broker can be judged before it is an event: an operator that starts has not seen a prober's Lease yet."""


@dataclass(frozen=True, slots=True)
class News:
    """One event: about a broker, or about the policy when ``broker`` is None."""

    reason: Reason | str
    message: str
    broker: int | None = None
    warning: bool = False


def news(before: Report | None, now: Report) -> Iterator[News]:
    """Events for what changed since the last report; after a start only for what is not normal.

    A sick broker causes an event only after its dwell time: by then a shared cause shows on all brokers.
    """
    last = {b.broker: b for b in before.brokers} if before is not None else {}
    for broker in now.brokers:
        if last.get(broker.broker) is not broker:
            yield from _of_broker(last.get(broker.broker), broker)
    for note in now.notes[:NOTES_SHOWN]:
        text = f"{note.topic}-{note.partition}: {note.message}"
        yield News(note.reason, text, warning=note.reason is Reason.ORDER_OVERWRITTEN)
    if now.result.changed:
        yield News("LeadersMoved", f"{now.result.reordered} partitions reordered, {now.result.elected} leaders elected")
    if now.result.stopped is not None:
        yield News(now.result.stopped.reason, now.result.stopped.message, warning=True)
    former, was_former = _former(now), _former(before) if before is not None else None
    if former is not None and (was_former is None or was_former.message != former.message):
        yield News(former.reason, former.message, warning=True)
    idle, was_idle = _inactive(now), _inactive(before) if before is not None else None
    if now.would_demote and (before is None or before.would_demote != now.would_demote):
        yield News(Reason.NOT_ENFORCING, now.condition("Ready").message, warning=True)
    elif idle is not None and was_idle is None:
        yield News(idle.reason, idle.message)
    worst, was_worst = _worst(now), _worst(before) if before is not None else None
    if worst is not None and (was_worst is None or was_worst.reason != worst.reason):
        yield News(worst.reason, worst.message, warning=True)
    held, was_held = _held(now), _held(before) if before is not None else None
    if held is not None and (was_held is None or was_held.message != held.message):
        yield News(held.reason, held.message, warning=True)


def _held(report: Report) -> Condition | None:
    """The condition if demotions are blocked; None while all sick brokers are within their dwell time."""
    dwell_pending = {b.broker for b in report.brokers if b.dwell_pending}
    held = report.condition("DemotionBlocked")
    return held if held.status and any(h.broker not in dwell_pending for h in report.plan.decisions.held) else None


def _worst(report: Report) -> Condition | None:
    """The condition Ready if clients may notice its reason, or the policy cannot do its work because of it."""
    ready = report.condition("Ready")
    blind = ready.reason is Reason.NO_EVIDENCE and ready.status is False
    since = max((b.verdict.since for b in report.brokers), default=report.now)
    lasting = blind and report.now - since >= BLIND_AFTER
    return ready if lasting or ready.reason in WARNED else None


def _inactive(report: Report) -> Condition | None:
    """The condition Ready of a policy that is set not to act."""
    ready = report.condition("Ready")
    return ready if ready.reason is Reason.NOT_ENFORCING else None


def _former(report: Report) -> Condition | None:
    """The condition if former credentials are in use."""
    return next((c for c in report.conditions if c.type == CREDENTIALS_CURRENT), None)


def of_rebalance(before: LeaderRebalanceStatus | None, now: LeaderRebalanceStatus | None) -> Iterator[News]:
    """Event for a change of the rebalance; none after a start, as it was reported before."""
    if before is None or now is None or (before.state, before.digest) == (now.state, now.digest):
        return
    warning = now.state in (RunState.FAILED, RunState.STALE)
    yield News(reason_named(now.reason), f"{now.state}: {now.message}", warning=warning)


def _of_broker(before: BrokerReport | None, now: BrokerReport) -> Iterator[News]:
    verdict = now.verdict
    seen = (before.verdict.state, before.verdict.reason) if before is not None and not before.dwell_pending else None
    ordinary = before is None and verdict.state in (HealthState.HEALTHY, HealthState.UNKNOWN)
    if seen != (verdict.state, verdict.reason) and not ordinary and not now.dwell_pending:
        unplanned = verdict.reason is not Reason.IN_MAINTENANCE
        warning = verdict.state is HealthState.SICK or (verdict.state is HealthState.DOWN and unplanned)
        text = f"{verdict.state}: {verdict.message}"
        yield News(verdict.reason, text, now.broker, warning)
    holds, held = now.holds_back_isr, before is not None and before.holds_back_isr.status
    if holds.status and not held:
        yield News("HoldsBackISR", holds.message, now.broker, warning=True)
    was_demoted = before is not None and before.demoted is not None
    if now.demoted is not None and not was_demoted:
        planned = now.demoted.cause is Cause.MAINTENANCE
        yield News("Demoted", f"demoted: {now.demoted.message}", now.broker, warning=not planned)
    known = {one.demoted.log_dir for one in before.log_dirs if one.acts} if before is not None else set()
    current = {one.demoted.log_dir: one for one in now.log_dirs if one.acts}
    for log_dir, one in current.items():
        if log_dir not in known:
            text = f"log directory {log_dir.path} demoted with {one.partitions} partitions: {one.demoted.message}"
            yield News("LogDirDemoted", text, now.broker, warning=True)
    for log_dir in sorted(known - current.keys()):
        if now.demoted is None:
            text = f"what lies in log directory {log_dir.path} may lead again; its leaders are restored"
            yield News("LogDirPromoted", text, now.broker)
    linked = {one.peer: one for one in now.links if one.since is not None}
    was_linked = {one.peer for one in before.links if one.since is not None} if before is not None else set()
    for peer in sorted(linked.keys() - was_linked):
        text = f"it and broker {peer} do not reach each other: others lead {linked[peer].partitions} partitions of both"
        yield News(Reason.BROKEN_LINK, text, now.broker, warning=True)
    for peer in sorted(was_linked - linked.keys()):
        yield News("LinkRestored", f"it and broker {peer} may lead again what both have", now.broker)
    was_drained = before is not None and before.drained is not None and before.drained.status
    if now.drained is not None and now.drained.status and not was_drained:
        yield News(now.drained.reason, now.drained.message, now.broker)
    if now.demoted is None and was_demoted:
        yield News("Promoted", "may lead again; its leaders are restored", now.broker)
    yield from _of_return(before.restoration if before is not None else None, now)
    yield from _of_quarantine(before.quarantine_order if before is not None else None, now)


def _of_quarantine(before: QuarantineOrder | None, now: BrokerReport) -> Iterator[News]:
    """Event for a change of a quarantine order; renewals cause none."""
    order = now.quarantine_order
    if order is None or (before is None and not order.active):
        return
    if before is None or (before.number, before.reason) != (order.number, order.reason):
        yield News(
            reason_named(order.reason), order.message, now.broker, warning=order.reason != Reason.QUARANTINE_ENDED
        )


def _of_return(before: RestorationProgress | None, now: BrokerReport) -> Iterator[News]:
    """Events for the progress of a broker's restoration: the next wave, its end, or a rollback."""
    way = now.restoration
    if way is not None:
        was = before.returning.share if before is not None else None
        if was is not None and way.returning.share < was:
            yield News("WaveRolledBack", f"it went down with {was} % of its leaders restored", now.broker, warning=True)
        elif was != way.returning.share:
            yield News("LeadersReturning", way.message, now.broker)
    elif before is not None:
        if now.demoted is not None and now.demoted.cause is Cause.MAINTENANCE:
            return  # another restart has begun
        if now.demoted is not None:
            share = before.returning.share
            yield News(
                "WaveRolledBack", f"it became sick with {share} % of its leaders restored", now.broker, warning=True
            )
        else:
            yield News("LeadersReturned", "the last wave of its leaders is restored", now.broker)
