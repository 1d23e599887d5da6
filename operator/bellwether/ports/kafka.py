"""Ports to Kafka: read metadata and settings, reorder replicas, elect leaders.

Implemented by ``adapters.kafka`` and, for simulations, by ``simulation``. Every method answers or raises one
of ``ports.errors``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bellwether.core.model.cluster import Cluster, Partition, TopicPartition
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.core.model.log_dirs import Placement
from bellwether.core.signals import UnreachableCause


@dataclass(frozen=True, slots=True)
class Reorder:
    """A request to give a partition another order of the same replicas."""

    name: TopicPartition
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Kafka's response for one partition: ``error`` is the protocol's error name (``NONE`` for success)."""

    error: str = "NONE"
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether the request did, or did not need to do, what was asked."""
        return self.error in ("NONE", "ELECTION_NOT_NEEDED")


class ClusterReader(Protocol):
    """Reads metadata. Raises Transient or Terminal."""

    def read(self) -> Cluster:
        """One consistent snapshot of brokers and of all partitions, from a broker that is not in ``avoid``."""

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        """Fresh partitions of some topics, reassignments included; a topic that is gone is simply absent."""

    def avoid(self, brokers: Collection[int]) -> None:
        """From now on send nothing to these brokers while another one answers (they are suspect)."""


class ConfigReader(Protocol):
    """Reads settings of topics and brokers as they are in force, defaults included: DescribeConfigs (KIP-133, KIP-226).

    Raises Transient or Terminal; Unauthorized names the ACL that is missing.
    """

    def topic_configs(self, topics: Collection[str], names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Some settings of some topics, in one bounded read. What is gone, unknown or secret is absent."""

    def broker_configs(self, brokers: Collection[int], names: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        """Some settings of some brokers, each asked for its own; one that does not answer in time is absent."""


class LogDirReader(Protocol):
    """Reads where a broker's replicas lie: DescribeLogDirs (KIP-113)."""

    def log_dirs(self, broker: int) -> Placement | None:
        """The broker's partitions by log directory, of its own answer; None without one in time. Never raises."""


class LeaderMover(Protocol):
    """Moves leadership. Each call is one request with a hard time limit and no retry of its own.

    Raises NotSent when it was surely not sent, and any other Transient when no answer came in time: the request may or
    may not have been carried out, even later.
    """

    request_timeout_seconds: float

    def choose(self) -> int:
        """The broker to ask next. Raises NotSent while the address of none is known."""

    def start_deadline(self) -> None:
        """The time limit of the next request starts now, not when it is made: later than that it is not sent."""

    def reorder(self, orders: Sequence[Reorder], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """AlterPartitionReassignments with another order of the same replicas (KIP-455, KIP-860).

        ``broker`` alone is asked; None asks the first that can be reached.
        """

    def forwards(self, broker: int) -> bool:
        """Whether this very broker answers now a request that it has to forward to the controller. Never raises."""

    def elect(self, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        """ElectLeaders, preferred (KIP-460)."""

    def cancel(self, names: Sequence[TopicPartition], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """Cancel the reassignments of these partitions (KIP-455). ``broker`` as for ``reorder``."""


class UncleanElections(Protocol):
    """Unclean elections, which lose records: used by a manual command, never by a reconcile (invariant 2)."""

    def elect(self, name: TopicPartition) -> Outcome:
        """ElectLeaders, unclean, of one partition (KIP-460); one that has a leader is left as it is.

        Raises Transient when no answer came in time: it may have been carried out.
        """


class FaultToleranceReader(Protocol):
    """Reads fault tolerance inputs that metadata does not contain."""

    def margins(
        self, topics: Collection[str], peers: Collection[int], followed: Mapping[int, Mapping[TopicPartition, int]]
    ) -> FaultTolerance:
        """min.insync.replicas of these topics, the quorum, and which of these brokers do not answer; never raises.

        ``followed`` names brokers, partitions that they follow, and who leads those: which of them trail.
        """


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """How a question to a broker went.

    ``stage`` is the last one reached, on success ``Request``; ``weaker``: something answered, but it is not
    proven to be this broker (Describe is not authorised). ``advertised``: the addresses that the broker advertises, by
    listener name, ``host:port``; empty without an answer. ``cause`` is what it broke at, where that has a name, and
    ``counted`` in metrics, where that is not the stage.
    """

    ok: bool
    seconds: float
    stage: str = "Request"
    message: str = ""
    advertised: Mapping[str, str] = field(default_factory=dict)
    weaker: bool = False
    cause: UnreachableCause | None = None
    counted: str = ""

    @property
    def result(self) -> str:
        """``ok``, or what it broke at: for metrics."""
        return "ok" if self.ok else self.counted or str(self.stage)


@dataclass(frozen=True, slots=True)
class BrokerLogEnds:
    """Where one broker's copies of logs end.

    The ends held at some moment between ``sent`` and ``received`` (this machine's monotonic clock). ``moved`` counts
    the partitions that are elsewhere by now. ``problem``: why some, or all, are missing.
    """

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    sent: float = 0.0
    received: float = 0.0
    moved: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of one broker's copies of partitions; ``problem``: why some, or all, are missing."""

    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    problem: str = ""


class EndsReader(Protocol):
    """Reads one broker. Raises Transient, Terminal or ValueError for failures that are no evidence about it."""

    def ask(
        self, address: str, replicas: Mapping[TopicPartition, int], timeout_seconds: float, longest_seconds: float
    ) -> BrokerLogEnds:
        """Where its logs end; values are the leader epochs that it must lead in."""
