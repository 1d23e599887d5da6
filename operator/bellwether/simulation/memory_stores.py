"""Undo records and quarantine orders in memory that outlive the process that wrote them, fenced as the real stores are.

One ``MemoryRecordStore`` and one ``MemoryOrderStore`` are what an API server keeps; each process has a
``MemoryRecords`` and ``MemoryQuarantineOrders`` of its own over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.undo_record import UndoRecord
from bellwether.ports.errors import Fenced, Terminal, Transient


@dataclass
class MemoryRecordStore:
    """The durable side: the last record, how often it was written, and whether it can be reached."""

    record: UndoRecord | None = None
    writes: int = 0
    reachable: bool = True
    history: list[UndoRecord] = field(default_factory=list)

    def write(self, record: UndoRecord) -> None:
        """Keep a record, and every one before it for a test to look at."""
        self.record = record
        self.writes += 1
        self.history.append(record)


class MemoryRecords:
    """``ports.kubernetes.UndoRecords`` of one process."""

    def __init__(self, store: MemoryRecordStore | None = None) -> None:
        self.store = store or MemoryRecordStore()

    def take_over(self, cluster_id: str) -> UndoRecord:
        """Raise the epoch. Raises Transient when away, Terminal when the record is another cluster's."""
        self._reach()
        old = self.store.record or UndoRecord(cluster_id)
        if old.cluster_id != cluster_id:
            raise Terminal(
                f"the undo record belongs to cluster {old.cluster_id}, the brokers to {cluster_id}: "
                "correct the bootstrap servers, or export the record and remove it",
            )
        taken = replace(old, epoch=old.epoch + 1)
        self.store.write(taken)
        return taken

    def save(self, record: UndoRecord) -> None:
        """Keep the record; an unchanged one is not written. Raises Transient when away, Fenced for an older epoch."""
        self._reach()
        stored = self.store.record
        if stored is None or record.epoch != stored.epoch:
            standing = "no process" if stored is None else f"epoch {stored.epoch}"
            raise Fenced(f"epoch {record.epoch} may not write the undo record: {standing} has taken it over")
        if record != stored:
            self.store.write(record)

    def _reach(self) -> None:
        if not self.store.reachable:
            raise Transient("the store of undo records cannot be reached")


@dataclass
class MemoryOrderStore:
    """The stored orders of one policy, by broker. ``away`` plays an API that does not answer; ``writes`` counts."""

    orders: dict[int, QuarantineOrder] = field(default_factory=dict)
    away: bool = False
    writes: int = 0

    def operator(self) -> MemoryQuarantineOrders:
        """A new operator process."""
        return MemoryQuarantineOrders(self)

    def delete(self, broker: int) -> None:
        """A person deletes an order."""
        del self.orders[broker]

    def check(self) -> None:
        """Raise Transient while the API does not answer."""
        if self.away:
            raise Transient("the Kubernetes API does not answer")


class MemoryQuarantineOrders:
    """``ports.kubernetes.QuarantineOrders`` of one process."""

    def __init__(self, store: MemoryOrderStore) -> None:
        self._store = store
        self._known: dict[int, tuple[int, int]] = {}
        self._deleted: dict[int, tuple[int, int]] = {}

    def take_over(self) -> Mapping[int, QuarantineOrder]:
        """The stored orders. Raises Transient while the API is away."""
        self._store.check()
        self._known, self._deleted = {b: (o.epoch, o.number) for b, o in self._store.orders.items()}, {}
        return dict(self._store.orders)

    def keep(self, orders: Mapping[int, QuarantineOrder]) -> None:
        """Write what has changed, unless the API is away."""
        if self._store.away:
            return
        stored = self._store.orders
        for broker in set(self._known) - set(orders):
            del self._known[broker]
            self._store.writes += stored.pop(broker, None) is not None
        for broker, order in orders.items():
            if broker in self._known and broker not in stored:
                self._deleted[broker] = self._known.pop(broker)
            identity = (order.epoch, order.number)
            if stored.get(broker) != order and self._deleted.get(broker) != identity:
                stored[broker], self._known[broker] = order, identity
                self._store.writes += 1
