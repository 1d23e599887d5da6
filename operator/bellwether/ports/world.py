"""World: all ports that one reconcile of a policy needs, in one value.

Built by the composition roots (operator, command line, replays) and handed to ``reconcile.turn``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bellwether.core.model.strimzi import Pod, Strimzi
from bellwether.ports.clock import Clock
from bellwether.ports.kafka import ClusterReader, ConfigReader, FaultToleranceReader, LeaderMover
from bellwether.ports.kubernetes import AuditTrail, Leadership, NoAuditTrail, SignalSource, UndoRecords


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
    trail: AuditTrail = field(default_factory=NoAuditTrail)
    margins: FaultToleranceReader | None = None
    configs: ConfigReader | None = None
    """Asked for marks of throttled replicas, while somebody else moves some."""
    pods: Mapping[int, Pod] | None = None
    """The brokers' pods right before the turn, where the policy has their restarts watched."""
