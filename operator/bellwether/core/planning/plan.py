"""Leadership plan: the moves to the target order and leader of every partition, minus those that guards refuse.

Immutable and printable. Reorders every partition of a demoted broker, whether it leads it or not: a follower that is
first in the order would get the leadership back. Built once per reconcile, and by dry runs, which print the same plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Cluster, Partition, PartitionKey, TopicPartition
from bellwether.core.model.loads import Loads
from bellwether.core.model.refusals import Hold, Refusal
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import EntryState, UndoEntry
from bellwether.core.planning.guards import ProposedOrder, refuse_election, refuse_reorder
from bellwether.core.planning.target_orders import TargetOrder, target_orders
from bellwether.core.reasons import DESCRIPTIONS, Reason


class MoveKind(StrEnum):
    """Whether a move takes leadership from a demoted broker, restores it, or only elects the preferred leader."""

    DISPLACE = "Displace"
    RESTORE = "Restore"
    BALANCE = "Balance"


class Move(NamedTuple):
    """One partition's move: the order as seen, the target order, and whether to elect its first replica afterwards."""

    key: PartitionKey
    topic: str
    kind: MoveKind
    seen: tuple[int, ...]
    order: tuple[int, ...]
    baseline: tuple[int, ...]
    leader: int | None
    elect: bool
    internal: bool = False

    @classmethod
    def of(
        cls, p: Partition, kind: MoveKind, order: tuple[int, ...], baseline: tuple[int, ...], *, elect: bool
    ) -> Move:
        """The move of a partition as it is now to an order."""
        return cls(p.key, p.topic, kind, p.replicas, order, baseline, p.leader, elect, p.internal)

    @property
    def name(self) -> TopicPartition:
        """The name that admin requests use."""
        return TopicPartition(self.topic, self.key.partition)

    @property
    def reorders(self) -> bool:
        """Whether the order changes, not only the leader."""
        return self.seen != self.order

    @property
    def leads_next(self) -> int:
        """Leader after the move."""
        return self.order[0]


@dataclass(frozen=True, eq=False, slots=True)
class PlanInputs:
    """What a plan rests on apart from the time. ``others`` are compared by value, the rest by identity."""

    cluster: Cluster
    entries: Mapping[PartitionKey, UndoEntry]
    loads: Loads | None
    others: tuple[object, ...]

    @classmethod
    def of(cls, context: Context, decisions: Decisions) -> PlanInputs:
        """The inputs of the plan for these decisions."""
        snapshot = context.snapshot
        others = (
            context.policy,
            decisions.demoted,
            decisions.returning,
            decisions.log_dirs,
            decisions.partly,
            decisions.policy_deleted,
            context.sick_or_down,
            context.deferral,
        )
        return cls(snapshot.cluster, snapshot.record.entries, snapshot.loads, others)

    def same(self, other: PlanInputs) -> bool:
        """Whether the same plan follows from both."""
        parts = ((self.cluster, other.cluster), (self.entries, other.entries), (self.loads, other.loads))
        return all(one is another for one, another in parts) and self.others == other.others


@dataclass(frozen=True)
class Plan:
    """All moves of a reconcile, held moves with their reasons, and changes of undo entries."""

    moves: tuple[Move, ...] = ()
    holds: tuple[Hold, ...] = ()
    decisions: Decisions = field(default_factory=lambda: Decisions({}))
    entries: Mapping[PartitionKey, UndoEntry | None] = field(default_factory=dict)
    targets: Mapping[PartitionKey, tuple[int, ...]] = field(default_factory=dict)
    withheld: Mapping[int, int] = field(default_factory=dict)
    """Number of partitions that each returning broker still waits for."""
    early: Mapping[int, int] = field(default_factory=dict)
    """Number of partitions that each returning broker leads before their wave: no other healthy replica may."""
    resting: int = 0
    """Number of displaced partitions without a target: they are permanently where a rack wants them."""
    inputs: PlanInputs | None = field(default=None, compare=False, repr=False)
    """Set where the plan has nothing to do and stays the same, however late, until an input changes."""

    @property
    def empty(self) -> bool:
        """Whether the plan has no moves."""
        return not self.moves

    @property
    def digest(self) -> str:
        """Digest of the moves, independent of the time."""
        lines = (f"{m.key.topic_id}/{m.key.partition}:{m.order}:{m.elect}" for m in self.moves)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


LOADS_AWAITED = Refusal(
    Reason.NO_EVIDENCE, "The loads of partitions are not measured yet, and the policy limits brokers by load."
)


