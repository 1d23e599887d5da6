"""Replica lists without brokers that are not registered any more: the reassignment that lets partitions move again.

In: the cluster and its live brokers. Out: an order for each partition whose list names a removed broker. Pure; the
doctor prints it for ``kafka-reassign-partitions.sh``. Kafka takes such an order, since only the new list is checked.
"""

from __future__ import annotations

from collections.abc import Collection

from bellwether.core.model.cluster import Cluster, PartitionKey


def repaired_orders(cluster: Cluster, live: Collection[int]) -> dict[PartitionKey, tuple[int, ...]]:
    """The others in their order, then a live broker in place of each removed one, as far as there is one.

    It is the broker with the fewest replicas, in a rack that the partition is not in where there is one. Partitions
    whose brokers are all removed, or that are being reassigned, are left out.
    """
    counts = {broker: cluster.replica_counts[broker] for broker in live} if cluster.removed else {}
    racks = {broker.id: broker.rack for broker in cluster.brokers.values()}
    found = {}
    for partition in cluster.partitions if cluster.removed else ():
        order = [r for r in partition.replicas if r not in cluster.removed]
        if partition.reassigning or not 0 < len(order) < len(partition.replicas):
            continue
        while len(order) < len(partition.replicas) and (free := counts.keys() - set(order)):
            used = {racks.get(r) for r in order}
            order.append(min(free, key=lambda b: (racks.get(b) in used, counts[b], b)))
            counts[order[-1]] += 1
        found[partition.key] = tuple(order)
    return found
