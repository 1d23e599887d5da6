"""A real cluster as a site for ``testkit.simulation.operators.Operator``: what outlives an operator's process there.

In: a started ``KafkaCluster``. Out: worlds that read and move it through the real adapters, with the record, the Lease
and the signals in memory, so that a test can look at them. Time is the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Cluster, Partition, PartitionKey, TopicPartition
from bellwether.core.reporting.report import Report
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import LeaderMover, Outcome, Reorder
from bellwether.ports.world import World
from bellwether.simulation.memory_world import MemorySignals
from testkit.simulation.memory_site import MemoryLeadership, MemoryLease, MemoryRecords, MemoryRecordStore
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until

PATIENT = Limits(
    opening_seconds=limit(10), finding_seconds=limit(20), request_seconds=limit(20), read_seconds=limit(60)
)
"""Time to spare, as tests share their machine."""

LEASE_SECONDS = limit(300)
"""Longer than any request, on a slow machine, too: with less, the executor sends none."""


class PassingTime(SystemClock):
    """The machine's clock; to let time pass is to wait."""

    def advance(self, seconds: float) -> None:
        """Wait that long."""
        self.sleep(seconds)


@dataclass
class KafkaSite:
    """A real cluster and what lasts with it. ``bootstrap`` and ``limits`` go to every process that is made of it."""

    kafka: Any
    bootstrap: tuple[str, ...] = ()
    limits: Limits = PATIENT
    clock: PassingTime = field(default_factory=PassingTime)
    store: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    reported: Report | None = None
    signals: MemorySignals = field(init=False)
    lease: MemoryLease = field(init=False)
    reader: KafkaReader = field(init=False)

    def __post_init__(self) -> None:
        self.bootstrap = self.bootstrap or tuple(self.kafka.bootstrap.split(","))
        self.signals = MemorySignals(self.clock)
        self.lease = MemoryLease(self.clock, duration_seconds=LEASE_SECONDS)
        self.reader = KafkaReader(BrokerPool(Connection(tuple(self.kafka.bootstrap.split(",")), PLAINTEXT), PATIENT))

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return str(self.kafka.cluster_id)

    def process(self, identity: str = "operator-a") -> World:
        """A new operator process, with connections of its own."""
        nodes = BrokerPool(Connection(self.bootstrap, PLAINTEXT), self.limits)
        return World(
            clusters=KafkaReader(nodes),
            leaders=KafkaMover(nodes),
            records=MemoryRecords(self.store),
            leadership=MemoryLeadership(self.lease, identity),
            signals=self.signals,
            clock=self.clock,
            configs=KafkaConfigs(nodes),
        )

    # What an observer sees, who is not the operator.

    def seen(self) -> Cluster:
        """The cluster, read afresh."""
        return self.reader.read()

    def partitions(self, topics: Collection[str] | None = None) -> dict[PartitionKey, Partition]:
        """All partitions, or those of some topics."""
        return {p.key: p for p in self.seen().partitions if topics is None or p.topic in topics}

    def orders(self, topics: Collection[str] | None = None) -> dict[PartitionKey, tuple[int, ...]]:
        """The replica order of all partitions, or of those of some topics."""
        return {k: p.replicas for k, p in self.partitions(topics).items()}

    def until_ordered(self, orders: Mapping[PartitionKey, Sequence[int]]) -> Cluster:
        """The cluster as soon as all replicas are in these orders: others may know it before us."""
        return self.eventually(lambda c: {p.key: p.replicas for p in c.partitions} == orders)

    def leaders(self) -> Mapping[int, int]:
        """How many partitions each broker leads."""
        return self.seen().leaders()

    def eventually(self, holds: Callable[[Cluster], bool], seconds: float = 60) -> Cluster:
        """The cluster as soon as ``holds`` is true of it. Raises AssertionError when it never is."""
        return until(self.seen, seconds, so=holds, every=0.05)

    def restore_leaders(self) -> None:
        """Every replica is in the ISR and the preferred one leads, which Kafka itself sees to once in five minutes."""

        def astray(cluster: Cluster) -> list[TopicPartition]:
            return [p.name for p in cluster.partitions if p.leader != p.replicas[0]]

        whole = self.eventually(lambda c: all(len(p.isr) == len(p.replicas) for p in c.partitions))
        if found := astray(whole):
            KafkaMover(BrokerPool(Connection(self.bootstrap, PLAINTEXT), PATIENT)).elect(found)
        self.everywhere(lambda c: not astray(c))

    def everywhere(self, holds: Callable[[Cluster], bool], seconds: float = 120) -> None:
        """Wait until ``holds`` is true of what each broker shows by itself: each learns in its own time."""
        for broker in self.kafka.brokers:
            until(partial(self.shown_by, broker), seconds, f"broker {broker} shows it", so=holds, every=0.1)

    def shown_by(self, broker: int) -> Cluster:
        """What this broker shows. The second read of a reader would go to another one."""
        return KafkaReader(BrokerPool(Connection((self.kafka.broker(broker).internal,), PLAINTEXT), PATIENT)).read()


class Race:
    """What others do between an operator's check of a topic and its request, and between that and its next read."""

    def __init__(self) -> None:
        self._before: dict[str, Callable[[], object]] = {}
        self._behind: dict[str, Callable[[], object]] = {}

    def before(self, topic: str, act: Callable[[], object]) -> None:
        """Happens once, after the last check and right before the next reorder of the topic arrives."""
        self._before[topic] = act

    def behind(self, topic: str, act: Callable[[], object]) -> None:
        """Happens once, right after the next reorder of the topic, before anything is read back."""
        self._behind[topic] = act

    def around(self, world: World) -> World:
        """The same process, overtaken by others."""
        return replace(world, leaders=_RacingMover(world.leaders, self))

    def reorder(
        self, orders: Sequence[Reorder], send: Callable[[], Mapping[TopicPartition, Outcome]]
    ) -> Mapping[TopicPartition, Outcome]:
        """One request, with what others do around it."""
        topics = {o.name.topic for o in orders}
        self._meet(self._before, topics)
        answer = send()
        self._meet(self._behind, topics)
        return answer

    @staticmethod
    def _meet(acts: dict[str, Callable[[], object]], topics: set[str]) -> None:
        for topic in topics & set(acts):
            acts.pop(topic)()


class _RacingMover:
    def __init__(self, inner: LeaderMover, race: Race) -> None:
        self._inner = inner
        self._race = race
        self.request_timeout_seconds = inner.request_timeout_seconds
        self.start_deadline, self.choose, self.forwards = inner.start_deadline, inner.choose, inner.forwards
        self.elect, self.cancel = inner.elect, inner.cancel

    def reorder(self, orders: Sequence[Reorder], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        return self._race.reorder(orders, lambda: self._inner.reorder(orders, broker))
