"""Log directories of a simulated cluster (``ports.kafka.LogDirReader``). A test lays them out in ``MemoryCluster``."""

from __future__ import annotations

from bellwether.core.model.log_dirs import Placement
from bellwether.testing.memory_cluster import MemoryCluster


class MemoryLogDirs:
    """Answers for brokers that are alive and not frozen. ``asked`` counts the reads."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.asked = 0

    def log_dirs(self, broker: int) -> Placement | None:
        """The broker's partitions by directory; None without an answer."""
        self.asked += 1
        found = self.cluster.brokers.get(broker)
        return self.cluster.log_dirs(broker) if found is not None and found.alive and not found.frozen else None
