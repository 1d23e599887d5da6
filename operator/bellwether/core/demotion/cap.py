"""Apply the cap: how many brokers signals may demote, and when a shared cause demotes no further broker (invariant 4).

In: brokers to demote. Out: those admitted, and a hold with the reason for each of the others. Called by ``decide``.
The cap limits what wrong signals can do. So only live brokers that signals demoted use it up: a dead broker is
explained by Kafka, and a manual demotion or a drain by the person who requested it. Whether the others can carry the
leaders is decided for each partition, by its ISR and by ``spec.demotion.capacity``.

The dwell time is how long the harm of a broker is known before it is demoted, so that a common cause can be seen; why
half of it can be enough: docs/decisions/0052.

Harm is compared, brokers are not only counted: a ``FAR_HEAVIER`` fault shares no cause with lighter ones, and one such
broker may exceed the cap (docs/decisions/0094).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from bellwether.core.detection.context import Context
from bellwether.core.detection.findings import quorum
from bellwether.core.detection.health_states import SHOULD_NOT_LEAD, HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.listing import named
from bellwether.core.model.loads import NO_LOADS, LeaderLoads, count_unplaceable
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.signals import SIGNALS, Reading, Signal

FAR_HEAVIER = 4.0
"""Clients of one broker lose this multiple of another's: not the same cause, and not a place of the cap worth keeping.

What sources report of the same harm differs by REPORT_RATIO, and by half of it while a fault is a few seconds old.
"""

LATE = 1 / 8
"""What a late answer counts against none at all, for a place of the cap."""

UNANSWERED = (Reason.EXTERNALLY_UNREACHABLE, Reason.FREEZING, Reason.NOT_FENCED_IN_TIME, Reason.CANARY_FAILING)
"""Reasons by which clients get no answer; by all others they get a late one, or are not known to lose any."""

BY_OVERRIDE = "demote by an override"
"""What the cap does not limit."""

_PASSING = (HealthState.HEALTHY, HealthState.RECOVERING)
_LED_AGAIN_BY: Mapping[Cause, str] = {Cause.OVERRIDE: "release", Cause.COMMAND: "promote"}
"""Verb that ends a demotion by a person."""

_SAME_SYMPTOM: Mapping[str, str] = {
    Reason.UNREACHABLE: Reason.EXTERNALLY_UNREACHABLE,
    Reason.SYSTEMIC_CAUSE: Reason.STORAGE_SLOW,
    **{reason: one.symptom for one in SIGNALS.values() if one.symptom for reason in one.reasons},
}
"""Reasons that the same cause can give on different brokers. A broker's own ``SystemicCause`` is a slow disk."""
_HARMED: Mapping[str, str] = {
    type_: one.symptom for type_, one in SIGNALS.items() if one.symptom and not one.by_reading
}
"""Symptom of a Suspect broker whose probes lose requests, by the type of its signal."""


_NOT_SICK = (Reason.HARM_BELOW_COST, Reason.SYSTEMIC_CAUSE, Reason.LOG_DIR_SLOW)
"""Reasons of Suspect brokers whose probes lose requests."""


def symptom(verdict: Verdict) -> str | None:
    """What a failing broker shows, for comparison between brokers; None if its clients lose nothing by it.

    A Suspect broker shows a symptom while its harm is below the cost of a move, in some of its log directories only, or
    no larger than its peers': of brokers that one cause affects, some reach the cost before the others, and one may
    have lost something before.
    """
    if verdict.reason in _NOT_SICK and verdict.signal in _HARMED:
        return _HARMED[verdict.signal]
    return _symptom_of(verdict.reason, verdict.signal) if verdict.state in SHOULD_NOT_LEAD else None


def _symptom_of(reason: str, signal: str) -> str:
    """Symptom of a reason; ``SignalFailing`` is a different one for each type of signal."""
    if reason == Reason.SIGNAL_FAILING and signal:
        return f"{reason}: {signal}"
    return _SAME_SYMPTOM.get(reason, reason)


