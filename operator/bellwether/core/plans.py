"""Plan: the order and the leader that every partition should have, less what guards refuse. Frozen and printable.

Reorders every partition that a demoted broker holds, led by it or not: one that only follows today and stands first
tomorrow would get its leadership back. Called once a turn, and by dry runs, which print the same plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bellwether.core.baselines import Entry, EntryState
from bellwether.core.clusters import Partition, PartitionKey, TopicPartition
from bellwether.core.demotions import Decisions
from bellwether.core.guards import Hold, Proposal, Refusal, refuse_election, refuse_reorder
from bellwether.core.placements import Displacement, order_with, spread
from bellwether.core.snapshots import Snapshot
from bellwether.core.transitions import Standing
from bellwether.core.verdicts import Verdict


class MoveKind(StrEnum):
    """Whether a move takes leadership from a demoted broker or gives it back."""

    DISPLACE = "Displace"
    RESTORE = "Restore"


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's step: its order as seen, the order it should have, and whether to elect its first afterwards."""

    key: PartitionKey
    topic: str
    kind: MoveKind
    seen: tuple[int, ...]
    order: tuple[int, ...]
    baseline: tuple[int, ...]
    leader: int | None
    elect: bool
    internal: bool = False

    @property
    def name(self) -> TopicPartition:
        """The name that admin requests use."""
        return TopicPartition(self.topic, self.key.partition)

    @property
    def reorders(self) -> bool:
        """Whether the order changes, or only the leader."""
        return self.seen != self.order

    @property
    def leads_next(self) -> int:
        """Who leads once the move is done."""
        return self.order[0]


@dataclass(frozen=True)
class Plan:
    """All moves of a turn, the moves held back with their reasons, and what the undo record needs besides."""

    moves: tuple[Move, ...] = ()
    holds: tuple[Hold, ...] = ()
    decisions: Decisions = field(default_factory=lambda: Decisions({}))
    entries: Mapping[PartitionKey, Entry | None] = field(default_factory=dict)
    targets: Mapping[PartitionKey, tuple[int, ...]] = field(default_factory=dict)

    @property
    def quiet(self) -> bool:
        """Whether the plan asks Kafka for nothing."""
        return not self.moves

    @property
    def digest(self) -> str:
        """A fingerprint of the moves: the same moves have the same digest, whatever the time."""
        lines = (f"{m.key.topic_id}/{m.key.partition}:{m.order}:{m.elect}" for m in self.moves)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def devise(snapshot: Snapshot, decisions: Decisions, verdicts: Mapping[int, Verdict]) -> Plan:
    """The plan for a snapshot whose record has been recovered, given who is to be demoted."""
    demoted = frozenset(decisions.demoted)
    unwell = frozenset(b for b, v in verdicts.items() if v.standing in (Standing.SICK, Standing.DOWN))
    holds: list[Hold] = []
    ours: list[Partition] = []
    leading = dict.fromkeys(snapshot.cluster.live, 0)
    for partition in snapshot.cluster.partitions:
        if partition.key in snapshot.record.entries or demoted.intersection(partition.replicas):
            ours.append(partition)
        elif partition.leader is not None:
            leading[partition.leader] = leading.get(partition.leader, 0) + 1
    displaced = []
    for partition in ours:
        baseline = _baseline(partition, snapshot)
        if demoted.intersection(partition.replicas) and not partition.reassigning:
            able = _able(partition, baseline, demoted, snapshot)
            preferred = tuple(b for b in able if b not in unwell) or able
            displaced.append(Displacement(partition, baseline, able, preferred))
        else:
            leading[baseline[0]] = leading.get(baseline[0], 0) + 1
    chosen = spread(displaced, leading)
    moves, entries, targets = [], {}, {}
    for partition in ours:
        baseline = _baseline(partition, snapshot)
        target = baseline
        if demoted.intersection(partition.replicas):
            target = order_with(chosen.get(partition.key), baseline, demoted)
        targets[partition.key] = target
        entry = snapshot.record.entries.get(partition.key)
        refusal = refuse_reorder(
            Proposal(partition, target, entry, snapshot.now, snapshot.refused.get(partition.key), snapshot.at_work)
        )
        if refusal is not None:
            holds.append(_hold(partition, refusal))
            continue
        refusal = refuse_election(partition, target, demoted, chosen.get(partition.key), snapshot)
        if refusal is not None and _worth_naming(partition, target, demoted):
            holds.append(_hold(partition, refusal))
        elect = refusal is None and partition.leader != target[0]
        if target != partition.replicas or elect:
            kind = MoveKind.DISPLACE if demoted.intersection(partition.replicas) else MoveKind.RESTORE
            moves.append(
                Move(
                    key=partition.key,
                    topic=partition.topic,
                    kind=kind,
                    seen=partition.replicas,
                    order=target,
                    baseline=baseline,
                    leader=partition.leader,
                    elect=elect,
                    internal=partition.internal,
                )
            )
        if entry is not None and target == baseline == partition.replicas and entry.state is not EntryState.RESTORED:
            entries[partition.key] = replace(
                entry.write(baseline, EntryState.RESTORED), finished_at=snapshot.now, contests=0, contested_at=None
            )
    return Plan(tuple(sorted(moves, key=_turn)), tuple(holds), decisions, entries, targets)


def _turn(move: Move) -> tuple[int, PartitionKey]:
    """Internal topics carry coordinators: first to leave a sick broker, last to return."""
    if move.kind is MoveKind.DISPLACE:
        return (0 if move.internal else 1, move.key)
    return (3 if move.internal else 2, move.key)


def _baseline(partition: Partition, snapshot: Snapshot) -> tuple[int, ...]:
    entry = snapshot.record.entries.get(partition.key)
    if entry is None or set(entry.baseline) != set(partition.replicas):
        return partition.replicas
    return entry.baseline


def _able(
    partition: Partition, baseline: tuple[int, ...], demoted: frozenset[int], snapshot: Snapshot
) -> tuple[int, ...]:
    """The live ISR members that are not demoted, in the baseline's order."""
    return tuple(r for r in baseline if r in partition.isr and r in snapshot.cluster.live and r not in demoted)


def _worth_naming(partition: Partition, target: tuple[int, ...], demoted: frozenset[int]) -> bool:
    """A refused election is news when the leader is not where it should be, or a demoted broker leads on."""
    return partition.leader != target[0] or partition.leader in demoted


def _hold(partition: Partition, refusal: Refusal) -> Hold:
    return Hold(partition.key, partition.topic, refusal.reason, refusal.message)
