"""Where orders and leaders stand, against where they belong: what is displaced, and what of it for the racks' sake.

In: a turn's snapshot, the policy, the plan. Out: counts of partitions. Pure. Called by ``statuses``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellwether.core.clusters import Partition
from bellwether.core.plans import Plan
from bellwether.core.policies import Policy
from bellwether.core.racks import Rankings
from bellwether.core.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Partitions whose order is not their baseline, those of them that the racks keep so, leaders in another place."""

    displaced: int
    for_racks: int
    leaders_out_of_place: int


def whereabouts(snapshot: Snapshot, policy: Policy, plan: Plan) -> Whereabouts:
    """The counts of a turn."""
    entries = snapshot.record.entries
    displaced = for_racks = out_of_place = 0
    stays = _stays_for_racks(snapshot, policy, plan)
    for partition in snapshot.cluster.partitions:
        entry = entries.get(partition.key)
        home = entry.baseline[0] if entry is not None else partition.replicas[0]
        if policy.placement is not None:
            home = plan.targets.get(partition.key, partition.replicas)[0]
        out_of_place += partition.leader != home
        if entry is not None and partition.replicas != entry.baseline:
            displaced += 1
            for_racks += stays(partition)
    return Whereabouts(displaced, for_racks, out_of_place)


def _stays_for_racks(snapshot: Snapshot, policy: Policy, plan: Plan) -> Callable[[Partition], bool]:
    """Tells of a displaced partition whether the racks alone keep it so, and for good.

    They do where the plan wants it as it stands, led by its first, and neither a demoted broker nor one that waits for
    a later wave is among its replicas. A policy that goes gives everything back.
    """
    decisions = plan.decisions
    if policy.placement is None or decisions.parting:
        return lambda _: False
    rankings = Rankings(policy.placement, snapshot.cluster)
    held = {hold.key for hold in plan.holds}

    def stays(partition: Partition) -> bool:
        key, replicas = partition.key, partition.replicas
        return (
            rankings.of(partition.topic) is not None
            and plan.targets.get(key, replicas) == replicas
            and partition.leader == replicas[0]
            and not partition.reassigning
            and key not in held
            and decisions.demoted.keys().isdisjoint(replicas)
            and not any(b in decisions.returning and decisions.returning[b].withholds(key) for b in replicas)
        )

    return stays
