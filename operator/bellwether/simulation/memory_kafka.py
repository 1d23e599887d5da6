"""Kafka ports over a simulated cluster: metadata, settings, log directories, fault tolerance; reorders and elections.

Request handling follows Kafka 4's controller, error names included. The vices are the real ones: a request names a
topic by name, compares nothing with what the caller believed, and reports success for a replica set that it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.cluster import Cluster, Partition, TopicPartition
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum
from bellwether.core.model.log_dirs import Placement
from bellwether.ports.errors import NotSent, Transient
from bellwether.ports.kafka import Outcome, Reorder
from bellwether.simulation.memory_cluster import MemoryCluster

MAX_RECORDS_PER_USER_OPERATION = 10_000
"""``QuorumController.MAX_RECORDS_PER_USER_OP``: a request that would write more fails whole."""


class MemoryRoute:
    """Which broker a client talks through: one that is not suspect while there is one, another after a time-out."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.avoided: frozenset[int] = frozenset()
        self._silent: set[int] = set()

    def first(self) -> int:
        """The broker that is tried next. Raises NotSent when all are down."""
        live = [b.id for b in sorted(self.cluster.brokers.values(), key=lambda b: b.id) if b.alive]
        if not live:
            raise NotSent("no broker of the cluster answers: all are down")
        return min(live, key=lambda b: (b in self._silent, b in self.avoided, b))

    def through(self, broker: int | None = None) -> int:
        """The broker that answers this request. Raises NotSent when the one that was tried does not answer."""
        broker = self.first() if broker is None else broker
        if not self.cluster.answers(broker):
            self._silent.add(broker)
            raise NotSent(f"broker {broker} did not answer in time; the next request goes to another one")
        self._silent.discard(broker)
        return broker


