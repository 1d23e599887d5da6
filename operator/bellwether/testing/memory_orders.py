"""Quarantine orders in memory: what operators write and agents read.

``MemoryOrderStore`` outlives its processes. ``operator`` is ``ports.kubernetes.QuarantineOrders`` of one process,
``agent`` the reading side of one broker; both behave as the Leases of ``adapters.kubernetes`` do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.quarantine.agent import HoldOrder, OrderRead
from bellwether.ports.errors import Transient


@dataclass
class MemoryOrderStore:
    """The stored orders of one policy, by broker. ``away`` plays an API that does not answer; ``writes`` counts."""

    orders: dict[int, QuarantineOrder] = field(default_factory=dict)
    away: bool = False
    writes: int = 0

    def operator(self) -> MemoryQuarantineOrders:
        """A new operator process."""
        return MemoryQuarantineOrders(self)

    def agent(self, broker: int, others: Callable[[], int | None] = lambda: None) -> MemoryOrderReader:
        """The agent of a broker; ``others`` is another broker that is held, if any."""
        return MemoryOrderReader(self, broker, others)

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


class MemoryOrderReader:
    """``quarantine.agent_ports.Orders`` of one broker."""

    def __init__(self, store: MemoryOrderStore, broker: int, others: Callable[[], int | None]) -> None:
        self._store = store
        self._broker = broker
        self._others = others

    def read(self) -> OrderRead:
        """The current order. Raises Transient while the API is away."""
        self._store.check()
        order = self._store.orders.get(self._broker)
        if order is None or not order.active:
            return OrderRead()
        limit = max(0.0, (order.until - order.since).total_seconds())
        return OrderRead(HoldOrder(order.epoch, order.number, order.renewed_at, limit), self._others())