def is_shared(affected: int, live: int) -> bool:
    """Whether a symptom of so many live brokers has a shared cause: at least two of them, and at least half."""
    return affected > 1 and 2 * affected >= live


def demoted_by_signals(demoted: Mapping[int, DemotedBroker], snapshot: Snapshot) -> set[int]:
    """Brokers that use up the cap: those that signals demoted and that are live."""
    return {b for b, d in demoted.items() if d.cause is Cause.SIGNALS and b in snapshot.cluster.live}


def admit_within_cap(
    candidates: list[Verdict], kept: Mapping[int, DemotedBroker], context: Context
) -> tuple[list[Verdict], list[BrokerHold]]:
    """Invariant 4: which of the sick brokers may be demoted now. ``kept`` are all brokers that stay demoted."""
    if not candidates:
        return [], []
    worst_first = sorted(candidates, key=lambda v: (-v.severity, v.since, v.broker))
    shown = _shown(kept, context)
    lost = {v.broker: lost_share(v.broker, symptom(v), context) or 0.0 for v in worst_first}
    causes = {b: text for b, share in lost.items() if (text := _shared_by(shown, context, share))}
    shared = [BrokerHold(broker, Reason.SYSTEMIC_CAUSE, text) for broker, text in causes.items()]
    # First whether a better leader is left: a higher cap would not help a broker for which there is none.
    admitted, last = _leave_a_leader([v for v in worst_first if v.broker not in causes], kept, context)
    refused = list[BrokerHold]()
    if not _one_failure_domain(kept, context):
        admitted, refused = _most_severe(admitted, kept, context)
    return admitted, shared + last + refused


def shared_symptom(kept: Mapping[int, DemotedBroker], context: Context) -> str | None:
    """Message if half of the live brokers or more show the same symptom. A dead broker shows none."""
    return _shared_by(_shown(kept, context), context)


def _shared_by(shown: list[tuple[str, float | None]], context: Context, lost: float = 0.0) -> str | None:
    """The same, without those known to lose far less than ``lost``: a broker that loses so much shares nothing with
    them.
    """
    live = len(context.snapshot.cluster.live)
    alike = Counter(found for found, other in shown if not _far_heavier(lost, other))
    for reason, affected in alike.most_common(1):
        if is_shared(affected, live):
            return (
                f"{affected} of {live} live brokers have the same symptom ({reason}), probably a shared cause: no"
                " further broker is demoted"
            )
    return None


def _shown(kept: Mapping[int, DemotedBroker], context: Context) -> list[tuple[str, float | None]]:
    """The symptom of each live broker that shows one, and the share of requests that it loses by it."""
    found = ((b, _shown_by(b, kept, context)) for b in sorted(context.snapshot.cluster.live))
    return [(shown, lost_share(b, shown, context)) for b, shown in found if shown is not None]


def _shown_by(broker: int, kept: Mapping[int, DemotedBroker], context: Context) -> str | None:
    """A broker's symptom. One that signals demoted keeps its symptom until all its signals pass."""
    verdict, demoted = context.verdicts[broker], kept.get(broker)
    shown = symptom(verdict)
    if shown is None and demoted is not None and demoted.cause is Cause.SIGNALS and verdict.state not in _PASSING:
        return _symptom_of(demoted.reason, demoted.signal)
    return shown


def lost_share(broker: int, shown: str | None, context: Context) -> float | None:
    """The share of requests that probes lose by a symptom, 0 to 1: over the last seconds, or over its whole episode if
    that is more, as it is in the first seconds. None where no failing source measures it.

    A quorum of vantages agrees on it; of several log directories the worst counts. A failing source without figures has
    applied a threshold, and counts as losing all.
    """
    about = [s for s in context.snapshot.signals_about.get(broker, ()) if _HARMED.get(s.type) == shown]
    shares = sorted((_share_of(s, context) for s in about if s.reading is Reading.FAILING), reverse=True)
    vantages = len(context.policy.detection.external_reachability.vantages) or len(about)
    need = quorum(vantages) if shown in UNANSWERED else 1
    return shares[min(need, len(shares)) - 1] if shares else None


