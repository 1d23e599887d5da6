"""Snapshot: everything that one reconcile knows, gathered before anything is judged. Nothing later fetches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from bellwether.core.model.cluster import Cluster, PartitionKey
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.core.model.flap_damping import FlapCounter
from bellwether.core.model.loads import Loads
from bellwether.core.model.maintenance import Maintenance, under_maintenance
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.reassignments import ExternalReassignments
from bellwether.core.model.strimzi import Blocker, Pod, Strimzi
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.signals import Override, Signal


@dataclass(frozen=True, slots=True)
class RefusedOrder:
    """An order that Kafka refused for a partition: how often, when last, and in what words."""

    order: tuple[int, ...]
    times: int
    at: datetime
    message: str


@dataclass(frozen=True)
class Snapshot:
    """The facts of one turn: metadata, signals, overrides, the undo record as recovered, flap counters, the time.

    ``strimzi`` is what Strimzi says of the cluster; None where another runs it. ``confinements`` are the orders to
    pause a broker that stood after the last turn; ``margins`` is what could still be lost, where that was asked.
    """

    now: datetime
    cluster: Cluster
    record: UndoRecord
    signals: tuple[Signal, ...] = ()
    overrides: tuple[Override, ...] = ()
    refused: Mapping[PartitionKey, RefusedOrder] = field(default_factory=dict)
    flaps: Mapping[int, FlapCounter] = field(default_factory=dict)
    strimzi: Strimzi | None = None
    floors: Mapping[str, int] = field(default_factory=dict)
    """``min.insync.replicas`` of topics with missing replicas, as far as it was told."""
    quarantine_orders: Mapping[int, QuarantineOrder] = field(default_factory=dict)
    fault_tolerance: FaultTolerance | None = None
    external_reassignments: ExternalReassignments | None = None
    """Who else moves replicas now."""
    pods: Mapping[int, Pod] | None = None
    """The brokers' pods, where the policy has their restarts watched."""

    @cached_property
    def maintenance(self) -> Mapping[int, Maintenance]:
        """The brokers that are in maintenance now, and why."""
        return under_maintenance(self.overrides, self.pods, self.record.demoted, self.now)

    loads: Loads | None = None
    """What leading each partition costs, where that was measured."""

    @property
    def external_operation(self) -> Blocker | None:
        """Why promotion, rebalancing and re-assertion wait for whoever runs the cluster, if they do (law 10)."""
        busy = self.strimzi.external_operation if self.strimzi is not None else None
        return busy or (
            self.external_reassignments.external_operation if self.external_reassignments is not None else None
        )

    def override_of(self, broker: int) -> Override | None:
        """The override of a broker that holds now, if any."""
        return next((o for o in self.overrides if o.broker == broker and o.active(self.now)), None)
