"""Broker process and orders in memory, for the quarantine agent's ports.

``MemoryProcess`` holds and releases a broker of a simulated cluster; ``MemoryOrderReader`` reads orders of an operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellwether.core.quarantine.agent import HoldOrder, OrderRead, ProcessState
from bellwether.ports.errors import Transient
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_stores import MemoryOrderStore


@dataclass
class MemoryProcess:
    """One simulated broker's process. ``keeper`` outlives its agent: ``die`` kills the agent without notice."""

    cluster: MemoryCluster
    broker: int
    stopped: bool = False
    keeper: bool = True
    barred: bool = False

    def state(self) -> ProcessState:
        """How it is; a broker that is dead has no process."""
        if not self.cluster.brokers[self.broker].alive:
            self.stopped = False
            return ProcessState.ABSENT
        if self.barred:
            return ProcessState.BARRED
        return ProcessState.STOPPED if self.stopped else ProcessState.RUNNING

    def remedy(self) -> str:
        """Nothing is known."""
        return ""

    def hold(self) -> None:
        """A controlled shutdown, stopped at its end. Raises Transient for one that is gone."""
        if self.state() is not ProcessState.RUNNING:
            raise Transient(f"broker {self.broker} has no process to stop")
        self.stopped = True
        self.cluster.fence(self.broker)
        self.cluster.freeze(self.broker)

    def release(self) -> None:
        """It ends, and is started again."""
        if self.stopped:
            self.cluster.revive(self.broker)
        self.stopped = False

    def guarded(self) -> bool:
        """Whether the keeper is at its post."""
        return self.keeper

    def die(self) -> None:
        """The agent is killed: its watchdog releases the broker, if it runs."""
        if self.keeper:
            self.release()


@dataclass
class MemoryOrders:
    """Orders as a test lays them down. ``away`` plays an API that does not answer."""

    command: HoldOrder | None = None
    others: int | None = None
    away: bool = False

    def read(self) -> OrderRead:
        """The current orders. Raises Transient while away."""
        if self.away:
            raise Transient("the Kubernetes API does not answer")
        return OrderRead(self.command, self.others)


class MemoryOrderReader:
    """``quarantine.agent_ports.Orders`` of one broker."""

    def __init__(self, store: MemoryOrderStore, broker: int, others: Callable[[], int | None] = lambda: None) -> None:
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