def _share_of(signal: Signal, context: Context) -> float:
    if (harm := signal.harm) is None:
        return 1.0
    seconds = max((context.snapshot.now - harm.since).total_seconds(), harm.lost_seconds, 1.0)
    return max(harm.share, harm.lost_seconds / seconds)


def _far_heavier(lost: float, other: float | None) -> bool:
    return other is not None and lost >= FAR_HEAVIER * other


def _weight(broker: int, reason: str, context: Context, unknown: float) -> float:
    """How much clients would lose by a broker if it led, 0 to 1."""
    if reason not in UNANSWERED or context.verdicts[broker].state in _PASSING:
        return LATE
    known = lost_share(broker, _SAME_SYMPTOM.get(reason, reason), context)
    return unknown if known is None else max(known, LATE)


def _one_beyond(refused: list[Verdict], kept: Mapping[int, DemotedBroker], context: Context) -> list[Verdict]:
    """The first broker whose fault is far heavier than one that uses up the cap, if the others have room for it."""
    snapshot, capacity = context.snapshot, context.policy.demotion.capacity
    lightest = min(_weight(b, kept[b].reason, context, unknown=1.0) for b in demoted_by_signals(kept, snapshot))
    heavier = [v for v in refused if _far_heavier(_weight(v.broker, v.reason, context, unknown=0.0), lightest)]
    for verdict in heavier[:1]:
        others = snapshot.cluster.live.difference(kept, snapshot.maintenance, {verdict.broker})
        if not capacity.bounded or not _count_overload({verdict.broker}, others, context):
            return [verdict]
    return []


def _most_severe(
    worst_first: list[Verdict], kept: Mapping[int, DemotedBroker], context: Context
) -> tuple[list[Verdict], list[BrokerHold]]:
    """The most severe ones, up to the cap, and one beyond it that is far heavier than one of those."""
    snapshot, policy = context.snapshot, context.policy
    used = demoted_by_signals(kept, snapshot)
    room = policy.demotion.cap(len(snapshot.cluster.named)) - len(used)
    admitted = worst_first[:room] if room > 0 else _one_beyond(worst_first, kept, context) if room == 0 else []
    refused = [v for v in worst_first if v not in admitted]
    counted = used.union(v.broker for v in admitted)
    text = cap_reached(counted, "demoted by signals", context, let_idle_lead(kept, context), held=len(refused))
    return admitted, [BrokerHold(v.broker, Reason.CAP_REACHED, text) for v in refused]


def let_idle_lead(kept: Mapping[int, DemotedBroker], context: Context) -> str:
    """The first remedy: let a healthy broker lead that a person keeps from it. Empty if there is none."""
    live, verdicts, policy = context.snapshot.cluster.live, context.verdicts, context.policy
    wanted = [b for b, found in kept.items() if found.by_person]
    idle = sorted(b for b in live.intersection(wanted) if verdicts[b].state in _PASSING)
    if not idle:
        return ""
    one, found = len(idle) == 1, kept[idle[0]]
    command = f"bellwether {_LED_AGAIN_BY[found.cause]} {idle[0]} --policy {policy.name} -n {policy.namespace}"
    return (
        f"first let {named(idle)} lead again, which {'is' if one else 'are'} healthy and demoted by a person"
        f" ({found.message}): {'' if one else 'for example '}{command}"
    )


