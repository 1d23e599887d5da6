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

from bellwether.core.audits import AuditEntry
from bellwether.core.baselines import UndoRecord
from bellwether.core.clusters import Cluster, Partition, TopicPartition
from bellwether.core.signals import Override, Signal
from bellwether.core.strimzi import Strimzi


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

    ``strimzi`` is what Strimzi said of the cluster right before the turn; None where another runs it.
    """

    clusters: ClusterReader
    leaders: LeaderMover
    records: UndoRecords
    leadership: Leadership
    signals: SignalSource
    clock: Clock
    strimzi: Strimzi | None = None
    trail: AuditTrail = field(default_factory=Untold)


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
