"""Unclean elections of a simulated cluster (``ports.kafka.UncleanElections``). ``asked`` keeps what came."""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.kafka import Outcome
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryRoute


class MemoryUnclean:
    """As Kafka's controller: a partition that has a leader is left alone, one without living replicas stays without."""

    def __init__(self, cluster: MemoryCluster, route: MemoryRoute | None = None) -> None:
        self.cluster = cluster
        self.route = route or MemoryRoute(cluster)
        self.asked: list[TopicPartition] = []

    def elect(self, name: TopicPartition) -> Outcome:
        """An unclean election. Raises Transient when the broker that was asked does not answer."""
        self.route.through()
        self.asked.append(name)
        p = self.cluster.find(name)
        if p is None:
            return Outcome("UNKNOWN_TOPIC_OR_PARTITION", f"There is no partition {name}.")
        if p.leader is not None:
            return Outcome("ELECTION_NOT_NEEDED", "It has a leader.")
        active = (self.cluster.brokers[b] for b in p.replicas if b in self.cluster.brokers)
        taken = next((broker.id for broker in active if broker.active), None)
        if taken is None:
            return Outcome("ELIGIBLE_LEADERS_NOT_AVAILABLE", f"No replica of {name} lives.")
        led = replace(p, leader=taken, leader_epoch=p.leader_epoch + 1, isr=(taken,), elr=(), last_known_elr=())
        self.cluster._partitions[name] = led
        self.cluster.mutations += 1
        return Outcome()
