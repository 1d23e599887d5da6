"""Decide which brokers are demoted and promoted, from verdicts, overrides and the cap.

Implements invariant 4: the cap limits how many brokers signals demote; above it the most severe go first; where half of
the brokers have the same symptom no further broker is demoted; holding never promotes. An override takes precedence
over signals and cap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from bellwether.core.demotion.cap import UNANSWERED, admit_within_cap, dwell_left
from bellwether.core.demotion.cure_choice import Cures, choose_cures
from bellwether.core.demotion.drain_check import drain_blocker, in_order_of_drain
from bellwether.core.demotion.links import LinkDecisions, decide_links, keep_links
from bellwether.core.demotion.log_dirs import LogDirDecisions, decide_log_dirs, known_slow
from bellwether.core.demotion.restoration import advance_restorations
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.links import LinkEvidence
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.maintenance import requests_maintenance
from bellwether.core.model.refusals import BrokerHold, Refusal
from bellwether.core.model.restoration_waves import ReturningBroker
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import RESTORE_TIMEOUT, Cause, DemotedBroker
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.settings.policy import Policy, PromotionMode
from bellwether.core.signals import SIGNALS, OverrideState

HARD_FAULTS = frozenset({*UNANSWERED, Reason.STORAGE_SLOW, Reason.READS_SLOW})
"""Faults of the broker itself. Other reasons for Sick may be caused by operations on the cluster."""


SICKNESS: Mapping[str, int] = {
    Reason.OVERRIDE_DEMOTED: 0,
    Reason.MANUAL_COMMAND: 0,
    Reason.BROKEN_LINK: 1,
    **{reason: sickness for one in SIGNALS.values() for reason, sickness in one.reasons.items()},
}
"""How unsuitable a demoted broker is as a leader, by the reason in the undo record, which unlike a severity does
not change between reconciles. A manual demotion counts as 0; reasons that are not listed are ``LESS_SICK``.
"""
LESS_SICK = 2


def sickness(demoted: DemotedBroker) -> int:
    """How sick a demoted broker is: if only demoted replicas remain, the lowest leads."""
    return SICKNESS.get(demoted.reason, LESS_SICK)


@dataclass(frozen=True)
class Decisions:
    """Which brokers are demoted from now on, which are promoted, and which changes are held."""

    demoted: Mapping[int, DemotedBroker]
    promoted: tuple[int, ...] = ()
    held: tuple[BrokerHold, ...] = ()
    dwelling: Mapping[int, float] = field(default_factory=dict)
    """Brokers whose harm is known for less than the dwell time, with the seconds that are left of it."""
    returning: Mapping[int, ReturningBroker] = field(default_factory=dict)
    """Brokers that are no longer demoted and get their leaders back in waves."""
    waits: Mapping[int, Refusal] = field(default_factory=dict)
    """What the next wave of each returning broker waits for."""
    log_dirs: LogDirDecisions = field(default_factory=LogDirDecisions)
    """Demoted log directories of brokers that are not demoted as a whole."""
    links: LinkDecisions = field(default_factory=LinkDecisions)
    """Broken links, and what neither end may lead."""
    to_hold: tuple[int, ...] = ()
    """Brokers that are not demoted, as a held controlled shutdown is the better cure."""
    policy_deleted: bool = False
    """The policy is being deleted: every order returns to its baseline, whatever its racks and limits."""

    @property
    def sickness(self) -> Mapping[int, float]:
        """How sick each broker is that is demoted, or has a demoted log directory."""
        ends: dict[int, float] = {end: SICKNESS[Reason.BROKEN_LINK] for link in self.links.broken for end in link}
        slow = {one.broker: SICKNESS.get(was.reason, LESS_SICK) for one, was in self.log_dirs.demoted.items()}
        # Drained brokers may be stopped at any moment: where only demoted ones can lead, the first of them leads last.
        drained = in_order_of_drain(self.demoted)
        later = {b: (len(drained) - n) / (len(drained) + 1) for n, b in enumerate(drained)}
        return ends | slow | {b: sickness(one) + later.get(b, 0) for b, one in self.demoted.items()}

    @cached_property
    def whole(self) -> frozenset[int]:
        """Brokers that may lead nothing."""
        return frozenset(self.demoted)

    @cached_property
    def partly(self) -> Mapping[PartitionKey, frozenset[int]]:
        """Brokers that may not lead single partitions: for their log directory, or for a broken link."""
        by_key = dict(self.log_dirs.replicas)
        for key, ends in self.links.replicas.items():
            by_key[key] = by_key.get(key, frozenset()) | ends
        return by_key

    def kept_off(self, key: PartitionKey) -> frozenset[int]:
        """Brokers that must not lead a partition."""
        here = self.partly.get(key) if self.partly else None
        return self.whole if here is None else self.whole | here

    def hold_of(self, broker: int) -> BrokerHold | None:
        """Why a broker's demotion or promotion is held, if it is."""
        return next((h for h in self.held if h.broker == broker), None)


