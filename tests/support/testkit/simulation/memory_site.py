"""Site in memory: what outlives an operator process, and processes that take over where a killed one stopped.

``MemorySite`` is what persists: cluster, undo record, Lease, quarantine orders, signals. Each ``process`` of it is an
operator with connections of its own. Records and orders are fenced as the real stores are. ``MemoryProcess`` is the
process of one of its brokers, for the quarantine agent; ``MemoryUnclean`` elects uncleanly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.quarantine.agent import HoldOrder, OrderRead, ProcessState
from bellwether.core.reporting.report import Report
from bellwether.core.signals import Override, Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Fenced, Terminal, Transient
from bellwether.ports.kafka import Outcome
from bellwether.ports.world import World
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryMover, MemoryRoute
from bellwether.simulation.memory_world import MemorySignals, SimulatedSite


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


@dataclass
class MemoryLease:
    """The Lease for which operators compete (invariant 7); ``renewed_at`` is its last renewal in monotonic seconds."""

    clock: Clock
    duration_seconds: float = 15.0
    holder: str | None = None
    renewed_at: float = 0.0

    def acquire(self, identity: str) -> bool:
        """Take or renew it for ``identity``; refused while another one's has not run out."""
        now = self.clock.monotonic()
        if self.holder not in (None, identity) and now < self.renewed_at + self.duration_seconds:
            return False
        self.holder, self.renewed_at = identity, now
        return True


class MemoryLeadership:
    """``ports.kubernetes.Leadership`` of one process. It renews by itself, as a thread would, until ``frozen``.

    ``seconds`` set to a number overrides everything: the time left is that.
    """

    def __init__(self, lease: MemoryLease, identity: str = "operator-a") -> None:
        self.lease = lease
        self.identity = identity
        self.frozen = False
        self.seconds: float | None = None

    def confirm(self) -> None:
        if self.seconds is None and self.lease.holder not in (None, self.identity):
            raise Fenced("another process holds the Lease")

    def seconds_left(self) -> float:
        """Time left on the Lease, in seconds; 0 for a process that does not hold it."""
        if self.seconds is not None:
            return self.seconds
        if not self.frozen:
            self.lease.acquire(self.identity)
        if self.lease.holder != self.identity:
            return 0.0
        return max(0.0, self.lease.renewed_at + self.lease.duration_seconds - self.lease.clock.monotonic())


RENEW_SECONDS = 3.0
"""How often a prober renews its Lease."""


class ColdSignals:
    """The signals as a new process hears them: their age is unknown until it has seen their source renew its Lease."""

    def __init__(self, signals: MemorySignals) -> None:
        self._signals = signals
        self._renewed_at = signals.clock.monotonic() + RENEW_SECONDS

    def signals(self) -> tuple[Signal, ...]:
        """Every source's last signal, without an age where this process has not seen the source renew its Lease."""
        return tuple(
            said if self._signals.spoke_at(said.source) >= self._renewed_at else replace(said, age_seconds=None)
            for said in self._signals.signals()
        )

    def overrides(self) -> tuple[Override, ...]:
        """What people asked for."""
        return self._signals.overrides()


@dataclass
class MemorySite(SimulatedSite):
    """What persists: the cluster, the durable record, Lease and orders, the last report, signals, overrides, time."""

    store: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    orders: MemoryOrderStore = field(default_factory=MemoryOrderStore)
    reported: Report | None = None
    """The last report that a process published, as the status of the policy's objects has it."""
    lease: MemoryLease = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lease = MemoryLease(self.clock)

    @property
    def cluster_id(self) -> str:
        """The Kafka cluster's id."""
        return self.cluster.cluster_id

    def well(self) -> MemorySite:
        """Every broker passes."""
        for broker in self.cluster.brokers:
            self.signals.say(broker, Reading.PASSING)
        return self

    def process(self, identity: str = "operator-a", *, request_timeout_seconds: float = 2.0) -> World:
        """A new operator process on this site; reader and mover share the choice of the broker to talk through.

        As a real one, it does not know at first how old signals are, but for those that begin with the site.
        """
        world = super().process()
        assert isinstance(world.leaders, MemoryMover)
        world.leaders.request_timeout_seconds = request_timeout_seconds
        return replace(
            world,
            records=MemoryRecords(self.store),
            leadership=MemoryLeadership(self.lease, identity),
            signals=ColdSignals(self.signals) if self.clock.monotonic() else self.signals,
            quarantine_orders=self.orders.operator(),
        )


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
    """``quarantine.agent_loop.Orders`` of one broker."""

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


class MemoryUnclean:
    """As Kafka's controller: a partition that has a leader is left alone, one without living replicas stays without."""

    def __init__(self, cluster: MemoryCluster, route: MemoryRoute | None = None) -> None:
        self.cluster = cluster
        self.route = route or MemoryRoute(cluster)
        self.asked: list[TopicPartition] = []

    def elect(self, name: TopicPartition) -> Outcome:
        """An unclean election. Raises Transient when the broker that was asked does not answer."""
        self.route.through()
        self.asked.append(name)
        p = self.cluster.find(name)
        if p is None:
            return Outcome("UNKNOWN_TOPIC_OR_PARTITION", f"There is no partition {name}.")
        if p.leader is not None:
            return Outcome("ELECTION_NOT_NEEDED", "It has a leader.")
        active = (self.cluster.brokers[b] for b in p.replicas if b in self.cluster.brokers)
        taken = next((broker.id for broker in active if broker.active), None)
        if taken is None:
            return Outcome("ELIGIBLE_LEADERS_NOT_AVAILABLE", f"No replica of {name} lives.")
        led = replace(p, leader=taken, leader_epoch=p.leader_epoch + 1, isr=(taken,), elr=(), last_known_elr=())
        self.cluster._partitions[name] = led
        self.cluster.mutations += 1
        return Outcome()
