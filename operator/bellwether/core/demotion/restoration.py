"""Restore leaders to recovered brokers in waves: which brokers return, the next wave of each, and what blocks it.

In: the snapshot, verdicts, and which brokers are demoted or promoted. Out: the returning brokers with the share that
each may lead, and what blocks each. A share rises step by step while the broker is healthy, in sync and given time; it
falls only when the broker goes down. A broker that becomes sick is demoted again, which ends its restoration. Called by
``decisions``, whose cap counts a broker that is down; a returning broker may lead and does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Partition
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import RESTORE_TIMEOUT, Cause
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.settings.policy import PromotionWaves


@dataclass(frozen=True)
class Restorations:
    """The returning brokers, and what blocks the next wave of each."""

    returning: Mapping[int, ReturningBroker] = field(default_factory=dict)
    waits: Mapping[int, Refusal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RestorationProgress:
    """Progress of a broker's restoration: wave ``number`` of ``waves``, 0 before the first.

    ``withheld`` counts the partitions of later waves; ``wait`` is what blocks the next one. ``early`` counts partitions
    of later waves that it leads already, because no other healthy replica may lead them.
    """

    returning: ReturningBroker
    number: int
    waves: int
    withheld: int
    wait: Refusal | None = None
    early: int = 0

    @property
    def message(self) -> str:
        """One sentence, without anything that time alone changes."""
        text = f"wave {self.number} of {self.waves}: {self.returning.share} % of its leaders may be restored"
        if self.number == 0:
            text = f"its leaders are restored in {self.waves} waves"
        text += other_leaders_message(self.early)
        return text if self.wait is None else f"{text}; the next wave waits: {self.wait.message}"


def other_leaders_message(early: int, withheld: int = 0) -> str:
    """Addition to a message about a wave: how many leaders it does not hold back, and does; empty if none."""
    them = "it" if early == 1 else "them"
    now = f", and {early} more at once, as no other healthy replica may lead {them}" if early else ""
    return now + (f"; {withheld:,} wait{'s' if withheld == 1 else ''} for later waves" if withheld else "")


def advance_restorations(context: Context, kept: Collection[int], promoted: Collection[int]) -> Restorations:
    """Returning brokers from now on, with their waves; ``kept`` are demoted, ``promoted`` no longer."""
    snapshot, verdicts, waves = context.snapshot, context.verdicts, context.policy.promotion.waves
    continuing = {b: r for b, r in snapshot.record.returning.items() if b not in kept and b in verdicts}
    long_down = _long_down(snapshot, verdicts, waves)
    started = {b for b, r in continuing.items() if r.share == 0}
    coming = {*promoted, *long_down} - {*kept} - started if waves.steps[0] < 100 else set()
    fresh = {b: _beginning(b, snapshot, long_down) for b in coming if b in verdicts}
    if not continuing and not fresh:
        return Restorations()
    if fresh:
        due = _leaders_due(fresh, context)
        fresh = {b: r for b, r in fresh.items() if b in continuing or due[b] > waves.skip_up_to_leaders}
    returning, waits = {}, {}
    for broker, wave in sorted({**continuing, **fresh}.items()):
        if snapshot.promoted_by_override(broker):
            continue  # an override gives back all leaders at once
        after, wait = _advanced(wave, context)
        if after.share < 100:
            returning[broker] = after
            if wait is not None:
                waits[broker] = wait
    return Restorations(returning, waits)


def baseline_leader(partition: Partition, snapshot: Snapshot) -> int:
    """Leader once all brokers are back: the first of its baseline, or of its current order."""
    entry = snapshot.record.entries.get(partition.key)
    if entry is None or set(entry.baseline) != set(partition.replicas):
        return partition.replicas[0]
    return entry.baseline[0]


def eligible_leaders(partition: Partition, context: Context) -> Sequence[int]:
    """Eligible leaders once all brokers are back: the baseline leader, or all replicas in the best rack."""
    home, rankings = baseline_leader(partition, context.snapshot), context.rankings
    ranking = rankings.of(partition.topic) if rankings is not None else None
    return (home,) if ranking is None else ranking.eligible_leaders(home, partition.replicas)


def _long_down(snapshot: Snapshot, verdicts: Mapping[int, Verdict], waves: PromotionWaves) -> list[int]:
    """Brokers that have been down for so long that their leaders should return in steps.

    None while half of the brokers or more are down or an external operation runs (invariant 10): then Kafka's own
    behaviour is the safe one.
    """
    if not waves.min_downtime_seconds or snapshot.external_operation is not None:
        return []
    gone = snapshot.cluster.named - snapshot.cluster.live
    if 2 * len(gone) >= len(snapshot.cluster.named):
        return []
    long = timedelta(seconds=waves.min_downtime_seconds)
    down = (v for b, v in sorted(verdicts.items()) if b in gone and v.state is HealthState.DOWN)
    return [v.broker for v in down if snapshot.now - v.since >= long]


def _beginning(broker: int, snapshot: Snapshot, long_down: Collection[int]) -> ReturningBroker:
    demoted, trigger = snapshot.record.demoted.get(broker), RestorationTrigger.RELEASED
    if broker in long_down:
        trigger = RestorationTrigger.RESTARTED
    elif demoted is not None and demoted.cause is Cause.SIGNALS:
        trigger = RestorationTrigger.RECOVERED
    return ReturningBroker(broker, 0, snapshot.now, snapshot.now, trigger)


def _leaders_due(brokers: Collection[int], context: Context) -> dict[int, float]:
    """How many partitions each of these brokers should lead, and does not lead by its current order.

    Where any broker in a rack may lead, each counts its fraction.
    """
    due = dict.fromkeys(brokers, 0.0)
    for partition in context.managed.partitions:
        heirs = eligible_leaders(partition, context)
        for broker in heirs:
            if broker in due and (partition.leader, partition.replicas[0]) != (broker, broker):
                due[broker] += 1 / len(heirs)
    return due


def _advanced(wave: ReturningBroker, context: Context) -> tuple[ReturningBroker, Refusal | None]:
    """The broker in its next wave; or in this one, with the first reason why the next may not come now."""
    wait = _not_healthy(wave, context) or _too_soon(wave, context)
    if wait is not None:
        return wave, wait
    leaders = [p for p in context.managed.partitions if wave.broker in eligible_leaders(p, context)]
    share = context.policy.promotion.waves.after(wave.share)
    after = wave.with_share(share, context.snapshot.now, [p.key for p in leaders])
    wait = _out_of_sync(wave, after, leaders, context)
    return (after, None) if wait is None else (wave, wait)


def _not_healthy(wave: ReturningBroker, context: Context) -> Refusal | None:
    """A healthy broker gets more leaders; one that is only Suspect after a timeout, as that demotes no broker.

    If nothing is known of a broker that signals had not demoted, that is enough where no prober runs, and after a
    timeout in any case: without us Kafka would have returned its leaders long ago.
    """
    verdict, planned = context.verdicts[wave.broker], context.snapshot.maintenance.get(wave.broker)
    if planned is not None:
        return Refusal(planned.reason, f"it is in maintenance: {planned.message}")
    if verdict.slow is not None:
        return Refusal(verdict.slow, DESCRIPTIONS[verdict.slow])
    if verdict.state is HealthState.HEALTHY or (verdict.state is HealthState.SUSPECT and _overdue(wave, context)):
        return None
    unknown = verdict.state is HealthState.UNKNOWN and wave.trigger is not RestorationTrigger.RECOVERED
    if unknown and (not context.has_health_evidence or _overdue(wave, context)):
        return None
    return Refusal(verdict.reason, f"it is {verdict.state}: {verdict.message}")


def _too_soon(wave: ReturningBroker, context: Context) -> Refusal | None:
    """What others do, and the pause after the last wave."""
    if context.deferral is not None:
        return context.deferral
    pause = context.policy.promotion.waves.pause_seconds
    left = pause - (context.snapshot.now - wave.waved_at).total_seconds()
    if wave.share == 0 or left <= 0:
        return None
    return Refusal(Reason.RESTORING_IN_WAVES, f"{pause} s between waves", left)


def _out_of_sync(
    wave: ReturningBroker, after: ReturningBroker, leaders: Iterable[Partition], context: Context
) -> Refusal | None:
    """Partitions of the next wave must be in sync; with a timeout, as one lost log directory would block all others."""
    apart = (p for p in leaders if wave.broker in p.replicas and wave.broker not in p.isr and not p.reassigning)
    behind = [p.name for p in apart if wave.withholds(p.key) and not after.withholds(p.key)]
    if not behind or _overdue(wave, context):
        return None
    text = f"not in the ISR of {len(behind)} partitions, for example {behind[0]}"
    return Refusal(Reason.PREFERRED_NOT_IN_ISR, text)


def _overdue(wave: ReturningBroker, context: Context) -> bool:
    return context.snapshot.now - max(wave.waved_at, context.verdicts[wave.broker].since) > RESTORE_TIMEOUT