def decide(context: Context) -> Decisions:
    """Decide which brokers are demoted from now on, and which changes are held."""
    snapshot, verdicts, policy = context.snapshot, context.verdicts, context.policy
    kept, held = still_demoted(snapshot, verdicts, policy)
    held += defer_promotions(kept, context)
    undrained = drain_for_maintenance(kept, context)
    for broker in sorted(verdicts):
        override = snapshot.override_of(broker)
        if override is not None and override.state is OverrideState.DEMOTED and not requests_maintenance(override):
            # A demotion by signals keeps its cause: the end of the override must not promote the broker.
            existing = kept.get(broker)
            if existing is None or existing.cause is not Cause.SIGNALS:
                before = snapshot.record.demoted.get(broker)
                by_hand = _demoted(before, snapshot, broker, Cause.OVERRIDE, override.reason)
                kept[broker] = replace(by_hand, drained_since=existing.drained_since if existing is not None else None)
    sick = (v for v in verdicts.values() if v.state is HealthState.SICK and v.broker not in kept)
    candidates = [v for v in sick if not (snapshot.overridden(v.broker) or snapshot.is_quarantined(v.broker))]
    if (busy := context.deferral) is not None:
        soft = [v for v in candidates if v.reason not in HARD_FAULTS]
        held += [BrokerHold(v.broker, busy.reason, busy.message) for v in soft]
        candidates = [v for v in candidates if v.reason in HARD_FAULTS]
    dwelling, cures, refused = _admit(candidates, kept, context)
    for verdict in cures.demoted:
        kept[verdict.broker] = DemotedBroker(
            verdict.broker, Cause.SIGNALS, verdict.reason, verdict.message, snapshot.now, verdict.signal
        )
    log_dirs = decide_log_dirs(kept, context)
    links = decide_links(kept, log_dirs, context, LinkEvidence.of(snapshot, policy.detection))
    dwelling |= {**log_dirs.dwelling, **links.dwelling}
    without = [o.broker for o in snapshot.overrides if o.broker not in verdicts and snapshot.in_force(o)]
    text = "its override has no effect: no broker {} is registered and no replica list names it; correct spec.brokerId"
    unknown = [BrokerHold(broker, Reason.BROKER_DOWN, text.format(broker)) for broker in without]
    # What signals say of a broker whose drain is held comes first: it is demoted, or that is refused.
    judged = {*kept, *cures.to_hold, *(hold.broker for hold in (*held, *refused, *cures.held))}
    held += [hold for hold in undrained if hold.broker not in judged]
    promoted = tuple(sorted(set(snapshot.record.demoted) - set(kept)))
    back = advance_restorations(context, kept, promoted)
    return Decisions(
        dict(sorted(kept.items())),
        promoted,
        (*held, *refused, *cures.held, *log_dirs.held, *links.held, *unknown),
        dict(sorted(dwelling.items())),
        back.returning,
        back.waits,
        log_dirs,
        links,
        (*cures.to_hold, *log_dirs.to_hold),
    )


