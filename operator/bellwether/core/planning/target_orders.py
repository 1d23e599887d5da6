"""Target replica order of every partition: who leads it, who follows, and who stays for want of capacity.

In: a turn's snapshot, who is demoted or on the way back, the policy's racks and limits. Out: one ``Wanted`` for each
partition that any of these concerns. A pure function of what stands in the undo record and in metadata, so that no
second record is needed. ``plan`` holds what comes out against the guards and makes moves of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bellwether.core.demotion.decisions import Decisions, sickness
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.loads import NO_LOADS, LeaderLoads
from bellwether.core.model.rack_ranking import RackRanking, RackRankings
from bellwether.core.model.restoration_waves import wave_position
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import EntryState, UndoEntry
from bellwether.core.planning.assignment import Assignment, LeaderChoice, assign_within_capacity, order_with
from bellwether.core.settings.capacity import UNBOUNDED
from bellwether.core.settings.policy import Policy

_NOBODY: frozenset[int] = frozenset()


class TargetOrder(NamedTuple):
    """One partition and the order that it should have.

    ``chosen`` is who is to lead it for now; None where nobody can, or where nothing keeps the baseline's own leader
    away. ``left``: whoever could take it over has no room for it, so that it stays as it is.
    """

    partition: Partition
    key: PartitionKey
    baseline: tuple[int, ...]
    target: tuple[int, ...]
    chosen: int | None = None
    left: bool = False


@dataclass(frozen=True)
class TargetOrders:
    """All that are wanted, and how many partitions each returning broker still waits for.

    ``wanted`` is made while it is read, once: a first plan wants hundreds of thousands, and none outlives its turn.
    """

    wanted: Iterator[TargetOrder]
    awaited: Mapping[int, int]


@dataclass
class _SortedPartitions:
    """The partitions that are concerned, and what is known of all others.

    Of the concerned, those that leave no choice are decided already; the others wait for ``spread_within``. ``account``
    has the leaders of all that are not concerned. ``choosing`` are the brokers that lead a partition that was passed
    over and that another of the same rack could lead as well.
    """

    account: LeaderLoads
    awaited: dict[int, int]
    concerned: list[TargetOrder | LeaderChoice] = field(default_factory=list)
    choosing: set[int] = field(default_factory=set)


def target_orders(
    snapshot: Snapshot, decisions: Decisions, verdicts: Mapping[int, Verdict], policy: Policy | None = None
) -> TargetOrders:
    """The orders of a snapshot whose record has been recovered. Without a policy no rack is preferred."""
    return _Planner(snapshot, decisions, verdicts, policy).orders()


class _Planner:
    """One turn, as far as orders are concerned."""

    def __init__(
        self, snapshot: Snapshot, decisions: Decisions, verdicts: Mapping[int, Verdict], policy: Policy | None
    ) -> None:
        self._snapshot = snapshot
        self._entries = snapshot.record.entries
        self._live = snapshot.cluster.live
        self._demoted = frozenset(decisions.demoted)
        self._leading = self._live - self._demoted
        self._sickness = {b: sickness(d) for b, d in decisions.demoted.items()}
        self._returning = decisions.returning
        self._unwell = frozenset(b for b, v in verdicts.items() if v.state in (HealthState.SICK, HealthState.DOWN))
        wishes = policy if not decisions.policy_deleted else None
        placement = wishes.placement if wishes is not None else None
        self._rankings = RackRankings(placement, snapshot.cluster) if placement is not None else None
        self._capacity = wishes.demotion.capacity if wishes is not None else UNBOUNDED
        self._loads = snapshot.loads or NO_LOADS

    def orders(self) -> TargetOrders:
        """Every partition that is concerned, in the order of the metadata."""
        found = self._sorted(passing=True)
        if self._rankings is not None and self._rankings.unbalanced(found.account.counts, found.choosing & self._live):
            found = self._sorted(passing=False)
        undecided = []
        for item in found.concerned:
            if isinstance(item, LeaderChoice):
                undecided.append(item)
            else:
                found.account.add(item.baseline[0] if item.chosen is None else item.chosen, item.key)
        spread = assign_within_capacity(undecided, found.account)
        return TargetOrders(self._decided(found.concerned, spread), found.awaited)

    def _sorted(self, *, passing: bool) -> _SortedPartitions:
        """The partitions that anything keeps, or kept, from their own order; the leaders of all others in the account.

        ``passing`` passes over those that stand for good where a rack wants them: most, when nothing is amiss. Where
        the brokers that lead these lead unequally, all are to be looked at.
        """
        demoted, returning, entries, rankings = self._demoted, self._returning, self._entries, self._rankings
        account = LeaderLoads(dict.fromkeys(self._live, 0), self._capacity, self._loads)
        found = _SortedPartitions(account, dict.fromkeys(returning, 0))
        counts, concerned = account.counts, found.concerned
        # Nothing is chosen, and nothing need be weighed, while nobody is kept from leading and no rack is preferred.
        choices = bool(demoted or returning or entries or rankings is not None)
        weighs = choices and account.weighs
        for partition in self._snapshot.cluster.partitions:
            key, replicas = PartitionKey(partition.topic_id, partition.index), partition.replicas
            ranking = rankings.of(partition.topic) if rankings is not None else None
            entry = entries.get(key)
            if (
                entry is not None
                or not demoted.isdisjoint(replicas)
                or ((wave := returning.get(replicas[0])) is not None and wave.withholds(key))
                or (ranking is not None and _out_of_place(partition, ranking))
            ):
                baseline = self._baseline(partition, entry)
                if not (
                    passing
                    and ranking is not None
                    and demoted.isdisjoint(replicas)
                    and (not returning or returning.keys().isdisjoint(replicas))
                    and not ranking.weights
                    and entry is not None
                    and entry.state is EntryState.DISPLACED
                    and ranking.rests(partition, baseline)
                ):
                    concerned.append(self._concern(partition, key, baseline, ranking, found.awaited))
                    continue
                if len(replicas) > 1 and ranking.ranks.get(replicas[0]) == ranking.ranks.get(replicas[1]):
                    found.choosing.update(replicas[:2])
            leader = partition.leader
            if leader is not None:
                counts[leader] = counts.get(leader, 0) + 1
                if weighs:
                    account.carry(leader, key)
        return found

    @staticmethod
    def _baseline(partition: Partition, entry: UndoEntry | None) -> tuple[int, ...]:
        if entry is None or (entry.baseline != partition.replicas and set(entry.baseline) != set(partition.replicas)):
            return partition.replicas
        return entry.baseline

    def _concern(
        self,
        partition: Partition,
        key: PartitionKey,
        baseline: tuple[int, ...],
        ranking: RackRanking | None,
        awaited: dict[int, int],
    ) -> TargetOrder | LeaderChoice:
        """Who may lead a partition; decided where its baseline stands, and where only one of its best rack may."""
        demoted, unwell = self._demoted, self._unwell
        withheld = self._withheld(key, baseline, ranking) if self._returning else _NOBODY
        if withheld:
            for heir in (baseline[0],) if ranking is None else ranking.eligible_leaders(baseline[0], baseline):
                if heir in withheld:
                    awaited[heir] += 1
        touched = not demoted.isdisjoint(baseline) or (
            bool(withheld) if ranking is not None else baseline[0] in withheld
        )
        if partition.reassigning or not (touched or ranking is not None):
            return self._wanted(partition, key, baseline, ranking, None)
        able = _able(baseline, partition.isr, self._leading, withheld)
        if withheld and unwell.issuperset(able):
            # A wave gives way to a partition without a leader.
            able = _able(baseline, partition.isr, self._leading, _NOBODY)
        well = able if unwell.isdisjoint(able) else tuple([b for b in able if b not in unwell]) or able
        preferred = well if ranking is None else ranking.best(well)
        if ranking is not None and len(preferred) == 1 and not (ranking.weights or self._capacity.bounded):
            # Whatever the others come to: nearly all, where each rack has one replica.
            standing = ranking.standing(partition.replicas[0], baseline[0], preferred, able if touched else None)
            return self._wanted(partition, key, baseline, ranking, preferred[0] if standing is None else standing)
        urgency = self._sickness.get(partition.leader, -1) if partition.leader is not None else -1
        return LeaderChoice(partition, key, baseline, able, preferred, ranking, well, not touched, urgency)

    def _withheld(self, key: PartitionKey, baseline: tuple[int, ...], ranking: RackRanking | None) -> frozenset[int]:
        """The brokers of a partition that are on their way back and wait for a later wave to lead it.

        A partition is looked up only where somebody else than its baseline's first may have to lead it.
        """
        returning = self._returning
        if returning.keys().isdisjoint(baseline):
            return _NOBODY
        if ranking is None and baseline[0] not in returning and self._demoted.isdisjoint(baseline):
            return _NOBODY
        turn = wave_position(key)
        return frozenset(b for b in baseline if b in returning and returning[b].withholds_position(turn))

    def _decided(self, concerned: Iterable[TargetOrder | LeaderChoice], spread: Assignment) -> Iterator[TargetOrder]:
        for item in concerned:
            if isinstance(item, TargetOrder):
                yield item
            elif item.key in spread.left:
                yield TargetOrder(item.partition, item.key, item.baseline, item.partition.replicas, None, left=True)
            else:
                chosen = spread.chosen.get(item.key)
                yield self._wanted(item.partition, item.key, item.baseline, item.ranking, chosen)

    def _wanted(
        self,
        partition: Partition,
        key: PartitionKey,
        baseline: tuple[int, ...],
        ranking: RackRanking | None,
        chosen: int | None,
    ) -> TargetOrder:
        demoted = self._demoted
        if demoted.isdisjoint(baseline):
            if chosen is None:
                return TargetOrder(partition, key, baseline, baseline if ranking is None else partition.replicas)
            if ranking is not None and ranking.keeps(chosen, partition.replicas, baseline):
                return TargetOrder(partition, key, baseline, partition.replicas, chosen)
        return TargetOrder(
            partition, key, baseline, order_with(chosen, baseline, demoted, ranking, self._sickness), chosen
        )


def _able(
    baseline: tuple[int, ...], isr: tuple[int, ...], leading: frozenset[int], withheld: frozenset[int]
) -> tuple[int, ...]:
    """Who may lead, as the baseline has them."""
    able = []
    for replica in baseline:
        if replica in isr and replica in leading and replica not in withheld:
            able.append(replica)  # noqa: PERF401 - so short a comprehension takes half as long again
    return tuple(able)


def _out_of_place(partition: Partition, ranking: RackRanking) -> bool:
    """Whether the racks may ask for another order, or for another leader than Kafka's own balancing would bring."""
    if ranking.weights or not ranking.orderly(partition.replicas):
        return True
    leader, first = partition.leader, partition.replicas[0]
    if leader is None or leader == first:
        return False
    ranks = ranking.ranks
    return ranks.get(leader, -1) > ranks.get(first, -1)
