"""World in memory: all ports of a reconcile over one simulated cluster and one manual clock.

``MemorySite`` is what persists (cluster, stores, manual settings); each ``process`` of it is an operator with its own
connections, so that a new one can take over where a killed one stopped. ``memory_world`` is the short form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from bellwether.core.model.strimzi import Pod
from bellwether.core.reporting.report import Report
from bellwether.core.signals import (
    Harm,
    ListenerReading,
    Override,
    OverrideState,
    Purpose,
    Reading,
    Signal,
    SignalType,
    UnreachableCause,
)
from bellwether.ports.clock import Clock
from bellwether.ports.world import World
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import (
    MemoryConfigs,
    MemoryFaultTolerance,
    MemoryLogDirs,
    MemoryMover,
    MemoryReader,
    MemoryRoute,
)
from bellwether.simulation.memory_stores import MemoryOrderStore, MemoryRecords, MemoryRecordStore

START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """``ports.clock.Clock`` that does not move until it is advanced."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._stepped = timedelta(0)

    def now(self) -> datetime:
        """Wall-clock time."""
        return self._start + self._stepped + timedelta(seconds=self._elapsed)

    def step(self, seconds: float) -> None:
        """The wall clock is set forward or back; the monotonic one goes on."""
        self._stepped += timedelta(seconds=seconds)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError for a step back."""
        if seconds < 0:
            raise ValueError(f"a clock does not go back: {seconds} s")
        self._elapsed += seconds

    def sleep(self, seconds: float) -> None:
        """Waiting advances the clock; nothing blocks."""
        self.advance(seconds)


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

    def seconds_left(self) -> float:
        """Time left on the Lease, in seconds; 0 for a process that does not hold it."""
        if self.seconds is not None:
            return self.seconds
        if not self.frozen:
            self.lease.acquire(self.identity)
        if self.lease.holder != self.identity:
            return 0.0
        return max(0.0, self.lease.renewed_at + self.lease.duration_seconds - self.lease.clock.monotonic())


class MemorySignals:
    """``ports.kubernetes.SignalReader`` that a test writes into. Sources stay fresh by themselves until they are
    silenced.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or ManualClock()
        self._signals: dict[tuple[int, str, str], Signal] = {}
        self._silent_since: dict[str, float] = {}
        self._overrides: dict[int, Override] = {}

    def put(self, *signals: Signal) -> None:
        """The last signal of a source about a broker."""
        for signal in signals:
            self._signals[signal.broker, signal.type, signal.source] = signal

    def say(
        self,
        broker: int,
        reading: Reading,
        *,
        type: str = SignalType.EXTERNAL_REACHABILITY,  # noqa: A002 - the field's name
        sources: Iterable[str] = ("vantage-a", "vantage-b"),
        control: Reading = Reading.PASSING,
        latency_seconds: float | None = None,
        value: float | None = None,
        directory: str = "",
        cause: UnreachableCause | None = None,
        harm: Harm | None = None,
        metadata_log: bool | None = None,
        broken_link_to: int | None = None,
        listeners: Iterable[str] = (),
    ) -> None:
        """Every one of ``sources`` reports the same about a broker; ``since`` moves only when the reading changes.

        ``listeners``: at these of several it has that reading, harm and cause.
        """
        apart = tuple(ListenerReading(name, reading, harm, cause) for name in listeners)
        for source in sources:
            known = self._signals.get((broker, type, source))
            since = known.since if known and known.reading is reading else self.clock.now()
            self.put(
                Signal(
                    broker,
                    type,
                    source,
                    reading,
                    since,
                    age_seconds=0.0,
                    control=control,
                    latency_seconds=latency_seconds,
                    message=f"{source}: {reading.lower()}",
                    value=value,
                    harm=harm,
                    directory=directory,
                    cause=cause,
                    metadata_log=metadata_log,
                    broken_link_to=broken_link_to,
                    listeners=apart,
                ),
            )

    def clear(self, broker: int, type: str | None = None) -> None:  # noqa: A002 - the field's name
        """Remove a broker's signals, of one kind or of all."""
        self._signals = {k: s for k, s in self._signals.items() if k[0] != broker or type not in (None, k[1])}

    def silence(self, source: str) -> None:
        """The prober stops renewing its Lease: its signals age from now on."""
        self._silent_since.setdefault(source, self.clock.monotonic())

    def resume(self, source: str) -> None:
        """The prober renews again."""
        self._silent_since.pop(source, None)

    def override(
        self,
        broker: int,
        state: OverrideState,
        reason: str = "",
        until: datetime | None = None,
        purpose: Purpose | None = None,
        *,
        accept_unavailable_writes: bool = False,
    ) -> None:
        """Set a manual override on a broker."""
        self._overrides[broker] = Override(
            broker, state, reason, until, purpose=purpose, accept_unavailable_writes=accept_unavailable_writes
        )

    def drain(
        self,
        broker: int,
        reason: str = "new disk",
        until: datetime | None = None,
        *,
        accept_unavailable_writes: bool = False,
    ) -> None:
        """Manually put a broker into maintenance."""
        self.override(
            broker,
            OverrideState.DEMOTED,
            reason,
            until,
            Purpose.MAINTENANCE,
            accept_unavailable_writes=accept_unavailable_writes,
        )

    def lift(self, broker: int) -> None:
        """A person takes an override away."""
        self._overrides.pop(broker, None)

    def signals(self) -> tuple[Signal, ...]:
        """Every source's last signal, those of inactive sources aged."""
        return tuple(self._aged(s) for _, s in sorted(self._signals.items()))

    def overrides(self) -> tuple[Override, ...]:
        """What people asked for, expired ones included."""
        return tuple(o for _, o in sorted(self._overrides.items()))

    def spoke_at(self, source: str) -> float:
        """Until when a source has renewed its Lease, in monotonic seconds."""
        return self._silent_since.get(source, self.clock.monotonic())

    def _aged(self, signal: Signal) -> Signal:
        since = self._silent_since.get(signal.source)
        if since is None or signal.age_seconds is None:
            return signal
        return replace(signal, age_seconds=signal.age_seconds + self.clock.monotonic() - since)


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
class MemorySite:
    """What persists: the cluster, the durable record, Lease and orders, the last report, signals, overrides, time."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    clock: ManualClock = field(default_factory=ManualClock)
    store: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    orders: MemoryOrderStore = field(default_factory=MemoryOrderStore)
    pods: dict[int, Pod] | None = None
    """The brokers' pods as they are at any moment; None where they are not watched."""
    reported: Report | None = None
    """The last report that a process published, as the status of the policy's objects has it."""
    signals: MemorySignals = field(init=False)
    lease: MemoryLease = field(init=False)
    margins: MemoryFaultTolerance = field(init=False)

    def __post_init__(self) -> None:
        self.margins = MemoryFaultTolerance(self.cluster)
        self.signals = MemorySignals(self.clock)
        self.lease = MemoryLease(self.clock)

    @property
    def cluster_id(self) -> str:
        """The Kafka cluster's id."""
        return self.cluster.cluster_id

    def process(self, identity: str = "operator-a", *, request_timeout_seconds: float = 2.0) -> World:
        """A new operator process on this site; reader and mover share the choice of the broker to talk through.

        As a real one, it does not know at first how old signals are, but for those that begin with the site.
        """
        route = MemoryRoute(self.cluster)
        return World(
            clusters=MemoryReader(self.cluster, route),
            leaders=MemoryMover(self.cluster, request_timeout_seconds, route=route),
            records=MemoryRecords(self.store),
            leadership=MemoryLeadership(self.lease, identity),
            signals=ColdSignals(self.signals) if self.clock.monotonic() else self.signals,
            clock=self.clock,
            configs=MemoryConfigs(self.cluster, route),
            log_dirs=MemoryLogDirs(self.cluster),
            pods=None if self.pods is None else lambda _: self.pods,
            quarantine_orders=self.orders.operator(),
            margins=self.margins,
        )


def memory_world(cluster: MemoryCluster | None = None) -> World:
    """A world with one process, over ``cluster`` or three brokers without topics."""
    return MemorySite(cluster or MemoryCluster()).process()
