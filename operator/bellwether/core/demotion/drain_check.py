"""Check whether a broker may be drained, and then stopped: its partitions must keep a leader and accept writes.

``drain_blocker`` is called by ``decisions`` before a broker in maintenance is demoted; a broker whose drain is held is
left unchanged. ``stop_check`` is called by ``broker_report`` once it leads nothing (invariant 13). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from bellwether.core.demotion.cap import cap_reached, demoted_by_signals, is_shared, let_idle_lead
from bellwether.core.detection.context import Context
from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.cluster import Partition
from bellwether.core.model.maintenance import Maintenance
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason

NAMED = 3
"""How many partitions a message names."""


class DrainBlocker(NamedTuple):
    """Why a broker is not drained now."""

    reason: Reason
    message: str


class StopCheck(NamedTuple):
    """Whether a drained broker may be stopped, and why or why not."""

    safe: bool
    reason: Reason
    message: str


def drain_blocker(
    why: Maintenance, kept: Mapping[int, DemotedBroker], drained: Collection[int], context: Context
) -> DrainBlocker | None:
    """Why the broker may not be drained now, if so.

    ``kept`` are all demoted brokers, ``drained`` those of them in maintenance, which may stop at any moment. The cap
    applies to a pod's restart, as to every unrequested change; it does not apply to a person's request (invariant 4).
    """
    broker, snapshot = why.broker, context.snapshot
    live = snapshot.cluster.live
    if broker in live and not live - set(kept) - context.sick_or_down - {broker}:
        remedy = let_idle_lead(kept, context) or "repair another broker first"
        text = f"no other broker is live, healthy and free to lead: {remedy}"
        return DrainBlocker(Reason.ANOTHER_BROKER_UNHEALTHY, text)
    stranded = [p for p in snapshot.cluster.held_by(broker) if _is_last_in_isr(p, broker, live - set(drained))]
    if stranded:
        return DrainBlocker(Reason.NO_FAULT_TOLERANCE, _stranded_message(broker, stranded))
    if why.asked:
        return None
    return _over_the_cap(broker, kept, context)


def stop_check(why: Maintenance, demoted: Mapping[int, DemotedBroker], snapshot: Snapshot) -> StopCheck:
    """Whether a broker that leads nothing may be stopped. ``demoted`` are the brokers that the policy keeps demoted.

    Every partition on it must keep a leader and ``min.insync.replicas`` live ISR members, or the person who drains it
    must accept that it does not keep the latter. A setting that could not be read counts as not kept.
    """
    broker, live, floors = why.broker, snapshot.cluster.live, snapshot.floors
    safe = StopCheck(True, Reason.LEADS_NOTHING, "it is safe to stop")
    if broker in snapshot.cluster.unlisted:
        return StopCheck(False, Reason.LISTENER_MISSING, snapshot.cluster.without_listener(broker))
    if broker not in live:
        return safe  # it has stopped already
    stopping = {broker, *_drained_before(broker, demoted, snapshot)}
    held, staying = snapshot.cluster.held_by(broker), live - stopping
    stranded = [p for p in held if _is_last_in_isr(p, broker, staying)]
    if stranded:
        return StopCheck(False, Reason.NO_FAULT_TOLERANCE, _stranded_message(broker, stranded))
    short = [p for p in held if p.topic in floors and len(staying.intersection(p.isr)) < _least(p, floors)]
    unread = sorted({p.topic for p in held} - floors.keys())
    if short:
        reason, remedy = Reason.NO_FAULT_TOLERANCE, _remedy(short, floors)
        text = _short_text(short, stopping, floors)
    elif unread:
        reason, remedy = Reason.NO_EVIDENCE, "grant the ACL DescribeConfigs on Topic *"
        text = f"{MIN_ISR} of {len(unread)} topics is not known ({_first(unread)})"
    else:
        return safe
    if why.accept_unavailable_writes:
        text = f"it leads nothing; {text}, which spec.override.acceptUnavailableWrites accepts"
        return StopCheck(True, Reason.LEADS_NOTHING, text)
    if why.asked:
        remedy += ", or set spec.override.acceptUnavailableWrites (bellwether drain --accept-unavailable-writes)"
    return StopCheck(False, reason, f"{text}: {remedy}")


def _drained_before(broker: int, demoted: Mapping[int, DemotedBroker], snapshot: Snapshot) -> set[int]:
    """Brokers whose drain began earlier: they may stop at any moment, and do not wait for this one."""
    own = demoted[broker].since
    return {b for b, d in demoted.items() if b in snapshot.maintenance and (d.since, b) < (own, broker)}


def _least(partition: Partition, floors: Mapping[str, int]) -> int:
    """``min.insync.replicas`` as the leader applies it."""
    return min(floors[partition.topic], len(partition.replicas))


def _short_text(short: list[Partition], stopping: Collection[int], floors: Mapping[str, int]) -> str:
    named = [
        f"{p.name}: ISR {sorted(p.isr)}, {MIN_ISR} {_least(p, floors)}" for p in sorted(short, key=lambda p: p.name)
    ]
    brokers = f"broker{'s' if len(stopping) > 1 else ''} {', '.join(map(str, sorted(stopping)))}"
    return f"{len(short)} partitions would refuse acks=all writes without {brokers} ({_first(named, '; ')})"


def _remedy(short: list[Partition], floors: Mapping[str, int]) -> str:
    full = sum(1 for p in short if len(p.replicas) <= _least(p, floors))
    lower = f"raise the replication factor or lower {MIN_ISR}"
    if full == len(short):
        return lower
    wait = "wait until other replicas are in the ISR"
    return f"{wait}, and {lower} of {full} of them" if full else wait


def _first(named: list[str], separator: str = ", ") -> str:
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return separator.join(named[:NAMED]) + more


def _is_last_in_isr(partition: Partition, broker: int, staying: Collection[int]) -> bool:
    """Whether the broker is the last ISR member that stays: no other could lead once it has stopped."""
    return broker in partition.isr and not any(r in staying for r in partition.isr if r != broker)


def _stranded_message(broker: int, stranded: list[Partition]) -> str:
    first = _first([str(p.name) for p in sorted(stranded, key=lambda p: p.name)])
    single = sum(1 for p in stranded if len(p.replicas) == 1)
    remedy = "raise the replication factor" if single == len(stranded) else "wait until other replicas are in the ISR"
    if 0 < single < len(stranded):
        remedy = f"{remedy}, and raise the replication factor of {single} of them"
    text = f"{len(stranded)} partitions would have no leader without broker {broker} ({first}): {remedy}"
    return f"{text}, or set an override without spec.override.purpose"


def _over_the_cap(broker: int, kept: Mapping[int, DemotedBroker], context: Context) -> DrainBlocker | None:
    """A pod restart is not requested by a person: the cap counts those that signals or their pods keep from leading."""
    snapshot = context.snapshot
    cluster, maintenance = snapshot.cluster, snapshot.maintenance
    if broker not in cluster.live:
        return None
    restarting = sum(1 for b, why in maintenance.items() if b in cluster.live and not why.asked)
    if is_shared(restarting, len(cluster.live)):
        text = f"the pods of {restarting} of {len(cluster.live)} live brokers restart: no further broker is drained"
        return DrainBlocker(Reason.SYSTEMIC_CAUSE, text)
    drained = {
        b
        for b, d in kept.items()
        if d.cause is Cause.MAINTENANCE and b in cluster.live and not (b in maintenance and maintenance[b].asked)
    }
    unasked = drained | demoted_by_signals(kept, snapshot)
    if len(unasked) < context.policy.demotion.cap(len(cluster.named)):
        return None
    text = cap_reached(unasked, "demoted by signals, or drained by a pod restart", context, beyond="request the drain")
    return DrainBlocker(Reason.CAP_REACHED, text)
