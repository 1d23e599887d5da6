"""The few Protocols through which a cycle meets the world. Adapters implement them; ``adapters/memory`` ships the fake.

Every method either answers or raises one of the errors below: adapters translate their clients' exceptions once, at the
edge. Errors are named by what the loop must do next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from bellwether.core.model.cluster import Cluster, Partition, TopicPartition
from bellwether.core.model.fault_tolerance import Margins
from bellwether.core.model.strimzi import Pod, Strimzi
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.quarantine.agent import Process, Read
from bellwether.core.reporting.audit import AuditEntry
from bellwether.core.signals import Override, Signal


class BellwetherError(Exception):
    """Base of every error that a port raises; never raised itself."""


class Transient(BellwetherError):
    """Nothing is known to be wrong for good: try again at the next turn."""


class Terminal(BellwetherError):
    """A person must act (wrong bootstrap, refused credentials, missing permission); other policies go on."""


class Unauthenticated(Terminal):
    """Who we are cannot be said or is not believed: a Secret, a file, a certificate, a password, a token.

    Somebody renews it in its own time: what was read before is worth reading again.
    """


class Unauthorized(Terminal):
    """Kafka knows who we are and refuses what we ask: an ACL is missing."""


class WrongCluster(Terminal):
    """The connection leads to another Kafka cluster than the one that the undo record belongs to."""


class Fenced(BellwetherError):
    """Another holder has taken over (a higher epoch, a lost Lease): stop at once and change nothing more."""


@dataclass(frozen=True, slots=True)
class Reorder:
    """A request to give a partition another order of the same replicas."""

    name: TopicPartition
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What Kafka said of one partition: ``error`` is the protocol's error name (``NONE`` for success)."""

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
        ...

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        """Fresh partitions of some topics, reassignments included; a topic that is gone is simply absent."""
        ...

    def avoid(self, brokers: Collection[int]) -> None:
        """From now on send nothing to these brokers while another one answers (they are suspect)."""
        ...


class TopicConfigReader(Protocol):
    """Reads topics' settings as they are in force, defaults included: DescribeConfigs (KIP-133, KIP-226).

    Raises Transient or Terminal; Unauthorized names the ACL that is missing.
    """

    def topic_configs(self, topics: Collection[str], names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Some settings of some topics, in one bounded read. What is gone, unknown or secret is absent."""
        ...


class ConfigReader(TopicConfigReader, Protocol):
    """Reads brokers' settings, too."""

    def broker_configs(self, brokers: Collection[int], names: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        """Some settings of some brokers, each asked for its own; one that does not answer in time is absent."""
        ...


class LeaderMover(Protocol):
    """Moves leadership. Each call is one request with a hard time limit and no retry of its own.

    Raises Transient when no answer came in time: the request may or may not have been carried out, even later.
    """

    request_timeout_seconds: float

    def reorder(self, orders: Sequence[Reorder]) -> Mapping[TopicPartition, Outcome]:
        """AlterPartitionReassignments with another order of the same replicas (KIP-455, KIP-860)."""
        ...

    def elect(self, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        """ElectLeaders, preferred (KIP-460)."""
        ...

    def cancel(self, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        """Cancel the reassignments of these partitions (KIP-455)."""
        ...


class UncleanElections(Protocol):
    """Elections that lose records: a person's own command has it, and no turn ever does (law 2)."""

    def elect(self, name: TopicPartition) -> Outcome:
        """ElectLeaders, unclean, of one partition (KIP-460); one that has a leader is left as it is.

        Raises Transient when no answer came in time: it may have been carried out.
        """
        ...


class UndoRecords(Protocol):
    """Keeps one policy's undo record durably. Raises Transient, or Fenced when another epoch has written."""

    def take_over(self, cluster_id: str) -> UndoRecord:
        """Read the record and raise its epoch by a checked write, so that an older holder's writes are refused."""
        ...

    def save(self, record: UndoRecord) -> None:
        """Make the record durable before returning; only what changed since the last call is written."""
        ...


class Leadership(Protocol):
    """The Lease (law 7)."""

    def seconds_left(self) -> float:
        """How long, on the local monotonic clock, this process surely still holds the Lease; 0 when it does not."""
        ...


class SignalSource(Protocol):
    """Signals and overrides, as last seen; never blocks on a prober."""

    def signals(self) -> tuple[Signal, ...]:
        """The last word of every source, aged on the reader's monotonic clock."""
        ...

    def overrides(self) -> tuple[Override, ...]:
        """What people asked for, expired ones included."""
        ...


class AuditTrail(Protocol):
    """Keeps what moved, when, why and by whose word. Never raises: no turn waits for its trail."""

    def begin(self, entry: AuditEntry) -> None:
        """What a turn sets out to do, before anything moves."""
        ...

    def conclude(self, entry: AuditEntry) -> None:
        """The entry that was begun last, with its outcome."""
        ...


class Untold:
    """The trail of whoever keeps none: simulations, replays, a person who looks on."""

    def begin(self, entry: AuditEntry) -> None:
        """Nothing."""

    def conclude(self, entry: AuditEntry) -> None:
        """Nothing."""


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> datetime:
        """Wall-clock time, UTC, with time zone."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside that one policy's cycle needs.

    ``strimzi`` is what Strimzi said of the cluster right before the turn; None where another runs it. Without
    ``margins`` nobody is quarantined.
    """

    clusters: ClusterReader
    leaders: LeaderMover
    records: UndoRecords
    leadership: Leadership
    signals: SignalSource
    clock: Clock
    strimzi: Strimzi | None = None
    trail: AuditTrail = field(default_factory=Untold)
    margins: MarginReader | None = None
    configs: ConfigReader | None = None
    """Asked for marks of throttled replicas, while somebody else moves some."""
    pods: Mapping[int, Pod] | None = None
    """The brokers' pods right before the turn, where the policy has their restarts watched."""


class MarginReader(Protocol):
    """Reads what a cluster could lose besides: facts that metadata does not hold."""

    def margins(
        self, topics: Collection[str], peers: Collection[int], followed: Mapping[int, Mapping[TopicPartition, int]]
    ) -> Margins:
        """min.insync.replicas of these topics, the quorum, and which of these brokers do not answer; never raises.

        ``followed`` names brokers, partitions that they follow, and who leads those: which of them trail.
        """
        ...


class BrokerProcess(Protocol):
    """The process of the broker that a warden stands beside."""

    def state(self) -> Process:
        """How it is now."""
        ...

    def pause(self) -> None:
        """Stop it. Raises Transient, and lets it run, when that fails."""
        ...

    def release(self) -> None:
        """Let it go on; nothing happens to one that runs. Raises Transient."""
        ...

    def guarded(self) -> bool:
        """Whether it would be released should we die this moment; asking is a sign of life."""
        ...


class Orders(Protocol):
    """Where a warden's orders stand. Raises Transient or Terminal."""

    def read(self) -> Read:
        """The order that stands for its broker, and whether another broker is paused."""
        ...


class JobState(StrEnum):
    """What has become of a job."""

    ACTIVE = "Active"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class JobWord:
    """What has become of a job, and why it failed, in a few words."""

    state: JobState
    message: str = ""


class PlanJobs(Protocol):
    """Runs the jobs that measure loads and make a plan, somewhere else: no call waits for one to end.

    Raises Transient, or Terminal when a person must act.
    """

    def start(self, run: str) -> None:
        """Start the job of that run; nothing happens where it has been started before."""
        ...

    def look(self, run: str) -> JobWord | None:
        """What has become of it; None where there is no such job."""
        ...

    def close(self) -> None:
        """Nobody will look any more: end what would be nobody's."""
        ...
