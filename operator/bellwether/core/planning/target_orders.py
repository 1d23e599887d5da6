"""Target replica order of every partition: its leader, its followers, and partitions that stay for lack of capacity.

In: the snapshot, the demoted and returning brokers, the policy's racks and limits. Out: one ``TargetOrder`` for each
partition that is affected. A pure function of the undo record and metadata, so that no second record is needed.
``plan`` checks the guards and turns the target orders into moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.loads import NO_LOADS, LeaderLoads
from bellwether.core.model.rack_ranking import RackRanking
from bellwether.core.model.restoration_waves import wave_position
from bellwether.core.model.undo_record import EntryState, UndoEntry
from bellwether.core.planning.assignment import Assignment, LeaderChoice, assign_within_capacity, order_with
from bellwether.core.settings.policy import UNBOUNDED

_NO_BROKERS: frozenset[int] = frozenset()


class TargetOrder(NamedTuple):
    """Target order of one partition.

    ``chosen`` is the leader for now; None where no broker can lead, or where nothing keeps the baseline's leader away.
    ``no_capacity``: no eligible broker has room, so the partition stays as it is.
    """

    partition: Partition
    key: PartitionKey
    baseline: tuple[int, ...]
    target: tuple[int, ...]
    chosen: int | None = None
    no_capacity: bool = False


@dataclass(frozen=True)
class TargetOrders:
    """All target orders, and how many partitions each returning broker still waits for.

    ``early`` counts those that it leads before their wave, because no other healthy replica may lead them. ``resting``
    is how many displaced partitions have none, because they are permanently where a rack wants them. ``wanted`` is a
    generator and is read once: a first plan may have hundreds of thousands of target orders.
    """

    wanted: Iterator[TargetOrder]
    awaited: Mapping[int, int]
    early: Mapping[int, int]
    resting: int = 0


@dataclass
class _SortedPartitions:
    """The affected partitions, and leader counts of all others.

    Affected partitions without a choice are decided already; the others wait for ``assign_within_capacity``.
    ``account`` has the leaders of all partitions that are not affected. ``choosing`` are the brokers that lead a
    skipped partition which another broker in the same rack could lead as well.
    """

    account: LeaderLoads
    awaited: dict[int, int]
    early: Counter[int] = field(default_factory=Counter)
    concerned: list[TargetOrder | LeaderChoice] = field(default_factory=list)
    choosing: set[int] = field(default_factory=set)
    resting: int = 0


def target_orders(context: Context, decisions: Decisions) -> TargetOrders:
    """Target orders for a snapshot with a recovered record."""
    return _Planner(context, decisions).orders()


class _Planner:
    """Target orders of one reconcile."""

    def __init__(self, context: Context, decisions: Decisions) -> None:
        self._snapshot = snapshot = context.snapshot
        self._cluster = context.managed
        self._entries = snapshot.record.entries
        self._live = snapshot.cluster.live
        self._demoted = decisions.whole
        self._leading = self._live - self._demoted
        self._kept_off, self._partly = decisions.kept_off, decisions.partly
        self._sickness = decisions.sickness
        self._returning = decisions.returning
        self._unhealthy = context.sick_or_down
        self._rankings = None if decisions.policy_deleted else context.rankings
        self._capacity = UNBOUNDED if decisions.policy_deleted else context.policy.demotion.capacity
        self._loads = snapshot.loads or NO_LOADS

    def orders(self) -> TargetOrders:
        """Target order of every affected partition, in the order of the metadata."""
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
        return TargetOrders(self._decided(found.concerned, spread), found.awaited, found.early, found.resting)

    def _sorted(self, *, passing: bool) -> _SortedPartitions:
        """Partitions that are, or were, kept from their own order; the leaders of all others in the account.

        ``passing`` skips partitions that are permanently where a rack wants them: most of them, in a healthy cluster.
        If the brokers that lead these lead unequally, all are considered.
        """
        demoted, returning, entries, rankings = self._demoted, self._returning, self._entries, self._rankings
        impaired = self._partly
        if rankings is None:
            return self._sorted_without_racks()
        account = self._account({})
        found = _SortedPartitions(account, dict.fromkeys(returning, 0))
        counts, concerned, weighs = account.counts, found.concerned, account.weighs
        for key, partition in self._cluster.by_key.items():
            replicas = partition.replicas
            ranking = rankings.of(partition.topic)
            entry = entries.get(key)
            if (
                entry is not None
                or key in impaired
                or not demoted.isdisjoint(replicas)
                or ((wave := returning.get(replicas[0])) is not None and wave.withholds(key))
                or (ranking is not None and _out_of_place(partition, ranking))
            ):
                if not (passing and ranking is not None and self._in_its_rack(partition, key, entry, ranking)):
                    baseline = self._baseline(partition, entry)
                    concerned.append(self._concern(partition, key, baseline, ranking, found))
                    continue
                found.resting += 1
                if len(replicas) > 1 and ranking.ranks.get(replicas[0]) == ranking.ranks.get(replicas[1]):
                    found.choosing.update(replicas[:2])
            leader = partition.leader
            if leader is not None:
                counts[leader] = counts.get(leader, 0) + 1
                if weighs:
                    account.carry(leader, key)
        return found

    def _in_its_rack(
        self, partition: Partition, key: PartitionKey, entry: UndoEntry | None, ranking: RackRanking
    ) -> bool:
        """Whether a partition is permanently where a rack wants it, and neither a broker nor a share concerns it."""
        if entry is None or entry.state is not EntryState.DISPLACED or ranking.weights or key in self._partly:
            return False
        free = self._demoted.isdisjoint(partition.replicas) and self._returning.keys().isdisjoint(partition.replicas)
        return free and ranking.rests(partition, entry.baseline)

    def _sorted_without_racks(self) -> _SortedPartitions:
        """The same where no rack is preferred: few partitions are affected, and all others are counted at once."""
        demoted, returning, entries, cluster = self._demoted, self._returning, self._entries, self._cluster
        impaired = self._partly
        leaders = {broker: count for broker, count in cluster.leader_counts.items() if broker is not None}
        account = self._account(leaders)
        found = _SortedPartitions(account, dict.fromkeys(returning, 0))
        if not (demoted or returning or entries or impaired):
            return found
        affected = {
            key: partition
            for key, partition in cluster.by_key.items()
            if key in entries
            or key in impaired
            or not demoted.isdisjoint(partition.replicas)
            or ((wave := returning.get(partition.replicas[0])) is not None and wave.withholds(key))
        }
        for key, partition in affected.items():
            if partition.leader is not None:
                account.counts[partition.leader] -= 1
            baseline = self._baseline(partition, entries.get(key))
            found.concerned.append(self._concern(partition, key, baseline, None, found))
        if account.weighs:
            for key, partition in cluster.by_key.items():
                if key not in affected and partition.leader is not None:
                    account.carry(partition.leader, key)
        return found

    def _account(self, leaders: Mapping[int, int]) -> LeaderLoads:
        """An account with these leaders, and with those out of scope, which their brokers lead as well."""
        account = LeaderLoads(dict.fromkeys(self._live, 0) | dict(leaders), self._capacity, self._loads)
        managed, whole = self._cluster, self._snapshot.cluster
        if managed is whole:
            return account
        for broker, led in whole.leader_counts.items():
            if broker is not None:
                account.counts[broker] = account.counts.get(broker, 0) + led - managed.leader_counts[broker]
        if account.weighs:
            for key, partition in whole.by_key.items():
                if key not in managed.by_key and partition.leader is not None:
                    account.carry(partition.leader, key)
        return account

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
        found: _SortedPartitions,
    ) -> TargetOrder | LeaderChoice:
        """Leader choice of a partition; decided if the baseline applies, or if only one broker in its best rack
        may lead.
        """
        demoted, unhealthy = self._kept_off(key), self._unhealthy
        leading = self._leading if demoted is self._demoted else self._leading - demoted
        withheld = self._withheld(key, baseline, ranking) if self._returning else _NO_BROKERS
        able = _able(baseline, partition.isr, leading, withheld)
        touched = not demoted.isdisjoint(baseline) or (
            bool(withheld) if ranking is not None else baseline[0] in withheld
        )
        if withheld:
            if not partition.reassigning and unhealthy.issuperset(able):
                # A wave must not leave a partition without a healthy leader.
                able = _able(baseline, partition.isr, leading, _NO_BROKERS)
            for heir in (baseline[0],) if ranking is None else ranking.eligible_leaders(baseline[0], baseline):
                if heir in withheld:
                    (found.early if heir in able else found.awaited)[heir] += 1
        if partition.reassigning or not (touched or ranking is not None):
            return self._wanted(partition, key, baseline, ranking, None)
        well = able if unhealthy.isdisjoint(able) else tuple([b for b in able if b not in unhealthy]) or able
        preferred = well if ranking is None else ranking.best(well)
        urgency = self._sickness.get(partition.leader, -1) if partition.leader is not None else -1
        choice = LeaderChoice(partition, key, baseline, able, preferred, ranking, well, not touched, urgency)
        if ranking is not None and len(preferred) == 1 and not (ranking.weights or self._capacity.bounded):
            # Independent of other choices: nearly all partitions, where each rack has one replica.
            settled = choice.settled_leader
            return self._wanted(partition, key, baseline, ranking, preferred[0] if settled is None else settled)
        return choice

    def _withheld(self, key: PartitionKey, baseline: tuple[int, ...], ranking: RackRanking | None) -> frozenset[int]:
        """The replicas of a partition that are returning and wait for a later wave to lead it.

        A partition is checked only where another replica than its baseline's first may have to lead it.
        """
        returning = self._returning
        if returning.keys().isdisjoint(baseline):
            return _NO_BROKERS
        if ranking is None and baseline[0] not in returning and self._demoted.isdisjoint(baseline):
            return _NO_BROKERS
        position = wave_position(key)
        return frozenset(b for b in baseline if b in returning and returning[b].withholds_position(position))

    def _decided(self, concerned: Iterable[TargetOrder | LeaderChoice], spread: Assignment) -> Iterator[TargetOrder]:
        for item in concerned:
            if isinstance(item, TargetOrder):
                yield item
            elif item.key in spread.left:
                yield TargetOrder(
                    item.partition, item.key, item.baseline, item.partition.replicas, None, no_capacity=True
                )
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
        demoted = self._kept_off(key)
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
    """Replicas that may lead, in the order of the baseline."""
    able = []
    for replica in baseline:
        if replica in isr and replica in leading and replica not in withheld:
            able.append(replica)  # noqa: PERF401 - so short a comprehension takes half as long again
    return tuple(able)


def _out_of_place(partition: Partition, ranking: RackRanking) -> bool:
    """Whether the racks may require another order, or another leader than Kafka's own balancing would choose."""
    if ranking.weights or not ranking.orderly(partition.replicas):
        return True
    leader, ranks = partition.leader, ranking.ranks
    return leader is not None and ranks.get(leader, -1) > ranks.get(partition.replicas[0], -1)