def _admit(
    candidates: list[Verdict], kept: Mapping[int, DemotedBroker], context: Context
) -> tuple[dict[int, float], Cures, list[BrokerHold]]:
    """Which brokers still dwell, the cure of the others within the cap, and who is refused.

    A broker whose leaders stay, as no cure gives relief, uses up no place of the cap.
    """
    admitted, refused = admit_within_cap(candidates, kept, context)
    dwelling = {v.broker: left for v in admitted if (left := dwell_left(v, context))}
    cures = choose_cures([v for v in admitted if v.broker not in dwelling], kept, context)
    stay = [hold for hold in cures.held if hold.reason is Reason.NO_RELIEF]
    if not stay or not refused:
        return dwelling, cures, refused
    unrelieved = {hold.broker for hold in stay}
    dwelling, cures, refused = _admit([v for v in candidates if v.broker not in unrelieved], kept, context)
    return dwelling, replace(cures, held=(*stay, *cures.held)), refused


DecisionFunction = Callable[[Context], Decisions]
"""Decision step of a reconcile: ``decide`` for a policy; the others are for manual commands and for deletion."""


def decide_on_deletion(context: Context) -> Decisions:
    """Decisions while the policy is being deleted: promote every broker not known to be sick, all at once.

    A broker that signals demoted needs evidence to lead again; one that a person demoted only must not be sick.
    """
    snapshot, kept = context.snapshot, {}
    for broker, demoted in sorted(snapshot.record.demoted.items()):
        verdict = context.verdicts.get(broker)
        if verdict is None or verdict.state in (HealthState.HEALTHY, HealthState.RECOVERING):
            continue
        if verdict.state is HealthState.UNKNOWN and demoted.cause is not Cause.SIGNALS:
            continue
        kept[broker] = demoted
    promoted = tuple(sorted(set(snapshot.record.demoted) - set(kept)))
    left = LogDirDecisions.of(known_slow(context), snapshot)
    return Decisions(kept, promoted, log_dirs=left, policy_deleted=True)


def manual_decision(demote: Collection[int] = (), promote: Collection[int] = (), message: str = "") -> DecisionFunction:
    """Decisions for a command line run: demote and promote the given brokers, leave all others as they are."""

    def as_commanded(context: Context) -> Decisions:
        snapshot = context.snapshot
        kept = {b: d for b, d in snapshot.record.demoted.items() if b not in promote}
        for broker in sorted(demote):
            kept[broker] = _demoted(kept.get(broker), snapshot, broker, Cause.COMMAND, message)
        promoted = tuple(sorted(set(snapshot.record.demoted) - set(kept)))
        returning = {b: r for b, r in snapshot.record.returning.items() if b not in kept and b not in promote}
        log_dirs = {d: one for d, one in snapshot.record.log_dirs.items() if d.broker not in {*kept, *promote}}
        left = LogDirDecisions.of(log_dirs, snapshot)
        links = keep_links((b for b in snapshot.record.links.values() if not set(b.link) & set(promote)), kept, context)
        return Decisions(dict(sorted(kept.items())), promoted, returning=returning, log_dirs=left, links=links)

    return as_commanded


def still_demoted(
    snapshot: Snapshot, verdicts: Mapping[int, Verdict], policy: Policy
) -> tuple[dict[int, DemotedBroker], list[BrokerHold]]:
    """Which demoted brokers stay demoted. Only a healthy verdict or an override ends a demotion."""
    kept: dict[int, DemotedBroker] = {}
    held = []
    for broker, demoted in sorted(snapshot.record.demoted.items()):
        verdict = verdicts.get(broker)
        if verdict is None or snapshot.promoted_by_override(broker):
            continue  # decommissioned, as no replica list names it any more, or an override lets it lead
        by_override = demoted.cause is Cause.OVERRIDE
        if demoted.cause is Cause.MAINTENANCE and (why := snapshot.maintenance.get(broker)) is not None:
            kept[broker] = replace(demoted, reason=why.reason, message=why.message or DESCRIPTIONS[why.reason])
        elif demoted.cause is Cause.COMMAND or (by_override and snapshot.override_of(broker) is not None):
            kept[broker] = demoted
        elif demoted.cause is not Cause.SIGNALS:
            kept |= _released(demoted, verdict, snapshot)
        elif verdict.state is not HealthState.HEALTHY:
            kept[broker] = demoted
        elif policy.promotion.mode is PromotionMode.MANUAL:
            kept[broker] = demoted
            text = "healthy again; set spec.override.state to Promoted on its BrokerHealth to restore its leaders"
            held.append(BrokerHold(broker, Reason.PROMOTION_MANUAL, text))
    return kept, held


