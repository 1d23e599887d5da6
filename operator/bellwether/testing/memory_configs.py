"""Topic and broker settings of a simulated cluster (``ports.kafka.ConfigReader``). A test changes them through
``MemoryCluster``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bellwether.testing.memory_cluster import MemoryCluster
from bellwether.testing.memory_kafka import MemoryRoute


class MemoryConfigs:
    """Returns the effective settings, including Kafka's defaults. ``asked`` counts the reads."""

    def __init__(self, cluster: MemoryCluster, route: MemoryRoute | None = None) -> None:
        self.cluster = cluster
        self.route = route or MemoryRoute(cluster)
        self.asked = 0

    def topic_configs(self, topics: Collection[str], names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Some settings of some topics. Raises Transient when the broker that was asked does not answer."""
        if not topics or not names:
            return {}
        self.asked += 1
        self.route.through()
        known = {t: self.cluster.topic_settings(t) for t in sorted({p.topic for p in self.cluster.partitions(topics)})}
        return {topic: _some(settings, names) for topic, settings in known.items()}

    def broker_configs(self, brokers: Collection[int], names: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        """Some settings of some brokers; one that is dead or frozen does not answer."""
        if not names:
            return {}
        self.asked += 1
        answering = [b for b in sorted(set(brokers)) if b in self.cluster.brokers]
        return {
            b: _some(self.cluster.broker_settings(b), names)
            for b in answering
            if self.cluster.brokers[b].alive and not self.cluster.brokers[b].frozen
        }


def _some(settings: Mapping[str, str], names: Collection[str]) -> Mapping[str, str]:
    return {name: settings[name] for name in sorted(names) if name in settings}
