"""Simulated operator: reconciles a cluster in memory and keeps what it did, as rows of a timeline and as changes.

Called by ``forecast`` and ``simulation``. Nothing here decides: each step is the operator's own reconcile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Policy
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.gather import Memory
from bellwether.ports.errors import Transient
from bellwether.ports.world import World
from bellwether.reconcile import NOTHING, reconcile
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.replay_timeline import Timeline


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """What the operator changed of one partition: order and leader, before and after."""

    at: datetime
    name: TopicPartition
    order_before: tuple[int, ...]
    order: tuple[int, ...]
    leader_before: int | None
    leader: int | None

    @property
    def moved(self) -> bool:
        """Whether the leader changed, and not only the order."""
        return self.leader != self.leader_before


class SimulatedOperator:
    """One operator process that works on ``cluster`` through ``world``; its memory goes on from ``memory``."""

    def __init__(
        self, cluster: MemoryCluster, world: World, policy: Policy, memory: Memory, inputs: RebalanceInput = NOTHING
    ) -> None:
        self.cluster = cluster
        self.world = world
        self.policy = policy
        self.memory = memory
        self.timeline = Timeline()
        self.changes: list[PartitionChange] = []
        self.report: Report | None = None
        self._inputs = inputs
        self._seen = cluster.snapshot(), cluster.mutations

    def reconcile(self) -> Report | None:
        """Reconcile once; None if no broker answers."""
        before, now = self._look(), self.world.clock.now()
        demoted_before = frozenset(self.memory.record.demoted)
        try:
            done = reconcile(self.world, self.policy, self.memory, rebalance_input=self._inputs)
        except Transient:
            return None
        # A cluster in memory elects at once, so its elections measure no cost.
        self.memory = replace(done.memory, elections=self.memory.elections)
        self.changes += changes_between(before, self._look(), now)
        self.timeline.took(now, done.report, demoted_before)
        self.report = done.report
        return done.report

    def _look(self) -> Cluster:
        """The cluster now, the same value while nothing changes."""
        if self._seen[1] != self.cluster.mutations:
            self._seen = self.cluster.snapshot(), self.cluster.mutations
        return self._seen[0]


def changes_between(before: Cluster, after: Cluster, at: datetime) -> Iterator[PartitionChange]:
    """The partitions whose order or leader differs, by name."""
    if before is after:
        return
    for new in sorted(after.partitions, key=lambda p: p.name):
        old = before.by_key.get(new.key)
        if old is not None and (old.replicas, old.leader) != (new.replicas, new.leader):
            yield PartitionChange(at, new.name, old.replicas, new.replicas, old.leader, new.leader)
