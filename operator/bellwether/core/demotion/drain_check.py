"""Check whether a broker may be drained: other brokers must be able to lead its partitions once it has stopped.

Called by ``decisions`` before a broker in maintenance is demoted. Pure; a broker whose drain is held is left unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Partition
from bellwether.core.model.maintenance import Maintenance
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Policy

NAMED = 3
"""How many partitions a message names."""


class DrainBlocker(NamedTuple):
    """Why a broker is not drained now."""

    reason: Reason
    message: str


def drain_blocker(
    why: Maintenance,
    kept: Collection[int],
    drained: Collection[int],
    snapshot: Snapshot,
    verdicts: Mapping[int, Verdict],
    policy: Policy,
) -> DrainBlocker | None:
    """Why the broker may not be drained now, if so.

    ``kept`` are all demoted brokers, ``drained`` those of them in maintenance, which may stop at any moment. The cap
    applies to a pod's restart, as to every unrequested change; it does not apply to a person's request (invariant 4).
    """
    broker, live = why.broker, snapshot.cluster.live
    unhealthy = {b for b, v in verdicts.items() if v.state in (HealthState.SICK, HealthState.DOWN)}
    if broker in live and not live - set(kept) - unhealthy - {broker}:
        text = "no other broker is live, healthy and free to lead: promote another broker first"
        return DrainBlocker(Reason.LAST_HEALTHY_BROKER, text)
    stranded = [p for p in snapshot.cluster.held_by(broker) if _is_last_in_isr(p, broker, live - set(drained))]
    if stranded:
        return DrainBlocker(Reason.NO_LEADER_LEFT, _stranded_message(broker, stranded))
    if why.asked:
        return None
    down = {b for b, v in verdicts.items() if v.state is HealthState.DOWN}
    return _over_the_cap(broker, set(kept) | down, unhealthy, snapshot, policy)


def _is_last_in_isr(partition: Partition, broker: int, staying: Collection[int]) -> bool:
    """Whether the broker is the last ISR member that stays: no other could lead once it has stopped."""
    return broker in partition.isr and not any(r in staying for r in partition.isr if r != broker)


def _stranded_message(broker: int, stranded: list[Partition]) -> str:
    first = ", ".join(str(p.name) for p in sorted(stranded, key=lambda p: p.name)[:NAMED])
    more = f" and {len(stranded) - NAMED} more" if len(stranded) > NAMED else ""
    single = sum(1 for p in stranded if len(p.replicas) == 1)
    remedy = "raise the replication factor" if single == len(stranded) else "wait until other replicas are in the ISR"
    if 0 < single < len(stranded):
        remedy = f"{remedy}, and raise the replication factor of {single} of them"
    text = f"{len(stranded)} partitions would have no leader without broker {broker} ({first}{more}): {remedy}"
    return f"{text}, or set an override without spec.override.purpose"


def _over_the_cap(
    broker: int, others: set[int], unhealthy: set[int], snapshot: Snapshot, policy: Policy
) -> DrainBlocker | None:
    named = snapshot.cluster.named
    cannot_lead = ((named - snapshot.cluster.live) | others) & named
    if broker in cannot_lead:
        return None  # it counts already
    unavailable = len((cannot_lead | unhealthy | {broker}) & named)
    if 2 * unavailable >= len(named):
        text = (
            f"{unavailable} of {len(named)} brokers cannot lead, are sick or restart: no further broker is drained for"
            " its pod"
        )
        return DrainBlocker(Reason.SYSTEMIC_CAUSE, text)
    cap = policy.demotion.cap(len(named))
    if len(cannot_lead) < cap:
        return None
    text = f"{len(cannot_lead)} of {len(named)} brokers already cannot lead; the cap is {cap}"
    return DrainBlocker(Reason.CAP_REACHED, f"{text} (spec.demotion.maxBrokers)")
