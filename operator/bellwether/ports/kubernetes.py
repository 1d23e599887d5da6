"""Ports to what Kubernetes keeps for a reconcile: undo record, Lease, signals, quarantine orders, audit trail.

Implemented by ``adapters.kubernetes``, by ``adapters.files`` and, for simulations, by classes here. Every
method answers or raises one of ``ports.errors``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.undo_record import Sender, UndoRecord
from bellwether.core.reporting.audit import AuditEntry
from bellwether.core.signals import Override, Signal


class UndoRecords(Protocol):
    """Keeps one policy's undo record durably. Raises Transient, or Fenced when another epoch has written."""

    def take_over(self, cluster_id: str) -> UndoRecord:
        """Read the record and raise its epoch by a checked write, so that an older holder's writes are refused."""

    def save(self, record: UndoRecord) -> None:
        """Make the record durable before returning; only what changed since the last call is written."""


class Leadership(Protocol):
    """The Lease (invariant 7)."""

    def seconds_left(self) -> float:
        """How long, on the local monotonic clock, this process surely still holds the Lease; 0 when it does not."""

    def confirm(self) -> None:
        """Read the Lease where it is kept: a machine that was paused knows nothing of it by its own clocks.

        Raises Fenced if another process holds it, LeaseUnconfirmed if it cannot be read.
        """


class FormerSenders(Protocol):
    """Operator processes that had the undo record before this one, and may have been paused before they sent."""

    def running(self, senders: Sequence[Sender]) -> tuple[Sender, ...]:
        """Those that are not proven to have ended. Asks now and then; never raises."""


class SignalReader(Protocol):
    """Signals and overrides, as last seen; never blocks on a prober."""

    def signals(self) -> tuple[Signal, ...]:
        """The last signal of every source, aged on the reader's monotonic clock."""

    def overrides(self) -> tuple[Override, ...]:
        """What people asked for, expired ones included."""


class UnchangingSignals:
    """``SignalReader`` of signals and overrides that stay as they are; none without arguments."""

    def __init__(self, signals: tuple[Signal, ...] = (), overrides: tuple[Override, ...] = ()) -> None:
        self.signals = lambda: signals
        self.overrides = lambda: overrides


class QuarantineOrders(Protocol):
    """Keeps one policy's quarantine orders where the quarantine agents of its brokers read them."""

    def take_over(self) -> Mapping[int, QuarantineOrder]:
        """The orders that a previous process left, by broker. Raises Transient or Terminal."""

    def keep(self, orders: Mapping[int, QuarantineOrder]) -> None:
        """Write what has changed in these orders, and remove those of other brokers.

        Never raises: an order that is not written is not obeyed, and one that is not renewed expires.
        """


class NoQuarantineOrders:
    """No order is kept: simulations, replays and commands hold no broker."""

    def take_over(self) -> Mapping[int, QuarantineOrder]:
        """None."""
        return {}

    def keep(self, orders: Mapping[int, QuarantineOrder]) -> None:
        """Nothing."""


class AuditTrail(Protocol):
    """Keeps what moved, when, why and for what cause. Writing never raises: an audit failure delays no reconcile."""

    def read(self) -> Sequence[AuditEntry]:
        """All entries, the oldest first. Raises Transient or Terminal."""

    def begin(self, entry: AuditEntry) -> None:
        """The moves that a reconcile is about to make."""

    def conclude(self, entry: AuditEntry) -> None:
        """The entry that was begun last, with its outcome."""


class NothingShared:
    """Undo record, Lease and audit trail of a process that stores nothing: it simulates, reads, or only elects."""

    def take_over(self, cluster_id: str) -> UndoRecord:
        """Empty: the record in use was read before."""
        return UndoRecord(cluster_id)

    def save(self, record: UndoRecord) -> None:
        """Nothing."""

    def seconds_left(self) -> float:
        """Always enough: an election of preferred leaders needs no Lease, however late it arrives."""
        return float("inf")

    def confirm(self) -> None:
        """Nothing."""

    def read(self) -> Sequence[AuditEntry]:
        """None."""
        return ()

    def begin(self, entry: AuditEntry) -> None:
        """Nothing."""

    def conclude(self, entry: AuditEntry) -> None:
        """Nothing."""