class MemoryReader:
    """``ports.kafka.ClusterReader`` over a simulated cluster."""

    def __init__(self, cluster: MemoryCluster, route: MemoryRoute | None = None) -> None:
        self.cluster = cluster
        self.route = route or MemoryRoute(cluster)
        self._last: Cluster | None = None

    def read(self) -> Cluster:
        """The cluster now, the same value while nothing changes. Raises Transient when the broker does not answer."""
        self.route.through()
        found = self.cluster.snapshot()
        if absent := self.cluster.without_listener:
            found = replace(
                found,
                brokers={b: one for b, one in found.brokers.items() if b not in absent},
                partitions=tuple(map(self._shown, found.partitions)),
                serving=found.live & absent,
            )
        if self._last is None or found != self._last:
            self._last = found
        return self._last

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        """Some topics' partitions now. Raises Transient when the broker that was asked does not answer."""
        self.route.through()
        return tuple(map(self._shown, self.cluster.partitions(frozenset(topics))))

    def _shown(self, p: Partition) -> Partition:
        """Metadata does not name a leader that lacks the listener of the one that is asked."""
        hidden = p.leader in self.cluster.without_listener
        return replace(p, leader=None, leader_unknown=True) if hidden else p

    def avoid(self, brokers: Collection[int]) -> None:
        """Ask other brokers first from now on."""
        self.route.avoided = frozenset(brokers)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that reached the cluster, and through which broker: what a test looks at afterwards."""

    kind: str
    names: tuple[TopicPartition, ...]
    through: int
    orders: tuple[tuple[int, ...], ...] = ()


class MemoryMover:
    """``ports.kafka.LeaderMover`` over a simulated cluster. ``sent`` keeps every request that was carried out.

    Raises ValueError, as the real one does, for a partition that is named twice; an empty request is not sent.
    Before Kafka 4.1 (KIP-860) another number of replicas is not refused either.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        request_timeout_seconds: float = 2.0,
        *,
        route: MemoryRoute | None = None,
    ) -> None:
        self.cluster = cluster
        self.request_timeout_seconds = request_timeout_seconds
        self.route = route or MemoryRoute(cluster)
        self.sent: list[Sent] = []

    def choose(self) -> int:
        """The broker that is tried next. Raises NotSent when all are down."""
        return self.route.first()

    def start_deadline(self) -> None:
        """Requests take no time here."""

    def forwards(self, broker: int) -> bool:
        """Whether this broker answers, and the controller behind it."""
        return self.cluster.answers(broker) and self.cluster.quorum

    def reorder(self, orders: Sequence[Reorder], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """AlterPartitionReassignments. Raises NotSent when the broker that was asked does not answer."""
        if not orders:
            return {}
        self._send("reorder", [r.name for r in orders], [r.order for r in orders], broker)
        if len(orders) > MAX_RECORDS_PER_USER_OPERATION:
            changing = [r for r in orders if (p := self.cluster.find(r.name)) and p.replicas != tuple(r.order)]
            if len(changing) > MAX_RECORDS_PER_USER_OPERATION:
                return _too_large([r.name for r in orders])
        return {r.name: self._reorder(r.name, tuple(r.order)) for r in orders}

    def elect(self, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        """ElectLeaders, preferred. Raises Transient when the broker that was asked does not answer."""
        if not names:
            return {}
        self._send("elect", names)
        if len(names) > MAX_RECORDS_PER_USER_OPERATION:
            moving = [n for n in names if self._first_may_lead(n)]
            if len(moving) > MAX_RECORDS_PER_USER_OPERATION:
                return _too_large(names)
        return {name: self._elect(name) for name in names}

    def cancel(self, names: Sequence[TopicPartition], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """Cancel reassignments. Raises Transient when the broker that was asked does not answer."""
        if not names:
            return {}
        self._send("cancel", names, broker=broker)
        return {name: self._cancel(name) for name in names}

    def _send(
        self,
        kind: str,
        names: Sequence[TopicPartition],
        orders: Sequence[tuple[int, ...]] = (),
        broker: int | None = None,
    ) -> None:
        if len(set(names)) != len(names):
            raise ValueError(f"a partition is named twice in one {kind} request")
        through = self.route.through(broker)
        if not self.cluster.quorum:
            raise Transient("the controller has no quorum: the broker's answer did not come in time")
        self.sent.append(Sent(kind, tuple(names), through, tuple(tuple(o) for o in orders)))

    def _reorder(self, name: TopicPartition, order: tuple[int, ...]) -> Outcome:
        p = self.cluster.find(name)
        if p is None:
            return _unknown(name)
        unregistered = [b for b in order if b not in self.cluster.brokers]
        if not order:
            return Outcome(
                "INVALID_REPLICA_ASSIGNMENT", "The manual partition assignment includes an empty replica list."
            )
        if len(set(order)) != len(order):
            return Outcome(
                "INVALID_REPLICA_ASSIGNMENT", f"The manual partition assignment {order} names a broker twice."
            )
        if unregistered:
            return Outcome(
                "INVALID_REPLICA_ASSIGNMENT",
                f"The manual partition assignment includes broker {unregistered[0]}, but no such broker is registered.",
            )
        if self.cluster.version >= (4, 1) and len(order) != len(set(p.replicas) - set(p.removing)):
            return Outcome(
                "INVALID_REPLICATION_FACTOR",
                f"The replication factor is changed from {len(p.replicas)} to {len(order)}, which is not allowed.",
            )
        self.cluster.assign(p, order)
        return Outcome()

    def _elect(self, name: TopicPartition) -> Outcome:
        p = self.cluster.find(name)
        if p is None:
            return _unknown(name)
        if p.leader == p.replicas[0]:
            return Outcome("ELECTION_NOT_NEEDED", "The preferred replica leads already.")
        if not self.cluster.elect_preferred(p):
            return Outcome("PREFERRED_LEADER_NOT_AVAILABLE", f"Broker {p.replicas[0]} cannot lead {name} cleanly.")
        return Outcome()

    def _cancel(self, name: TopicPartition) -> Outcome:
        p = self.cluster.find(name)
        if p is None:
            return _unknown(name)
        if not p.reassigning:
            return Outcome("NO_REASSIGNMENT_IN_PROGRESS", f"No reassignment of {name} is in flight.")
        if not set(p.isr) - set(p.adding):
            return Outcome("INVALID_REPLICA_ASSIGNMENT", f"Reverting {name} would need an unclean leader election.")
        self.cluster.revert(p)
        return Outcome()

    def _first_may_lead(self, name: TopicPartition) -> bool:
        p = self.cluster.find(name)
        return p is not None and p.leader != p.replicas[0] and p.replicas[0] in p.isr


class MemoryConfigs:
    """``ports.kafka.ConfigReader``: effective settings, including Kafka's defaults. ``asked`` counts the reads."""

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
        answering = filter(self.cluster.answers, sorted(set(brokers)))
        return {b: _some(self.cluster.broker_settings(b), names) for b in answering}


class MemoryLogDirs:
    """``ports.kafka.LogDirReader``: answers for brokers that are alive and not frozen. ``asked`` counts the reads."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.asked = 0

    def log_dirs(self, broker: int) -> Placement | None:
        """The broker's partitions by directory; None without an answer."""
        self.asked += 1
        return self.cluster.log_dirs(broker) if self.cluster.answers(broker) else None


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
        silent = frozenset(b for b in peers if not self.cluster.answers(b))
        others = frozenset({-1, -2, -3})
        voters = self.voters or others
        quorum = Quorum(voters, frozenset(v for v in voters if v in others or self.cluster.answers(v)))
        asked = frozenset(b for b, of in followed.items() if of)
        return FaultTolerance(least, quorum, silent, asked & self.trailing, asked - self.trailing)


def _unknown(name: TopicPartition) -> Outcome:
    return Outcome("UNKNOWN_TOPIC_OR_PARTITION", f"There is no partition {name}.")


def _too_large(names: Sequence[TopicPartition]) -> dict[TopicPartition, Outcome]:
    return dict.fromkeys(names, Outcome("POLICY_VIOLATION", "Unable to perform excessively large batch operation."))


def _some(settings: Mapping[str, str], names: Collection[str]) -> Mapping[str, str]:
    return {name: settings[name] for name in sorted(names) if name in settings}
