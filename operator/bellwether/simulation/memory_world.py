"""World in memory: signals, time, and all ports of a reconcile over one simulated cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bellwether.core.model.broker_identity import Pod
from bellwether.core.signals import (
    ListenerReading,
    Override,
    OverrideState,
    Purpose,
    Reading,
    Signal,
    SignalType,
)
from bellwether.ports.clock import Clock
from bellwether.ports.kubernetes import NothingShared, SignalReader
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
        listeners: Iterable[str] = (),
        **fields: Any,
    ) -> None:
        """Every one of ``sources`` reports the same about a broker; ``since`` moves only when the reading changes.

        ``listeners``: at these of several it has that reading, harm and cause. ``fields`` are others of the signal.
        """
        apart = [ListenerReading(name, reading, fields.get("harm"), fields.get("cause")) for name in listeners]
        fields = {"control": Reading.PASSING, **fields, "listeners": tuple(apart)}
        for source in sources:
            known = self._signals.get((broker, type, source))
            since = known.since if known and known.reading is reading else self.clock.now()
            message = f"{source}: {reading.lower()}"
            self.put(Signal(broker, type, source, reading, since, age_seconds=0.0, message=message, **fields))

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


@dataclass
class SimulatedSite:
    """A cluster with its signals, overrides, pods and time, on which an operator runs."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    clock: ManualClock = field(default_factory=ManualClock)
    pods: dict[int, Pod] | None = None
    """The brokers' pods as they are at any moment; None where they are not watched."""
    signals: MemorySignals = field(init=False)
    margins: MemoryFaultTolerance = field(init=False)

    def __post_init__(self) -> None:
        self.margins = MemoryFaultTolerance(self.cluster)
        self.signals = MemorySignals(self.clock)

    def process(self) -> World:
        """An operator process; its ports share the choice of the broker to talk through."""
        route = MemoryRoute(self.cluster)
        return memory_world(
            self.cluster,
            self.signals,
            self.clock,
            route,
            configs=MemoryConfigs(self.cluster, route),
            log_dirs=MemoryLogDirs(self.cluster),
            pods=None if self.pods is None else lambda _: self.pods,
            margins=self.margins,
        )


def memory_world(
    cluster: MemoryCluster, signals: SignalReader, clock: Clock, route: MemoryRoute | None = None, **ports: Any
) -> World:
    """The ports of one process that alone works on a cluster; what it stores is in its memory only."""
    route = route or MemoryRoute(cluster)
    alone = NothingShared()
    reader, mover = MemoryReader(cluster, route), MemoryMover(cluster, route=route)
    return World(reader, mover, alone, alone, signals, clock, **ports)
