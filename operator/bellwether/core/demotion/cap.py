"""Apply the cap: how many sick brokers may be demoted now, counting every broker that cannot lead (invariant 4).

In: brokers to demote. Out: those admitted, and a hold with the reason for each of the others. Called by ``decide``.
"""

from __future__ import annotations

from collections.abc import Collection

from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.loads import NO_LOADS, LeaderLoads, count_unplaceable
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import Cause
from bellwether.core.reasons import Reason


def admit_within_cap(
    candidates: list[Verdict], kept: frozenset[int], context: Context
) -> tuple[list[Verdict], list[BrokerHold]]:
    """Invariant 4: which of the sick brokers may be demoted now."""
    if not candidates:
        return [], []
    snapshot, verdicts, policy = context.snapshot, context.verdicts, context.policy
    worst_first = sorted(candidates, key=lambda v: (-v.severity, v.since, v.broker))
    down = {v.broker for v in verdicts.values() if v.state is HealthState.DOWN}
    maintained = snapshot.maintenance.keys() & snapshot.cluster.named
    cannot_lead = (snapshot.cluster.named - snapshot.cluster.live) | kept | down | maintained
    unhealthy = cannot_lead | {v.broker for v in candidates}
    total = len(snapshot.cluster.named)
    if 2 * len(unhealthy) >= total:
        asked = sum(1 for b, d in snapshot.record.demoted.items() if b in unhealthy and d.cause is not Cause.SIGNALS)
        cause = f"{asked} of them by a manual demotion" if asked else "probably a shared cause"
        text = f"{len(unhealthy)} of {total} brokers cannot lead or are sick ({cause}): no further broker is demoted"
        return [], [BrokerHold(v.broker, Reason.SYSTEMIC_CAUSE, text) for v in worst_first]
    cap = policy.demotion.cap(total)
    if _one_failure_domain(unhealthy, context):
        return worst_first, []
    room = max(0, cap - len(cannot_lead))
    text = f"{len(cannot_lead)} of {total} brokers already cannot lead; the cap is {cap} (spec.demotion.maxBrokers)"
    return worst_first[:room], [BrokerHold(v.broker, Reason.CAP_REACHED, text) for v in worst_first[room:]]


def _one_failure_domain(unhealthy: frozenset[int] | set[int], context: Context) -> bool:
    """Whether all unhealthy brokers are in one rack, and all other brokers are healthy.

    Then they count as one failure, if each of their partitions keeps a live ISR member elsewhere.
    """
    cluster, demotion = context.snapshot.cluster, context.policy.demotion
    brokers = cluster.brokers
    racks = {b.rack for b in brokers.values()}
    if None in racks or any(b not in brokers for b in unhealthy):
        return False
    if any(v.state is HealthState.SUSPECT for v in context.verdicts.values() if v.broker not in unhealthy):
        return False
    if len({brokers[b].rack for b in unhealthy}) > 1 or len(racks) == 1:
        return False
    safe = cluster.live - unhealthy
    if not all(safe & set(p.isr) for p in cluster.partitions if not unhealthy.isdisjoint(p.replicas)):
        return False
    return not demotion.capacity.bounded or not _count_overload(unhealthy, context)


def _count_overload(without: Collection[int], context: Context) -> int:
    """How many partitions led by these brokers would find no broker with room among the others."""
    snapshot = context.snapshot
    safe = snapshot.cluster.live.difference(without)
    account = LeaderLoads(dict.fromkeys(safe, 0), context.policy.demotion.capacity, snapshot.loads or NO_LOADS)
    wanting = []
    for partition in snapshot.cluster.partitions:
        if partition.leader in without:
            wanting.append((partition.key, tuple(b for b in partition.isr if b in safe)))
        elif partition.leader is not None:
            account.add(partition.leader, partition.key)
    return count_unplaceable(account, wanting)
