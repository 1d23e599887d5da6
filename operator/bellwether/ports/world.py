"""World: all ports that one reconcile of a policy needs, in one value.

Built by the composition roots (operator, command line, replays) and passed to ``reconcile.reconcile``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bellwether.core.model.broker_identity import Hosts, Pod
from bellwether.core.model.strimzi import Strimzi
from bellwether.ports.clock import Clock
from bellwether.ports.kafka import ClusterReader, ConfigReader, FaultToleranceReader, LeaderMover, LogDirReader
from bellwether.ports.kubernetes import (
    AuditTrail,
    FormerSenders,
    Leadership,
    NoQuarantineOrders,
    NothingShared,
    QuarantineOrders,
    SignalReader,
    UndoRecords,
)

PodSource = Callable[[Hosts], Mapping[int, Pod] | None]
"""Gives the brokers' pods, found by what the brokers advertise; None while they are not known."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside that one policy's cycle needs.

    ``strimzi`` is Strimzi's status of the cluster before the reconcile; None without Strimzi. Without
    ``margins`` no broker is quarantined, or called safe to stop.
    """

    clusters: ClusterReader
    leaders: LeaderMover
    records: UndoRecords
    leadership: Leadership
    signals: SignalReader
    clock: Clock
    strimzi: Strimzi | None = None
    trail: AuditTrail = field(default_factory=NothingShared)
    margins: FaultToleranceReader | None = None
    configs: ConfigReader | None = None
    """Reads the marks of throttled replicas, while another tool moves some."""
    pods: PodSource | None = None
    """The brokers' pods before the reconcile, where the policy watches their restarts."""
    log_dirs: LogDirReader | None = None
    """Reads which replicas lie in which directory, of brokers with several."""
    senders: FormerSenders | None = None
    """Who had the undo record before; None where no other process can have sent."""
    quarantine_orders: QuarantineOrders = field(default_factory=NoQuarantineOrders)
    stopping: Callable[[], bool] = lambda: False
    """Whether the process is to end: then no further batch is begun, and the next holder of the Lease goes on."""
