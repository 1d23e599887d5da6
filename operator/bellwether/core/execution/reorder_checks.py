"""Batches of moves: split a plan, check each batch against fresh metadata, verify what a later read shows; the result.

Pure: the executor sends the requests between these functions. Kafka's reorder has no compare-and-set, so the check
comes right before the request and the verification right after it (invariant 1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from bellwether.core.model.cluster import Cluster, Partition, PartitionKey
from bellwether.core.model.refusals import Hold, Refusal
from bellwether.core.model.undo_record import EntryState, SentOrder, UndoEntry, UndoRecord
from bellwether.core.planning.plan import Move, MoveKind, Plan
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.settings.policy import Election


class ReadbackResult(StrEnum):
    """What a read after the reorder shows for one move."""

    DONE = "Done"
    NOT_APPLIED = "NotApplied"
    TOUCHED = "Touched"
    OVERTAKEN = "Overtaken"
    MOVING_ON = "MovingOn"
    """Another tool reassigns it by now, to another order than ours: leave that alone."""


@dataclass(frozen=True, slots=True)
class PrecheckResult:
    """A batch as fresh metadata allows it: moves that may be sent, their partitions, and moves that are held."""

    moves: tuple[Move, ...]
    facts: Mapping[PartitionKey, Partition]
    holds: tuple[Hold, ...]


Request = tuple[PartitionKey, SentOrder]
"""A reorder of one partition, or a cancellation: the key and what is asked of which broker."""


def batches(plan: Plan, sizes: Election) -> Iterator[tuple[Move, ...]]:
    """The moves in their order, in batches: partitions that need an election apart from mere reorders.

    Leaders wait for no order but their own. Elections of internal topics come in smaller batches: each moves a
    coordinator, which reloads its state. A mere reorder moves none.
    """
    for (_, coordinators), run in groupby(plan.moves, key=lambda m: (m.elect, m.elect and m.internal)):
        moves = list(run)
        size = min(sizes.batch_size, sizes.internal_batch_size) if coordinators else sizes.batch_size
        for start in range(0, len(moves), size):
            yield tuple(moves[start : start + size])


def record_intents(plan: Plan, record: UndoRecord, broker: int | None) -> UndoRecord:
    """The record to store before the plan's first reorder is sent to ``broker`` (invariants 6 and 7).

    From here on every reorder of the plan is outstanding, until ``record_results``.
    """
    changes: dict[PartitionKey, UndoEntry | None] = dict(plan.entries)
    for move in plan.moves:
        if not move.reorders:
            continue
        state = EntryState.INTENDED if move.kind is MoveKind.DISPLACE else EntryState.RESTORING
        entry = record.entries.get(move.key) or UndoEntry(move.topic, move.baseline, written=move.seen)
        if entry.baseline != move.baseline or entry.topic != move.topic:
            entry = UndoEntry(move.topic, move.baseline, written=move.seen, outstanding=entry.outstanding)
        changes[move.key] = entry.send(SentOrder(move.order, broker), move.seen, state)
    changed, decided = record.with_entries(changes), plan.decisions
    after = replace(
        changed,
        demoted=dict(decided.demoted),
        returning=dict(decided.returning),
        log_dirs=dict(decided.log_dirs.demoted),
        links=dict(decided.links.broken),
    )
    return changed if after == changed else after


def record_results(
    record: UndoRecord,
    requests: Iterable[Request],
    outstanding: Collection[Request],
    applied: Collection[PartitionKey],
    now: datetime,
) -> UndoRecord:
    """The record after these requests, which it has as outstanding, were sent, or not sent.

    ``outstanding`` stay so: not answered, or answered and not seen. All others were done, refused or not sent.
    ``applied`` are partitions whose reorder was seen in place: one that differs at the next reconcile was overwritten,
    however soon.
    """
    changes: dict[PartitionKey, UndoEntry | None] = {}
    for key, sent in requests:
        if (key, sent) not in outstanding:
            entry = (changes.get(key) or record.entries[key]).without(sent)
            changes[key] = entry.in_place(now) if sent.order and key in applied else entry
    return record.with_entries(changes)


def precheck(batch: Sequence[Move], fresh: Iterable[Partition]) -> PrecheckResult:
    """Hold every move whose partition has changed since the plan was made."""
    by_key = {p.key: p for p in fresh}
    names = {p.name for p in by_key.values()}
    passed, holds, facts = [], [], {}
    for move in batch:
        partition = by_key.get(move.key)
        reason = None
        if partition is None:
            recreated = move.name in names
            reason = Reason.CHANGED_SINCE_PLAN
            text = "the topic was recreated" if recreated else "the topic was deleted"
        elif partition.leader_unknown:
            reason, text = Reason.LISTENER_MISSING, DESCRIPTIONS[Reason.LISTENER_MISSING]
        elif partition.reassigning:
            reason, text = Reason.REASSIGNING, "a reassignment has started"
        elif set(partition.replicas) != set(move.order):
            reason, text = Reason.CHANGED_SINCE_PLAN, f"its replicas are now {list(partition.replicas)}"
        elif partition.replicas not in (move.seen, move.order):
            reason, text = Reason.CHANGED_SINCE_PLAN, f"its order is now {list(partition.replicas)}"
        else:
            facts[move.key] = partition
            passed.append(move)
        if reason is not None:
            holds.append(Hold(move.key, move.topic, reason, text))
    return PrecheckResult(tuple(passed), facts, tuple(holds))


def verify(move: Move, before: Partition, after: Partition | None, *, elected: bool = False) -> ReadbackResult:
    """What a read after the reorder shows for one move; ``after`` is the partition that has the name now.

    A pure reorder does not raise the leader epoch: KRaft raises it when the leader changes, or a replica leaves, each
    time by one. An election of ours (``elected``: it was requested) explains one step, to its leader. If the epoch rose
    further under a leader that is the old one or ours, and no replica left the ISR, either the leader changed more than
    once, or our request undid a reassignment by another tool, which completed before our read: by itself, or, before
    Kafka 4.3, because our request completes it. The two cannot be distinguished.
    """
    if after is None:
        return ReadbackResult.NOT_APPLIED
    if after.reassigning:
        return ReadbackResult.TOUCHED if after.target == move.order else ReadbackResult.MOVING_ON
    if after.key != move.key or set(after.replicas) != set(move.order):
        return ReadbackResult.TOUCHED
    if after.replicas != move.order:
        return ReadbackResult.NOT_APPLIED
    ours = elected and after.leader == move.leads_next != before.leader
    expected = before.leader_epoch + 1 if ours else before.leader_epoch
    explained = ours or after.leader == before.leader
    if before.leader_epoch >= 0 and after.leader_epoch > expected and explained and set(after.isr) >= set(before.isr):
        return ReadbackResult.OVERTAKEN
    return ReadbackResult.DONE


def overtaken_message(before: Partition, after: Partition) -> str:
    """Message for a move that is ``ReadbackResult.OVERTAKEN``."""
    return (
        f"its leader's epoch rose from {before.leader_epoch} to {after.leader_epoch} around our reorder: our reorder "
        "undid a reassignment by another tool (start it again), or its leader left and returned"
    )


def replica_set_changed_message(move: Move, before: Partition, after: Partition | None, *, cancelled: bool) -> str:
    """Message for a move that is ``ReadbackResult.TOUCHED``; ``after`` is the partition after the cancellation."""
    if after is None:
        return "the topic was deleted at the same time"
    now = f"its replicas were {sorted(before.replicas)} when checked and are now {sorted(after.replicas)}"
    if after.key != move.key:
        now = f"the topic was recreated at the same time; its replicas are now {list(after.replicas)}"
    elif set(after.replicas) == set(before.replicas):
        now = f"our reorder overrode a reassignment that another tool had started (start it again); {now}"
    return f"{now}; {'the reassignment was cancelled' if cancelled else 'there was no reassignment to cancel'}"


def can_elect(move: Move, fact: Partition) -> bool:
    """Whether to elect the first of the new order, by the last read before the reorder (invariant 2).

    Kafka checks the ISR again: it answers PREFERRED_LEADER_NOT_AVAILABLE where the replica has left it since.
    """
    return move.elect and fact.leader != move.leads_next and move.leads_next in fact.isr


class UnseenElection(NamedTuple):
    """An election that Kafka accepted and no read has shown: who led before it, whom it elects, when it was sent."""

    before: int | None
    leader: int
    at: datetime


FORGOTTEN = timedelta(minutes=5)
"""By then an election has been seen, or came to nothing: a leader that follows was elected by another."""


def seen_late(
    unseen: Mapping[PartitionKey, UnseenElection], cluster: Cluster, now: datetime
) -> tuple[int, dict[PartitionKey, UnseenElection]]:
    """How many of these elections metadata shows now, and those that it does not show yet, for some minutes.

    Metadata of 250 elections trailed by 4 to 9 s on a slow disk, longer than an execution waits for it.
    """
    seen, still = 0, {}
    for key, one in unseen.items():
        partition = cluster.by_key.get(key)
        if partition is not None and (partition.leader_unknown or partition.leader == one.before):
            if now - one.at < FORGOTTEN:
                still[key] = one
        elif partition is not None:
            seen += partition.leader == one.leader
    return seen, still


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """Changes made in Kafka. ``touched`` names partitions whose replica set changed around our reorder.

    ``refused_orders`` and ``refused_elections`` are those of the ``holds`` whose new order, or whose election, Kafka
    refused.
    """

    reordered: int = 0
    elected: int = 0
    holds: tuple[Hold, ...] = ()
    touched: tuple[Hold, ...] = ()
    stopped: Refusal | None = None
    refused_orders: tuple[Hold, ...] = ()
    refused_elections: tuple[Hold, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether Kafka accepted any change, visible or not, so that the next reconcile should follow at once."""
        accepted = any(h.reason is Reason.NO_ANSWER for h in self.holds)
        return bool(self.reordered or self.elected or accepted)