def defer_promotions(kept: dict[int, DemotedBroker], context: Context) -> list[BrokerHold]:
    """During what ``Context.deferral`` names only an override promotes: adds the other demoted brokers to ``kept``."""
    snapshot, busy, held = context.snapshot, context.deferral, []
    for broker, demoted in sorted(snapshot.record.demoted.items()):
        promoted = snapshot.promoted_by_override(broker)
        if busy is not None and broker in context.verdicts and broker not in kept and not promoted:
            kept[broker] = demoted
            held.append(BrokerHold(broker, busy.reason, f"may lead again; {busy.message}"))
    return held


def drain_for_maintenance(kept: dict[int, DemotedBroker], context: Context) -> list[BrokerHold]:
    """Drain brokers in maintenance one by one, while others can lead: adds to ``kept``."""
    snapshot, verdicts, held = context.snapshot, context.verdicts, []
    for broker, one in kept.items():
        if one.drained_since is not None and broker not in snapshot.maintenance:
            kept[broker] = replace(one, drained_since=None)
    for broker, why in sorted(snapshot.maintenance.items()):
        before = kept.get(broker)
        if broker not in verdicts:
            continue
        if snapshot.promoted_by_override(broker):  # it takes precedence over a pod's state
            text = "not drained: spec.override of its BrokerHealth lets it lead; remove it to drain the broker"
            held.append(BrokerHold(broker, Reason.MOVES_BLOCKED, text))
            continue
        refused = drain_blocker(why, kept, context) if before is None else None
        if refused is not None:
            held.append(BrokerHold(broker, refused.reason, f"not drained: {refused.message}"))
            continue
        text = why.message or DESCRIPTIONS[why.reason]
        drained = before or DemotedBroker(broker, Cause.MAINTENANCE, why.reason, text, snapshot.now)
        if drained.cause not in (Cause.MAINTENANCE, Cause.SIGNALS):  # a demotion by signals keeps its cause
            drained = replace(drained, cause=Cause.MAINTENANCE, reason=why.reason, message=text)
        if drained.drained_since is None:
            drained = replace(drained, drained_since=snapshot.now)
        kept[broker] = drained
    return held


def _released(demoted: DemotedBroker, verdict: Verdict, snapshot: Snapshot) -> dict[int, DemotedBroker]:
    """What is left of a demotion whose override, drain or maintenance has ended; empty if it ends.

    Only a Sick broker stays demoted by signals: one that is merely Suspect would not be demoted, so it leads again,
    after its startup grace. One that was last seen failing, or recovers, is waited for without using up the cap; not
    without an end where no signal of it arrives any more, unless it failed last.
    """
    broker, state = demoted.broker, verdict.state
    if state is HealthState.SICK:
        by = DemotedBroker(broker, Cause.SIGNALS, verdict.reason, verdict.message, demoted.since, verdict.signal)
        return {broker: by}
    starting = verdict.restarted is not None or verdict.resumed is not None
    if state is HealthState.HEALTHY or (state is HealthState.SUSPECT and not starting):
        return {}
    unasked = broker not in snapshot.signals_about  # its health cannot be confirmed
    fine = demoted.cause is Cause.OVERRIDE and verdict.known_state in (None, HealthState.HEALTHY, HealthState.SUSPECT)
    failing = verdict.known_state is HealthState.SICK or verdict.failing_evidence
    overdue = not failing and snapshot.now - verdict.since > RESTORE_TIMEOUT
    if state is HealthState.UNKNOWN and (unasked or fine or overdue):
        return {}
    ended = "Maintenance" if demoted.cause is Cause.MAINTENANCE else "The override"
    text = f"{ended} has ended; the leaders are restored once the broker is healthy."
    return {broker: replace(demoted, reason=Reason.STABILIZING, message=text)}


def _demoted(
    before: DemotedBroker | None, snapshot: Snapshot, broker: int, cause: Cause, message: str
) -> DemotedBroker:
    since = before.since if before is not None else snapshot.now
    reason = Reason.OVERRIDE_DEMOTED if cause is Cause.OVERRIDE else Reason.MANUAL_COMMAND
    return DemotedBroker(broker, cause, reason, message or DESCRIPTIONS[reason], since)
