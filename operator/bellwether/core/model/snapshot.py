"""Snapshot: all inputs of one reconcile, gathered before anything is judged. Later steps fetch nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from bellwether.core.model.broker_identity import Hosts, Pod
from bellwether.core.model.cluster import Cluster, PartitionKey
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.model.history.harm_history import HarmHistory
from bellwether.core.model.history.known_good import KnownGoods
from bellwether.core.model.history.move_cost import MoveCost
from bellwether.core.model.loads import Loads
from bellwether.core.model.log_dirs import Placement
from bellwether.core.model.maintenance import Maintenance, requests_maintenance, under_maintenance
from bellwether.core.model.quarantine_order import RELEASE_AFTER, QuarantineOrder
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.signals import Override, OverrideState, Signal


@dataclass(frozen=True, slots=True)
class RefusedOrder:
    """An order that Kafka refused for a partition: how often, when last, with which message, and why.

    ``isr`` is set where the order is in place and the election of its first replica was refused, with that ISR.
    """

    order: tuple[int, ...]
    times: int
    at: datetime
    message: str
    reason: Reason = Reason.REQUEST_REFUSED
    isr: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Snapshot:
    """Inputs of one reconcile: metadata, signals, overrides, the recovered undo record, flap counters, the time.

    ``strimzi`` is the state of the Strimzi cluster; None without Strimzi. ``quarantine_orders`` are the orders after
    the last reconcile; ``fault_tolerance`` is set only where a disk is slow, or a broker is held or may be stopped.
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
    """``min.insync.replicas`` of topics with missing replicas or on brokers in maintenance, as far as it is known."""
    log_dirs: Mapping[int, Placement] = field(default_factory=dict)
    """Partitions by log directory, of brokers with several of them that have answered."""
    quarantine_orders: Mapping[int, QuarantineOrder] = field(default_factory=dict)
    fault_tolerance: FaultTolerance | None = None
    bulk_reassignment: Refusal | None = None
    """Why deferrable work waits for a tool that moves replicas in bulk, if one does."""
    pods: Mapping[int, Pod] | None = None
    """The brokers' pods, where the policy watches their restarts."""
    hosts: Hosts = field(default_factory=dict)
    """What the brokers advertise, as far as that is known."""

    @cached_property
    def signals_about(self) -> Mapping[int, Sequence[Signal]]:
        """Signals by broker."""
        found = defaultdict[int, list[Signal]](list)
        for signal in self.signals:
            found[signal.broker].append(signal)
        return dict(found)

    @cached_property
    def maintenance(self) -> Mapping[int, Maintenance]:
        """The brokers that are in maintenance now, and why."""
        return under_maintenance(self.overrides, self.pods, self.record.demoted, self.wall or self.now)

    @cached_property
    def idle_in_maintenance(self) -> frozenset[int]:
        """Live brokers in maintenance that lead nothing."""
        led = self.cluster.leader_counts
        return frozenset(b for b in self.maintenance if b in self.cluster.live and not led[b])

    @cached_property
    def drained(self) -> Mapping[int, Maintenance]:
        """Brokers in maintenance whose drain is in force: demoted and leading nothing. Only of these are signals
        ignored: one whose drain is held, or that leads what no other can lead, is judged as any other (invariant 17).
        """
        demoted, led = self.record.demoted, self.cluster.leader_counts
        return {b: why for b, why in self.maintenance.items() if b in demoted and not led[b]}

    move_cost: MoveCost = field(default_factory=MoveCost)
    """What moving a broker's leaders away and back costs its clients, by past moves."""

    harm_history: HarmHistory = field(default_factory=HarmHistory)
    """What past disturbances in this cluster lost in all."""
    known_good: KnownGoods = field(default_factory=dict)
    """How long demoted log directories, broken links and disks of held brokers (by id) are known to be good; another
    process starts from 0.
    """
    wall: datetime | None = None
    """What the machine's wall clock shows, where that differs from ``now``, which has no steps."""
    loads: Loads | None = None
    """Measured loads of partitions, where they are available."""

    @property
    def external_operation(self) -> Refusal | None:
        """The external operation that promotion, rebalancing and re-assertion wait for, if any (invariant 10)."""
        busy = self.strimzi.external_operation if self.strimzi is not None else None
        return busy or self.bulk_reassignment

    def is_quarantined(self, broker: int) -> bool:
        """Whether an active order holds the broker, or is about to."""
        order = self.quarantine_orders.get(broker)
        return order is not None and order.active

    def may_be_held(self, broker: int) -> bool:
        """The same, or whether the agent may not have released it yet, since the last order was renewed."""
        order = self.quarantine_orders.get(broker)
        return order is not None and (order.active or self.now - order.renewed_at < RELEASE_AFTER)

    def overridden(self, broker: int) -> bool:
        """Whether a person decides if the broker leads: by an override that is no request for maintenance."""
        override = self.override_of(broker)
        return override is not None and not requests_maintenance(override)

    def promoted_by_override(self, broker: int) -> bool:
        """Whether a person lets the broker lead, whatever its signals say."""
        override = self.override_of(broker)
        return override is not None and override.state is OverrideState.PROMOTED

    def override_of(self, broker: int) -> Override | None:
        """The active override of a broker, if any."""
        return next((o for o in self.overrides if o.broker == broker and self.in_force(o)), None)

    def in_force(self, override: Override) -> bool:
        """Whether an override has not ended: a person set its end by the wall clock."""
        return override.active(self.wall or self.now)
