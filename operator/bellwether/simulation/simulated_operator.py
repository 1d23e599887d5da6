"""Simulated operator: one operator process on a cluster in memory, and what it did, as rows of a timeline and changes.

Called by ``forecast``, ``simulation`` and ``replay_run``. Nothing here decides: each step is the operator's own
reconcile, and the next one comes when the operator's own rule wants it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.reporting.report import Report
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.settings.policy import Policy
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.gather import Memory
from bellwether.ports.errors import Transient
from bellwether.ports.world import World
from bellwether.reconcile import NOTHING, reconcile
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.replay_timeline import Timeline

REQUEUE = Requeue()
SHORTEST_SECONDS = 0.1
"""How long a reconcile takes here, where Kafka answers at once."""


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
    """One operator process that works on ``cluster`` through ``world``; its memory goes on from ``memory``.

    ``world`` and ``policy`` may be replaced between two reconciles; ``see`` is given each report.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        world: World,
        policy: Policy,
        memory: Memory,
        inputs: RebalanceInput = NOTHING,
        timeline: Timeline | None = None,
        see: Callable[[Report], None] = lambda _: None,
    ) -> None:
        self.cluster = cluster
        self.world = world
        self.policy = policy
        self.memory = memory
        self.timeline = timeline or Timeline()
        self.changes: list[PartitionChange] = []
        self.report: Report | None = None
        self.reconciles = 0
        self._inputs = inputs
        self._see = see
        self._seen = cluster.snapshot(), cluster.mutations
        self._due = world.clock.monotonic()
        self._judged: tuple[list[bool], list[bool]] = [], []

    def run(self, until: float) -> None:
        """Let time pass up to that moment of the monotonic clock, and reconcile whenever that is ``due`` before it."""
        clock = self.world.clock
        while (now := clock.monotonic()) < until:
            if self.due:
                self.reconcile()
            # Where no evidence is left that could become stale, nothing happens before the next reconcile.
            look = now + REQUEUE.inbox_seconds if any(map(any, self._judged)) else math.inf
            clock.sleep(min(max(self._due, now + SHORTEST_SECONDS), look, until) - now)

    @property
    def due(self) -> bool:
        """Whether the operator would reconcile now, though nothing was changed from outside."""
        return self.world.clock.monotonic() >= self._due or (
            self.report is not None and self._judged != self._freshness()
        )

    def reconcile(self) -> Report | None:
        """Reconcile once; None if no broker answers."""
        clock = self.world.clock
        before, now = self._look(), clock.now()
        demoted_before = frozenset(self.memory.record.demoted)
        self._due = clock.monotonic() + REQUEUE.retry_seconds
        try:
            done = reconcile(self.world, self.policy, self.memory, rebalance_input=self._inputs)
        except Transient:
            return None
        # A cluster in memory elects at once, so its elections measure no cost.
        self.memory = replace(done.memory, elections=self.memory.elections)
        self.changes += changes_between(before, self._look(), now)
        self.timeline.took(now, done.report, demoted_before)
        self.report = done.report
        self.reconciles += 1
        self._see(done.report)
        self._judged = self._freshness()
        self._due = clock.monotonic() + REQUEUE.after(done.report, self.policy, self.memory.record)
        return done.report

    def _freshness(self) -> tuple[list[bool], list[bool]]:
        """Which signals count as evidence by the patience of their kind, and which overrides are active."""
        detection, now = self.policy.detection, self.world.clock.now()
        fresh = [
            (patience := detection.stale_after(signal.type, signal.source)) is not None
            and signal.age_seconds is not None
            and signal.age_seconds <= patience
            for signal in self.world.signals.signals()
        ]
        return fresh, [override.active(now) for override in self.world.signals.overrides()]

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
