"""Broker process, quarantine orders and fault tolerance in memory, for the quarantine agent's ports.

``MemoryProcess`` holds and releases a broker of a simulated cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum
from bellwether.core.quarantine.agent import HoldOrder, OrderRead, ProcessState
from bellwether.ports.errors import Transient
from bellwether.testing.memory_cluster import MemoryCluster


@dataclass
class MemoryProcess:
    """One simulated broker's process. ``keeper`` outlives its agent: ``die`` kills the agent without notice."""

    cluster: MemoryCluster
    broker: int
    stopped: bool = False
    keeper: bool = True
    barred: bool = False

    def state(self) -> ProcessState:
        """How it is; a broker that is dead has no process."""
        if not self.cluster.brokers[self.broker].alive:
            self.stopped = False
            return ProcessState.ABSENT
        if self.barred:
            return ProcessState.BARRED
        return ProcessState.STOPPED if self.stopped else ProcessState.RUNNING

    def remedy(self) -> str:
        """Nothing is known."""
        return ""

    def hold(self) -> None:
        """A controlled shutdown, stopped at its end. Raises Transient for one that is gone."""
        if self.state() is not ProcessState.RUNNING:
            raise Transient(f"broker {self.broker} has no process to stop")
        self.stopped = True
        self.cluster.fence(self.broker)
        self.cluster.freeze(self.broker)

    def release(self) -> None:
        """It ends, and is started again."""
        if self.stopped:
            self.cluster.revive(self.broker)
        self.stopped = False

    def guarded(self) -> bool:
        """Whether the keeper is at its post."""
        return self.keeper

    def die(self) -> None:
        """The agent is killed: its watchdog releases the broker, if it runs."""
        if self.keeper:
            self.release()


@dataclass
class MemoryOrders:
    """Orders as a test lays them down. ``away`` plays an API that does not answer."""

    command: HoldOrder | None = None
    others: int | None = None
    away: bool = False

    def read(self) -> OrderRead:
        """The current orders. Raises Transient while away."""
        if self.away:
            raise Transient("the Kubernetes API does not answer")
        return OrderRead(self.command, self.others)


class MemoryFaultTolerance:
    """``ports.kafka.FaultToleranceReader`` over a simulated cluster. ``voters`` are brokers; those that run keep up.

    Without voters the controllers are others, and well.
    """

    def __init__(self, cluster: MemoryCluster, voters: Collection[int] = ()) -> None:
        self.cluster = cluster
        self.voters = frozenset(voters)
        self.problem = ""
        self.asked = 0
        self.trailing: set[int] = set()

    def margins(
        self, topics: Collection[str], peers: Collection[int], followed: Mapping[int, Mapping[TopicPartition, int]]
    ) -> FaultTolerance:
        """The fault tolerance. Every follower keeps up, unless it is in ``trailing``."""
        self.asked += 1
        if self.problem:
            return FaultTolerance(problem=self.problem)
        known = {p.topic for p in self.cluster.partitions(frozenset(topics))}
        least: Mapping[str, int] = {t: int(self.cluster.topic_settings(t)[MIN_ISR]) for t in sorted(known)}
        silent = frozenset(b for b in peers if not self._answers(b))
        others = frozenset({-1, -2, -3})
        voters = self.voters or others
        quorum = Quorum(voters, frozenset(v for v in voters if v in others or self._answers(v)))
        asked = frozenset(b for b, of in followed.items() if of)
        return FaultTolerance(least, quorum, silent, asked & self.trailing, asked - self.trailing)

    def _answers(self, broker: int) -> bool:
        found = self.cluster.brokers.get(broker)
        return found is not None and found.alive and not found.frozen
