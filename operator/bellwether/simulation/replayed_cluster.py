"""Replayed cluster: brokers, ISRs and topics change as recorded, leaders as the replayed operator moves them.

In: clusters as a trace shows them, one after another. Brokers that die, are fenced or come back, followers that leave
or join an ISR, topics and reassignments of others are played on the simulated control plane. Orders and leaders are its
own: there the replayed operator acts, not the one of then. Called by ``replay_run`` and ``forecast``.
"""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.cluster import Cluster, Partition, PartitionKey, TopicPartition
from bellwether.simulation.memory_cluster import MemoryBroker, MemoryCluster


class ReplayedCluster(MemoryCluster):
    """Begins as ``first`` and goes on by ``advance_to``."""

    def __init__(self, first: Cluster) -> None:
        super().__init__({}, cluster_id=first.cluster_id)
        for broker in sorted(first.named - first.removed):
            seen = first.brokers.get(broker)
            rack = seen.rack if seen is not None else None
            fenced = seen is not None and seen.fenced
            self.brokers[broker] = MemoryBroker(broker, rack, alive=seen is not None, fenced=fenced)
        self.unregistered |= first.removed
        for partition in first.partitions:
            self._add(partition)
        self._last: dict[PartitionKey, Partition] = dict(first.by_key)

    def advance_to(self, now: Cluster) -> None:
        """Apply the changes between the last cluster and this one."""
        self._topics_gone(now)
        self._brokers_gone(now)
        returned = self._brokers_back(now)
        for partition in now.partitions:
            before = self._last.get(partition.key)
            if before is None:
                self._add(partition)
            elif partition != before or not returned.isdisjoint(partition.replicas):
                self._follow(partition)
        self._last = dict(now.by_key)

    def _add(self, partition: Partition) -> None:
        self.settings.setdefault(partition.topic, {MIN_ISR: "1"})
        self._partitions[partition.name] = partition
        self.mutations += 1

    def _topics_gone(self, now: Cluster) -> None:
        for key, partition in self._last.items():
            if key not in now.by_key and self._partitions.get(partition.name, partition).topic_id == key.topic_id:
                self._partitions.pop(partition.name, None)
                self.mutations += 1

    def _brokers_gone(self, now: Cluster) -> None:
        for removed in now.removed.intersection(self.brokers):
            self.unregister(removed)
        for broker in self.brokers.values():
            seen = now.brokers.get(broker.id)
            if seen is None and broker.alive:
                self.kill(broker.id)
            elif seen is not None and seen.fenced and not broker.fenced:
                broker.alive = True
                self.fence(broker.id)

    def _brokers_back(self, now: Cluster) -> set[int]:
        """Revive returning brokers, outside of any ISR yet; returns their ids."""
        returned = set()
        for unseen in sorted(now.named - now.removed - set(self.brokers)):
            self.brokers[unseen] = MemoryBroker(unseen, alive=False)
        for seen in now.brokers.values():
            broker = self.brokers[seen.id]
            broker.rack = seen.rack
            if not seen.fenced and not broker.active:
                self.revive(seen.id, catch_up=False)
                returned.add(seen.id)
            elif seen.fenced and not broker.alive:
                broker.alive, broker.fenced = True, True
        return returned

    def _follow(self, seen: Partition) -> None:
        """Bring one partition's replicas and ISR to what was seen, in the simulated one's own order."""
        mine = self._partitions[seen.name]
        if seen.reassigning and set(seen.target) != set(mine.target):
            self.assign(mine, seen.target)
        elif not seen.reassigning and set(seen.replicas) != set(mine.replicas):
            self.assign(mine, seen.replicas)
            self._finish(self._partitions[seen.name])
        elif not seen.reassigning and mine.reassigning:
            self._finish(mine)
        mine = self._partitions[seen.name]
        if mine.leader is None and seen.leader is not None and self._active(seen.leader):
            # It has a leader again: an unclean election is not replayed, only its outcome.
            isr = tuple(b for b in seen.isr if self._active(b))
            self._partitions[seen.name] = replace(mine, isr=isr, leader=seen.leader, elr=())
        self._follow_isr(seen, seen.name)

    def _follow_isr(self, seen: Partition, name: TopicPartition) -> None:
        for broker in seen.isr:
            mine = self._partitions[name]
            if broker in mine.replicas and broker not in mine.isr and mine.leader is not None and self._active(broker):
                self.join_isr(name, broker)
        for broker in tuple(self._partitions[name].isr):
            # A broker that leads here and followed then has left no ISR of its own.
            if broker not in seen.isr and broker != self._partitions[name].leader:
                self.shrink_isr(name, broker)
