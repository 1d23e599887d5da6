"""Count displaced partitions, those of them that preferred racks keep so, and leaders outside the preferred racks.

In: the context and the plan. Out: counts of partitions. Pure. Called by ``report``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class PlacementCounts:
    """Partitions whose order is not their baseline, those of them kept so by racks, leaders other than planned."""

    displaced: int
    for_racks: int
    leaders_out_of_place: int


def count_placements(context: Context, plan: Plan) -> PlacementCounts:
    """The counts of a reconcile."""
    cluster, entries, targets = context.snapshot.cluster, context.snapshot.record.entries, plan.targets
    by_key = cluster.by_key
    # Only an entry or a target makes another broker than the first of the order the one that is to lead.
    out_of_place = len(cluster.without_preferred_leader)
    if context.policy.placement is not None:
        homes: Iterable[tuple[PartitionKey, tuple[int, ...]]] = targets.items()
    else:
        homes = ((key, entry.baseline) for key, entry in entries.items())
    for key, order in homes:
        partition = by_key.get(key)
        if partition is not None and order[0] != partition.replicas[0]:
            out_of_place += (partition.leader != order[0]) - (partition.leader != partition.replicas[0])
    displaced = [
        (key, partition)
        for key, entry in entries.items()
        if (partition := by_key.get(key)) is not None and partition.replicas != entry.baseline
    ]
    stays = _stays_for_racks(context, plan)
    for_racks = sum([stays(partition, key) for key, partition in displaced if key in targets])
    return PlacementCounts(len(displaced), plan.resting + for_racks, out_of_place)


def _stays_for_racks(context: Context, plan: Plan) -> Callable[[Partition, PartitionKey], bool]:
    """Function that returns whether only the racks keep a displaced partition so, and permanently.

    They do if the plan wants its current order, its first replica leads, and none of its replicas is demoted or waits
    for a later wave. A policy that is being deleted restores everything.
    """
    decisions, targets, rankings = plan.decisions, plan.targets, context.rankings
    if rankings is None or decisions.policy_deleted:
        return lambda _partition, _key: False
    held = {hold.key for hold in plan.holds}
    demoted, returning, impaired = decisions.demoted.keys(), decisions.returning, decisions.kept_off.replicas

    def waits(key: PartitionKey, replicas: tuple[int, ...]) -> bool:
        return any(returning[b].withholds(key) for b in returning.keys() & replicas)

    def stays(partition: Partition, key: PartitionKey) -> bool:
        replicas = partition.replicas
        return (
            rankings.of(partition.topic) is not None
            and targets.get(key, replicas) == replicas
            and partition.leader == replicas[0]
            and not partition.reassigning
            and key not in held
            and key not in impaired
            and demoted.isdisjoint(replicas)
            and (returning.keys().isdisjoint(replicas) or not waits(key, replicas))
        )

    return stays
