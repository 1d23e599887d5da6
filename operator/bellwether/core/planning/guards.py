"""Why a partition's move may not happen now: ordered lists of small named functions; the first refusal wins.

Pure. ``plan`` asks before it plans a move, ``rebalance.waves`` before a move of a rebalance plan becomes a baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.refusals import Hold, Refusal, back_off, contest_delay
from bellwether.core.model.snapshot import RefusedOrder, Snapshot
from bellwether.core.model.strimzi import Blocker
from bellwether.core.model.undo_record import UndoEntry
from bellwether.core.reasons import Reason


class ProposedOrder(NamedTuple):
    """A partition, the order that is wanted for it, what the undo record says of it, and the time."""

    partition: Partition
    target: tuple[int, ...]
    entry: UndoEntry | None
    now: datetime
    refused: RefusedOrder | None = None
    external_operation: Blocker | None = None
    """Why whatever can wait does: others work on the cluster."""
    for_racks: bool = False
    """Whether nothing but preferred racks asks for it: nobody who holds it is kept from leading."""


ReorderGuard = Callable[[ProposedOrder], "Refusal | None"]


def reassigning(proposal: ProposedOrder) -> Refusal | None:
    """A partition in reassignment is left alone (law 10)."""
    partition = proposal.partition
    if not partition.reassigning:
        return None
    text = f"replicas are being added {list(partition.adding)} or removed {list(partition.removing)}"
    return Refusal(Reason.REASSIGNING, text)


def contested(proposal: ProposedOrder) -> Refusal | None:
    """Whoever overwrites our order gets time before it is asserted again (law 9)."""
    entry = proposal.entry
    if entry is None or entry.contested_at is None or proposal.target == proposal.partition.replicas:
        return None
    if proposal.now - entry.contested_at >= contest_delay(entry):
        return None
    return Refusal(Reason.CONTESTED, f"overwritten {entry.contests} times by somebody else; asserted again in time")


def external_operation_running(proposal: ProposedOrder) -> Refusal | None:
    """While others work on the cluster, what they overwrote is not asserted again, and racks wait (law 10)."""
    entry, busy = proposal.entry, proposal.external_operation
    if busy is None or not (proposal.for_racks or (entry is not None and entry.contests)):
        return None
    if proposal.target == proposal.partition.replicas or (entry is not None and proposal.target == entry.baseline):
        return None
    return Refusal(busy.reason, busy.message)


def refused_before(proposal: ProposedOrder) -> Refusal | None:
    """What Kafka has refused is asked again, ever more rarely (law 8)."""
    refused = proposal.refused
    if refused is None or refused.order != proposal.target or proposal.target == proposal.partition.replicas:
        return None
    if proposal.now - refused.at >= back_off(refused.times):
        return None
    return Refusal(Reason.REORDER_REFUSED, refused.message)


REORDER_GUARDS: tuple[ReorderGuard, ...] = (
    reassigning,  # replicas are moving: not our turn
    contested,  # somebody else insists: back off
    external_operation_running,  # whoever runs the cluster is moving things: theirs first
    refused_before,  # Kafka said no to this very order: ask again later
)


def refuse_reorder(proposal: ProposedOrder) -> Refusal | None:
    """The first reason not to touch the partition's order now, if any."""
    for guard in REORDER_GUARDS:
        refusal = guard(proposal)
        if refusal is not None:
            return refusal
    return None


def refuse_election(
    partition: Partition,
    target: tuple[int, ...],
    demoted: frozenset[int],
    chosen: int | None,
    snapshot: Snapshot,
) -> Refusal | None:
    """Why the first of the target order cannot be elected now: never outside the ISR, and never a worse leader."""
    touched = not demoted.isdisjoint(partition.replicas)
    if touched and len(partition.replicas) == 1:
        return Refusal(Reason.ONLY_REPLICA, "the demoted broker holds the only replica; raise its replication factor")
    if touched and set(partition.replicas) <= demoted:
        return Refusal(Reason.ALL_REPLICAS_DEMOTED, "every replica is on a demoted broker")
    if touched and chosen is None:
        away = [r for r in partition.replicas if r not in demoted]
        return Refusal(Reason.NO_HEALTHY_ISR_MEMBER, f"of the other replicas {away} none is live and in the ISR")
    first = target[0]
    if first not in partition.isr or first not in snapshot.cluster.live:
        text = f"broker {first}, first in its order, is not in the ISR or not alive; elected when it is back"
        return Refusal(Reason.PREFERRED_NOT_IN_ISR, text)
    return None


def remember_refusals(
    before: Mapping[PartitionKey, RefusedOrder],
    holds: Iterable[Hold],
    targets: Mapping[PartitionKey, tuple[int, ...]],
    now: datetime,
) -> dict[PartitionKey, RefusedOrder]:
    """What Kafka has refused so far, with what it refused in this turn; forgotten once another order is wanted."""
    known = {key: refused for key, refused in before.items() if targets.get(key) == refused.order}
    for hold in holds:
        if hold.reason is Reason.REORDER_REFUSED and hold.key in targets:
            times = known[hold.key].times + 1 if hold.key in known else 1
            known[hold.key] = RefusedOrder(targets[hold.key], times, now, hold.message)
    return known