def build_plan(context: Context, decisions: Decisions, last: Plan | None = None) -> Plan:
    """Build the plan for a snapshot with a recovered record, given the decisions.

    The ``last`` plan is repeated where it had nothing to do and its inputs are the same.
    """
    snapshot, inputs = context.snapshot, PlanInputs.of(context, decisions)
    if last is not None and last.inputs is not None and last.inputs.same(inputs):
        return replace(last, decisions=decisions)
    entries_of, now = snapshot.record.entries, snapshot.now
    refused, busy, removed = snapshot.refused, context.deferral, snapshot.cluster.removed
    kept = decisions.whole.union(decisions.returning)
    found = target_orders(context, decisions)
    moves, entries, targets, holds = [], {}, {}, []
    postponed = False
    unread = snapshot.loads is not None and snapshot.loads.awaited
    no_capacity = LOADS_AWAITED if unread else Refusal(Reason.CAPACITY_REACHED, DESCRIPTIONS[Reason.CAPACITY_REACHED])
    for wanted in found.wanted:
        partition, key, target, baseline = wanted.partition, wanted.key, wanted.target, wanted.baseline
        targets[key] = target
        demoted = decisions.kept_off(key)
        entry = entries_of.get(key)
        in_place = target == partition.replicas
        if wanted.no_capacity:
            holds.append(_hold(partition, no_capacity))
            continue
        if not (in_place and partition.leader == target[0] and not partition.reassigning and target[0] not in demoted):
            for_racks = busy is not None and (kept | demoted).isdisjoint(partition.replicas)
            proposal = ProposedOrder(
                partition, target, entry, now, refused.get(key), busy, for_racks, snapshot.cluster.immovable, removed
            )
            refusal = refuse_reorder(proposal)
            if refusal is not None:
                postponed = True  # some guards let the same order pass later
                holds.append(_hold(partition, refusal))
                if refusal.reason is Reason.REMOVED_BROKER and _first_takes_over(
                    partition, demoted, context, decisions
                ):
                    moves.append(_move(wanted._replace(target=partition.replicas), demoted, elect=True))
                continue
            refusal = refuse_election(partition, target, demoted, wanted.chosen, snapshot)
            # A refused election is reported if the leader is not the target, or a demoted broker still leads.
            if refusal is not None and (partition.leader != target[0] or partition.leader in demoted):
                holds.append(_hold(partition, refusal))
            elect = partition.leader != target[0] and (
                refusal is None or _less_sick(partition, target[0], snapshot, demoted, decisions.sickness)
            )
            if not in_place or elect:
                moves.append(_move(wanted, demoted, elect=elect))
        if entry is not None and in_place and target == baseline and entry.state is not EntryState.RESTORED:
            done = replace(entry, written=baseline, replaced=None, state=EntryState.RESTORED)
            entries[key] = replace(done, finished_at=now, contests=0, contested_at=None)
    holds.extend(_out_of_scope(context, decisions))
    moves.sort(key=_urgency)
    lasting = inputs if not (moves or entries or postponed) else None
    return Plan(
        tuple(moves), tuple(holds), decisions, entries, targets, found.awaited, found.early, found.resting, lasting
    )


def _first_takes_over(partition: Partition, demoted: frozenset[int], context: Context, decisions: Decisions) -> bool:
    """Whether an election without a reorder takes a partition from a demoted broker."""
    first = partition.replicas[0]
    able = partition.leader in demoted and first in context.snapshot.cluster.live.intersection(partition.isr)
    wave = decisions.returning.get(first)
    return able and first not in demoted | context.sick_or_down and not (wave and wave.withholds(partition.key))


def _move(wanted: TargetOrder, demoted: frozenset[int], *, elect: bool) -> Move:
    partition = wanted.partition
    away = wanted.target != wanted.baseline or not demoted.isdisjoint(partition.replicas)
    return Move.of(
        partition, MoveKind.DISPLACE if away else MoveKind.RESTORE, wanted.target, wanted.baseline, elect=elect
    )


def _urgency(move: Move) -> tuple[bool, int, PartitionKey]:
    """Sort key: partitions whose leader moves come before partitions that are only reordered.

    Clients wait for leaders only, and about half of the moves of a demotion change followers only.
    """
    # Internal topics carry coordinators: first to leave a sick broker, last to return.
    phases = (1, 0) if move.kind is MoveKind.DISPLACE else (2, 3)
    return not move.elect, phases[move.internal], move.key


def _out_of_scope(context: Context, decisions: Decisions) -> list[Hold]:
    """Partitions that a demoted broker goes on leading because their topics are out of the policy's scope."""
    cluster, managed = context.snapshot.cluster, context.managed
    if managed is cluster or not (decisions.whole or decisions.partly):
        return []
    text = DESCRIPTIONS[Reason.OUT_OF_SCOPE]
    return [
        Hold(p.key, p.topic, Reason.OUT_OF_SCOPE, text)
        for p in cluster.partitions
        if p.leader in decisions.kept_off(p.key) and p.key not in managed.by_key
    ]


def _less_sick(
    partition: Partition, first: int, snapshot: Snapshot, demoted: frozenset[int], sickness: Mapping[int, float]
) -> bool:
    """Whether every replica is on a demoted broker, and the first one is less sick than the leader."""
    leader = partition.leader
    if leader is None or leader not in demoted or not demoted.issuperset(partition.replicas):
        return False
    leads_well = first in partition.isr and first in snapshot.cluster.live
    return leads_well and sickness[first] < sickness[leader]


def _hold(partition: Partition, refusal: Refusal) -> Hold:
    return Hold(partition.key, partition.topic, refusal.reason, refusal.message)
