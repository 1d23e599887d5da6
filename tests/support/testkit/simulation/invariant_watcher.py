"""Watches a process at its ports and says what it did against the invariants, at the moment when it did it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellwether.core.model.cluster import Cluster, Partition, TopicPartition
from bellwether.core.model.undo_record import SentOrder, UndoEntry
from bellwether.ports.kafka import Outcome, Reorder
from bellwether.ports.world import World
from testkit.simulation.fault_injection import Wrapped
from testkit.simulation.memory_site import MemoryRecordStore


class Watcher:
    """Reader and mover of one process, with the last read of each partition. ``violations``: broken invariants."""

    def __init__(self, store: MemoryRecordStore) -> None:
        self.store = store
        self.read: dict[TopicPartition, Partition] = {}
        self.unread: set[TopicPartition] = set()
        """Accepted reorders that no read has followed yet."""
        self.checked: set[TopicPartition] = set()
        """What was read since the last reorder was sent."""
        self.reorders = 0
        self.elections = 0
        self.violations: list[str] = []

    def around(self, world: World) -> World:
        """The same process, watched."""
        return replace(world, clusters=_WatchedReader(world.clusters, self), leaders=_WatchedMover(world.leaders, self))

    def saw(self, partitions: Collection[Partition], topics: Collection[str] | None = None) -> None:
        """What was read now replaces what was read before."""
        kept = {} if topics is None else {n: p for n, p in self.read.items() if n.topic not in topics}
        self.read = {**kept, **{p.name: p for p in partitions}}
        self.checked.update(p.name for p in partitions)
        self.unread = set() if topics is None else {n for n in self.unread if n.topic not in topics}

    def reordering(self, orders: Sequence[Reorder], broker: int | None) -> None:
        """Invariants 1, 6 and 7, at the moment of the request."""
        self.reorders += len(orders)
        if self.unread:
            self.violations.append(
                f"invariant 1: the reorders of {sorted(self.unread)} were not read back before the next"
            )
        if stale := sorted(o.name for o in orders if o.name not in self.checked):
            self.violations.append(f"invariant 1: {stale} were not read since the last reorder")
        self.checked.clear()
        entries = self.store.record.entries if self.store.record is not None else {}
        for wanted in orders:
            known = self.read.get(wanted.name)
            if known is None:
                self.violations.append(f"invariant 1: {wanted} was not read before")
                continue
            if sorted(known.replicas) != sorted(wanted.order):
                self.violations.append(f"invariant 1: {wanted} asks for another set than {known.replicas}")
            if known.reassigning:
                self.violations.append(f"invariant 10: {wanted} is being reassigned: {known}")
            entry = entries.get(known.key)
            if entry is None or wanted.order != entry.written or sorted(entry.baseline) != sorted(wanted.order):
                self.violations.append(f"invariant 6: {wanted} is not covered by the durable record: {entry}")
            elif SentOrder(wanted.order, broker) not in entry.outstanding and not _merged(entry, wanted.order):
                self.violations.append(f"invariant 7: {wanted} to broker {broker} is not outstanding: {entry}")

    def reordered(self, orders: Sequence[Reorder], outcomes: Mapping[TopicPartition, Outcome]) -> None:
        """The controller has committed what it accepts: until the next read, the order is known from its answer."""
        for sent in orders:
            if outcomes[sent.name].ok:
                self.read[sent.name] = replace(self.read[sent.name], replicas=sent.order)
                self.unread.add(sent.name)

    def electing(self, names: Sequence[TopicPartition]) -> None:
        """Invariant 2, at the moment of the request."""
        self.elections += len(names)
        for name in names:
            known = self.read.get(name)
            if known is None or known.replicas[0] not in (known.isr or known.elr):
                self.violations.append(f"invariant 2: the first of {known} is not in the ISR")


def _merged(entry: UndoEntry, order: tuple[int, ...]) -> bool:
    return SentOrder(order, None) in entry.outstanding


class _WatchedReader(Wrapped):
    def read(self) -> Cluster:
        seen: Cluster = self.inner.read()
        self.around.saw(seen.partitions)
        return seen

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        seen: tuple[Partition, ...] = self.inner.partitions(topics)
        self.around.saw(seen, topics)
        return seen


class _WatchedMover(Wrapped):
    def reorder(self, orders: Sequence[Reorder], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        self.around.reordering(orders, broker)
        outcomes: Mapping[TopicPartition, Outcome] = self.inner.reorder(orders, broker)
        self.around.reordered(orders, outcomes)
        return outcomes

    def elect(self, names: Sequence[TopicPartition]) -> Any:
        self.around.electing(names)
        return self.inner.elect(names)