def cap_reached(
    counted: Collection[int], how: str, context: Context, first: str = "", beyond: str = BY_OVERRIDE, *, held: int = 1
) -> str:
    """The field of the cap with its value, the brokers that count against it, and the remedies.

    ``first`` is a remedy that comes before the others, ``beyond`` what the cap does not limit. ``held``: how many
    brokers wait for it.
    """
    one, policy = len(counted) == 1, context.policy
    cap = policy.demotion.cap_words(len(context.snapshot.cluster.named))
    # Only a number: 49 %, the highest percentage, is 1 of 3 brokers.
    higher, patch = len(counted) + held, '{"spec":{"demotion":{"maxBrokers":%d}}}'
    return (
        f"{cap}, and {named(sorted(counted))} {'counts' if one else 'count'} against it ({how}):"
        f" {f'{first}; ' if first else ''}repair {'that one' if one else 'those'}, or set spec.demotion.maxBrokers to"
        f" the number {higher} if the others have capacity (kubectl patch lp {policy.name} -n {policy.namespace} --type"
        f" merge -p '{patch % higher}'), or {beyond}"
    )


def _leave_a_leader(
    worst_first: list[Verdict], kept: Mapping[int, DemotedBroker], context: Context
) -> tuple[list[Verdict], list[BrokerHold]]:
    """Demote a broker only while a better one is left to lead: the last one leads, rather than none."""
    leading = set(context.snapshot.cluster.live.difference(kept))
    admitted, held = [], []
    for verdict in worst_first:
        others = [context.verdicts[b] for b in leading if b != verdict.broker]
        less_sick = (o.state is HealthState.SICK and o.severity < verdict.severity for o in others)
        if any(o.state not in SHOULD_NOT_LEAD for o in others) or any(less_sick):
            leading.discard(verdict.broker)
            admitted.append(verdict)
        else:
            remedy = let_idle_lead(kept, context)
            remedy = remedy or "repair one, or end the drain or override that keeps one from leading"
            text = f"no other broker is live, less sick and free to lead: {remedy}"
            held.append(BrokerHold(verdict.broker, Reason.CAP_REACHED, text))
    return admitted, held


def _one_failure_domain(kept: Mapping[int, DemotedBroker], context: Context) -> bool:
    """Whether all sick brokers are in one rack, and all others that may lead are healthy.

    Then they count as one failure, if each of their partitions keeps an ISR member on one of these others. Dead brokers
    and those that a person has demoted are neither.
    """
    snapshot, verdicts, cluster = context.snapshot, context.verdicts, context.snapshot.cluster
    racks = {b.rack for b in cluster.brokers.values()}
    if None in racks:
        return False
    sick = {b for b in cluster.live if verdicts[b].state in SHOULD_NOT_LEAD} | demoted_by_signals(kept, snapshot)
    others = cluster.live.difference(sick, kept)
    if any(verdicts[b].state is not HealthState.HEALTHY for b in others):
        return False
    if len({cluster.brokers[b].rack for b in sick}) > 1 or len(racks) == 1:
        return False
    if any(others.isdisjoint(p.isr) for p in cluster.partitions if not sick.isdisjoint(p.replicas)):
        return False
    return not context.policy.demotion.capacity.bounded or not _count_overload(sick, others, context)


def _count_overload(without: Collection[int], others: Collection[int], context: Context) -> int:
    """How many partitions led by these brokers would find no broker with room among the others."""
    snapshot = context.snapshot
    account = LeaderLoads(dict.fromkeys(others, 0), context.policy.demotion.capacity, snapshot.loads or NO_LOADS)
    wanting = []
    for partition in snapshot.cluster.partitions:
        if partition.leader in without:
            wanting.append((partition.key, tuple(b for b in partition.isr if b in others)))
        elif partition.leader is not None:
            account.add(partition.leader, partition.key)
    return count_unplaceable(account, wanting)


def dwell_left(verdict: Verdict, context: Context) -> float:
    """Seconds until a Sick broker may be demoted; 0 once it may.

    Half of the policy's time is enough for counted harm while every other broker is Healthy, which takes fresh
    evidence: harm by a cause that they share would be reported by then. Sources without figures report in their own
    time.
    """
    counted = any(lost for _, lost in verdict.harm)
    alone = counted and context.not_healthy <= {verdict.broker}
    wait = context.policy.demotion.dwell_seconds / (2 if alone else 1)
    noticed = verdict.noticed or verdict.since
    return max(0.0, wait - (context.snapshot.now - noticed).total_seconds())
