"""Count displaced partitions, those of them that preferred racks keep so, and leaders outside the preferred racks.

In: the context and the plan. Out: counts of partitions. Pure. Called by ``report``.
"""

from __future__ import annotations

from collections.abc import Callable
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
    snapshot = context.snapshot
    entries, targets = snapshot.record.entries, plan.targets
    displaced = for_racks = out_of_place = 0
    stays = _stays_for_racks(context, plan)
    for partition in snapshot.cluster.partitions:
        key, replicas = partition.key, partition.replicas
        entry = entries.get(key)
        if context.policy.placement is not None:
            home = targets.get(key, replicas)[0]
        else:
            home = entry.baseline[0] if entry is not None else replicas[0]
        out_of_place += partition.leader != home
        if entry is not None and replicas != entry.baseline:
            displaced += 1
            for_racks += stays(partition, key)
    return PlacementCounts(displaced, for_racks, out_of_place)


def _stays_for_racks(context: Context, plan: Plan) -> Callable[[Partition, PartitionKey], bool]:
    """Function that returns whether only the racks keep a displaced partition so, and permanently.

    They do if the plan wants its current order, its first replica leads, and none of its replicas is demoted or waits
    for a later wave. A policy that is being deleted restores everything.
    """
    decisions, targets, rankings = plan.decisions, plan.targets, context.rankings
    if rankings is None or decisions.policy_deleted:
        return lambda _partition, _key: False
    held = {hold.key for hold in plan.holds}
    demoted, returning = decisions.demoted.keys(), decisions.returning

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
            and demoted.isdisjoint(replicas)
            and (returning.keys().isdisjoint(replicas) or not waits(key, replicas))
        )

    return stays
