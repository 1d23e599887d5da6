"""Guards: why a partition's move may not happen now. Ordered lists of small functions; the first refusal wins.

Pure. Used by ``plan`` before a move is planned, and by ``waves.rebalance_waves`` before a move of a rebalance plan
becomes a baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.refusals import Hold, Refusal, back_off
from bellwether.core.model.snapshot import RefusedOrder, Snapshot
from bellwether.core.model.undo_record import UndoEntry
from bellwether.core.reasons import DESCRIPTIONS, Reason


class ProposedOrder(NamedTuple):
    """A partition, the order proposed for it, its undo entry, and the time."""

    partition: Partition
    target: tuple[int, ...]
    entry: UndoEntry | None
    now: datetime
    refused: RefusedOrder | None = None
    external_operation: Refusal | None = None
    """The external operation that deferrable moves wait for."""
    for_racks: bool = False
    """Whether the order is only for preferred racks: none of its brokers is demoted or returning."""
    immovable: str = ""
    """Why nothing can be moved in this cluster."""
    removed: frozenset[int] = frozenset()
    """Brokers that are not registered (``Cluster.removed``)."""


ReorderGuard = Callable[[ProposedOrder], "Refusal | None"]


def reassigning(proposal: ProposedOrder) -> Refusal | None:
    """A partition in reassignment is left alone (invariant 10)."""
    partition = proposal.partition
    if not partition.reassigning:
        return None
    text = f"replicas are being added {list(partition.adding)} or removed {list(partition.removing)}"
    return Refusal(Reason.REASSIGNING, text)


def immovable(proposal: ProposedOrder) -> Refusal | None:
    """What the Kafka service does not offer is not planned."""
    return Refusal(Reason.REQUEST_REFUSED, proposal.immovable) if proposal.immovable else None


def leader_unknown(proposal: ProposedOrder) -> Refusal | None:
    """A partition whose leader metadata does not name is left alone (invariants 5 and 16)."""
    if not proposal.partition.leader_unknown:
        return None
    return Refusal(Reason.LISTENER_MISSING, DESCRIPTIONS[Reason.LISTENER_MISSING])


def names_removed_broker(proposal: ProposedOrder) -> Refusal | None:
    """Kafka refuses each new order of a replica list that names a broker that is not registered."""
    gone = [r for r in proposal.partition.replicas if r in proposal.removed]
    if not gone or proposal.target == proposal.partition.replicas:
        return None
    text = (
        f"its replica list {list(proposal.partition.replicas)} names broker {', '.join(map(str, gone))}, which is not"
        " registered: Kafka refuses each new order; bellwether doctor prints the repair"
    )
    return Refusal(Reason.REMOVED_BROKER, text)


def contested(proposal: ProposedOrder) -> Refusal | None:
    """After another tool overwrote our order, re-assertion backs off (invariant 9)."""
    entry = proposal.entry
    if entry is None or entry.contested_at is None or proposal.target == proposal.partition.replicas:
        return None
    if proposal.now - entry.contested_at >= back_off(entry.contests):
        return None
    text = f"another tool changed this order {entry.contests} times; retrying with backoff"
    return Refusal(Reason.ORDER_OVERWRITTEN, text)


def external_operation_running(proposal: ProposedOrder) -> Refusal | None:
    """During an external operation, overwritten orders are not re-asserted, and moves for racks wait (invariant 10)."""
    entry, busy = proposal.entry, proposal.external_operation
    if busy is None or not (proposal.for_racks or (entry is not None and entry.contests)):
        return None
    if proposal.target == proposal.partition.replicas or (entry is not None and proposal.target == entry.baseline):
        return None
    return busy


def refused_before(proposal: ProposedOrder) -> Refusal | None:
    """Orders that Kafka refused are retried with a growing delay (invariant 8)."""
    return wait_after_refusal(proposal.refused, proposal.partition, proposal.target, proposal.now)


def wait_after_refusal(
    refused: RefusedOrder | None, partition: Partition, target: tuple[int, ...], now: datetime
) -> Refusal | None:
    """The delay after Kafka refused a partition's order, or to elect the first of it: with another ISR it may not."""
    if refused is None or refused.order != target or now - refused.at >= back_off(refused.times):
        return None
    if refused.isr != frozenset(partition.isr if target == partition.replicas else ()):
        return None
    return Refusal(refused.reason, refused.message)


REORDER_GUARDS: tuple[ReorderGuard, ...] = (
    immovable,  # the service has no request for it
    leader_unknown,  # what a move would change is not known
    reassigning,  # replicas are moving: wait
    names_removed_broker,  # Kafka refuses each order of it
    contested,  # another tool changes the order: back off
    external_operation_running,  # Strimzi or a rebalance is at work: wait for it
    refused_before,  # Kafka refused this order: retry later
)


def refuse_reorder(proposal: ProposedOrder) -> Refusal | None:
    """The first reason not to change the partition's order now, if any."""
    return next((refusal for guard in REORDER_GUARDS if (refusal := guard(proposal)) is not None), None)


def refuse_election(
    partition: Partition, target: tuple[int, ...], demoted: frozenset[int], chosen: int | None, snapshot: Snapshot
) -> Refusal | None:
    """Why the first of the target order cannot be elected now: never outside the ISR, never a worse leader."""
    touched = not demoted.isdisjoint(partition.replicas)
    if touched and len(partition.replicas) == 1:
        return Refusal(Reason.ONLY_REPLICA, "the demoted broker has the only replica; raise the replication factor")
    if touched and set(partition.replicas) <= demoted:
        return Refusal(Reason.NO_HEALTHY_ISR_MEMBER, "every replica is on a demoted broker")
    if touched and chosen is None:
        away = [r for r in partition.replicas if r not in demoted]
        return Refusal(Reason.NO_HEALTHY_ISR_MEMBER, f"none of the other replicas {away} is live and in the ISR")
    first = target[0]
    if first not in partition.isr or first not in snapshot.cluster.live:
        text = f"broker {first}, first in its order, is not live or not in the ISR; it is elected when it is back"
        return Refusal(Reason.PREFERRED_NOT_IN_ISR, text)
    return None


def remember_refusals(
    snapshot: Snapshot,
    orders: Iterable[Hold],
    elections: Iterable[Hold],
    targets: Mapping[PartitionKey, tuple[int, ...]],
) -> dict[PartitionKey, RefusedOrder]:
    """What Kafka has refused so far, this reconcile's ``orders`` and ``elections`` included; forgotten once the target
    order differs, or is in place and its first replica leads. Without a target that is the order in place.
    """
    by_key, now = snapshot.cluster.by_key, snapshot.now

    def wanted(key: PartitionKey) -> tuple[int, ...] | None:
        return targets.get(key) or (by_key[key].replicas if key in by_key else None)

    def done(key: PartitionKey, one: RefusedOrder) -> bool:
        there = by_key.get(key)
        return there is not None and there.replicas == one.order and (not one.isr or there.leader == one.order[0])

    known = {key: one for key, one in snapshot.refused.items() if wanted(key) == one.order and not done(key, one)}
    for refused, elects in ((orders, False), (elections, True)):
        for hold in refused:
            if (order := wanted(hold.key)) is not None:
                times = known[hold.key].times + 1 if hold.key in known else 1
                isr = frozenset(by_key[hold.key].isr) if elects and hold.key in by_key else frozenset[int]()
                known[hold.key] = RefusedOrder(order, times, now, hold.message, hold.reason, isr)
    return known
