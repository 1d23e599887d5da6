"""An examination of a simulated cluster, as ``bellwether doctor`` makes one: brokers answer while they run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from bellwether.cli.diagnosis.cluster_examination import Examiner
from bellwether.core.doctor.risks import LogEndSample
from bellwether.core.model.cluster import PartitionKey, TopicPartition
from bellwether.ports.kafka import BrokerLogEnds
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryConfigs, MemoryReader, MemoryRoute

Ends = dict[TopicPartition, dict[int, int]]


class MemoryEnds:
    """Tells where logs end that a test has given, while the broker runs and is not frozen."""

    def __init__(self, cluster: MemoryCluster, ends: Ends | None = None) -> None:
        self._cluster = cluster
        self.ends: Ends = ends or {}
        self.asked: list[tuple[int, frozenset[TopicPartition]]] = []

    def ask(
        self,
        address: str,
        replicas: Mapping[TopicPartition, int],
        timeout_seconds: float,
        longest_seconds: float,
    ) -> BrokerLogEnds:
        """What the broker at ``broker-N.test:9092`` tells."""
        number = int(address.removeprefix("broker-").partition(".")[0])
        self.asked.append((number, frozenset(replicas)))
        broker = self._cluster.brokers[number]
        if not broker.alive or broker.frozen:
            return BrokerLogEnds(problem=f"{address}: no answer within {timeout_seconds:g} s of {longest_seconds:g} s")
        known = {name: self.ends[name][number] for name in replicas if number in self.ends.get(name, {})}
        return BrokerLogEnds(known)


@dataclass
class MemoryWard:
    """A simulated cluster, and its examiner."""

    cluster: MemoryCluster
    ends: Ends = field(default_factory=dict)
    samples: dict[PartitionKey, LogEndSample] = field(default_factory=dict)

    def examiner(self) -> Examiner:
        """Its examiner, through a broker that answers."""
        route = MemoryRoute(self.cluster)
        route.avoided = frozenset(b.id for b in self.cluster.brokers.values() if b.frozen)

        def look(_cluster_id: str, wanted: Collection[PartitionKey]) -> Mapping[PartitionKey, LogEndSample]:
            return {key: sample for key, sample in self.samples.items() if key in wanted}

        return Examiner(
            MemoryReader(self.cluster, route),
            MemoryConfigs(self.cluster, route),
            MemoryEnds(self.cluster, self.ends),
            look,
        )
