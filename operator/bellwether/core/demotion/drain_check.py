"""Check whether a broker may be drained, and then stopped: its partitions must keep a leader and accept writes.

``drain_blocker`` is called by ``decisions`` before a broker in maintenance is demoted; one whose drain is held is
judged by its signals. ``stop_check`` is called by ``broker_report`` once it leads nothing (invariant 13). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from bellwether.core.demotion.cap import cap_reached, demoted_by_signals, is_shared, let_idle_lead
from bellwether.core.detection.context import Context
from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.listing import few, named
from bellwether.core.model.cluster import Partition
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.core.model.maintenance import Maintenance
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason

NAMED = 3
"""How many partitions a message names."""


class StopCheck(NamedTuple):
    """Whether a drained broker may be stopped, and why or why not."""

    safe: bool
    reason: Reason
    message: str


def drain_blocker(why: Maintenance, kept: Mapping[int, DemotedBroker], context: Context) -> Refusal | None:
    """Why the broker may not be drained now, if so. A partition that no other can lead stays, and blocks nothing.

    ``kept`` are all demoted brokers. The cap applies to a pod's restart, as to every unrequested change; it does not
    apply to a person's request (invariant 4).
    """
    broker, live = why.broker, context.snapshot.cluster.live
    if broker in live and not live - set(kept) - context.sick_or_down - {broker}:
        remedy = let_idle_lead(kept, context) or "repair another broker first"
        text = f"no other broker is live, healthy and free to lead: {remedy}"
        return Refusal(Reason.ANOTHER_BROKER_UNHEALTHY, text)
    return None if why.asked else _over_the_cap(broker, kept, context)


def in_order_of_drain(demoted: Mapping[int, DemotedBroker]) -> list[int]:
    """Demoted brokers in maintenance, the first to be drained first."""
    return sorted((b for b, one in demoted.items() if one.drained_since), key=lambda b: (demoted[b].drained_since, b))


def stays_on(broker: int, demoted: Mapping[int, DemotedBroker], snapshot: Snapshot) -> list[Partition]:
    """Partitions that have no leader without the broker and those that were drained before it."""
    staying = snapshot.cluster.live - _stopping(broker, demoted)
    return [p for p in snapshot.cluster.held_by(broker) if broker in p.isr and staying.isdisjoint(p.isr)]


def stop_check(why: Maintenance, demoted: Mapping[int, DemotedBroker], snapshot: Snapshot) -> StopCheck:
    """Whether a broker that leads nothing may be stopped. ``demoted`` are the brokers that the policy keeps demoted.

    The controllers must keep a majority, every partition on it a leader and ``min.insync.replicas`` live ISR members,
    or the person who drains it must accept that it does not keep the latter. What could not be read counts as not kept,
    and can be accepted in the same way.
    """
    broker, live, floors = why.broker, snapshot.cluster.live, snapshot.floors
    safe = StopCheck(True, Reason.LEADS_NOTHING, "it is safe to stop")
    if snapshot.cluster.immovable:
        return StopCheck(False, Reason.NO_EVIDENCE, snapshot.cluster.immovable)
    if broker in snapshot.cluster.unlisted:
        return StopCheck(False, Reason.LISTENER_MISSING, snapshot.cluster.without_listener(broker))
    if broker not in live:
        return safe  # it has stopped already
    stopping = _stopping(broker, demoted)
    if stranded := stays_on(broker, demoted, snapshot):
        return StopCheck(False, Reason.NO_FAULT_TOLERANCE, stranded_message(broker, stranded))
    tolerance = snapshot.fault_tolerance or FaultTolerance(problem="it was not read")
    if tolerance.quorum is not None and (shortage := tolerance.quorum.shortage_without(broker, others=stopping)):
        return StopCheck(False, Reason.NO_FAULT_TOLERANCE, f"{shortage}: wait until another controller is in sync")
    held, staying = snapshot.cluster.held_by(broker), live - stopping
    short = [p for p in held if p.topic in floors and len(staying.intersection(p.isr)) < _least(p, floors)]
    unread = sorted({p.topic for p in held} - floors.keys())
    if short:
        full = sum(len(p.replicas) <= _least(p, floors) for p in short)
        reason = Reason.NO_FAULT_TOLERANCE
        remedy = _remedy(f"raise the replication factor or lower {MIN_ISR}", full, len(short))
        text = _short_text(short, stopping, floors)
    elif unread:
        reason, remedy = Reason.NO_EVIDENCE, "grant the ACL DescribeConfigs on Topic *"
        text = f"{MIN_ISR} of {len(unread)} topics is not known ({few(unread, NAMED)})"
    elif tolerance.quorum is None:
        reason, remedy = Reason.NO_EVIDENCE, "wait until it is read"
        if tolerance.lasting:
            remedy = "act on that, as waiting does not help"
        text = f"whether the controllers keep a majority without broker {broker} is not known ({tolerance.problem})"
    else:
        return safe
    if why.accept_unavailable_writes:
        text = f"it leads nothing; {text}, which spec.override.acceptUnavailableWrites accepts"
        return StopCheck(True, Reason.LEADS_NOTHING, text)
    if why.asked:
        remedy += ", or set spec.override.acceptUnavailableWrites (bellwether drain --accept-unavailable-writes)"
    return StopCheck(False, reason, f"{text}: {remedy}")


def _stopping(broker: int, demoted: Mapping[int, DemotedBroker]) -> set[int]:
    """The broker, and those whose drain began earlier: they may stop at any moment, and do not wait for this one."""
    drained = in_order_of_drain(demoted)
    return {broker, *drained[: drained.index(broker) if broker in drained else len(drained)]}


def _least(partition: Partition, floors: Mapping[str, int]) -> int:
    """``min.insync.replicas`` as the leader applies it."""
    return min(floors[partition.topic], len(partition.replicas))


def _short_text(short: list[Partition], stopping: Collection[int], floors: Mapping[str, int]) -> str:
    found = [
        f"{p.name}: ISR {sorted(p.isr)}, {MIN_ISR} {_least(p, floors)}" for p in sorted(short, key=lambda p: p.name)
    ]
    brokers = named(sorted(stopping), len(stopping))
    return f"{len(short)} partitions would refuse acks=all writes without {brokers} ({few(found, NAMED, '; ')})"


def _remedy(change: str, stuck: int, partitions: int) -> str:
    """To wait for other replicas, and a change of the ``stuck`` partitions, for which waiting does not help."""
    if stuck == partitions:
        return change
    wait = "wait until other replicas are in the ISR"
    return f"{wait}, and {change} of {stuck} of them" if stuck else wait


def stranded_message(broker: int, stranded: list[Partition]) -> str:
    """Which partitions have no leader without the broker, and the remedy."""
    first = few(sorted(p.name for p in stranded), NAMED)
    remedy = _remedy("raise the replication factor", sum(len(p.replicas) == 1 for p in stranded), len(stranded))
    text = f"{len(stranded)} partitions would have no leader without broker {broker} ({first}): {remedy}"
    return f"{text}, or stop it and accept that they are offline until it is back"


def _over_the_cap(broker: int, kept: Mapping[int, DemotedBroker], context: Context) -> Refusal | None:
    """A pod restart is not requested by a person: the cap counts those that signals or their pods keep from leading."""
    snapshot = context.snapshot
    cluster, maintenance = snapshot.cluster, snapshot.maintenance
    if broker not in cluster.live:
        return None
    restarting = sum(1 for b, why in maintenance.items() if b in cluster.live and not why.asked)
    if is_shared(restarting, len(cluster.live)):
        text = f"the pods of {restarting} of {len(cluster.live)} live brokers restart: no further broker is drained"
        return Refusal(Reason.SYSTEMIC_CAUSE, text)
    drained = {
        b
        for b, d in kept.items()
        if d.cause is Cause.MAINTENANCE and b in cluster.live and not (b in maintenance and maintenance[b].asked)
    }
    unasked = drained | demoted_by_signals(kept, snapshot)
    if len(unasked) < context.policy.demotion.cap(len(cluster.named)):
        return None
    text = cap_reached(unasked, "demoted by signals, or drained by a pod restart", context, beyond="request the drain")
    return Refusal(Reason.CAP_REACHED, text)
