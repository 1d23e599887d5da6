"""Signal cache: signals and overrides as last seen through watches, aged on the clock of this process (invariant 5).

In: BrokerHealth and Lease objects, from any thread of the watches. Out: ``core.signals`` values for the reconciles of
one policy. An entry is as old as the last observed renewal of its prober's Lease; until one was observed its age is
None, and it is no evidence. Called by ``controllers`` (writing) and through ``ports.kubernetes.SignalReader``
(reading).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.adapters.kubernetes.kept_fields import owner_of
from bellwether.api.v1alpha1 import broker_health
from bellwether.api.v1alpha1.base_model import explain
from bellwether.api.v1alpha1.status.signal_entries import read_entries
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Override, Signal, SourceSignals
from bellwether.ports.clock import Clock

GONE_SECONDS = 900.0
"""How long the version of a deleted object is kept. A list that was requested before the deletion is older than that
only if the watch was away for longer, and then it is requested again."""


@dataclass(frozen=True, slots=True)
class _Pulse:
    """One prober's Lease: its holder, the last renewal, when it was observed, and when it advanced (None: not yet)."""

    holder: str
    renewed: datetime | None
    seen: float
    advanced: float | None


@dataclass(frozen=True, slots=True)
class _Entry:
    signal: Signal
    lease: str
    prober: str


class _Source(NamedTuple):
    """What decides on the age of a signal, and on how old it may be."""

    lease: str
    prober: str
    type: str
    source: str


@dataclass(frozen=True, slots=True)
class _Broker:
    entries: tuple[_Entry, ...]
    override: Override | None
    problems: tuple[str, ...]
    broker: int | None = None
    generation: int | None = None


class SignalCache:
    """``ports.kubernetes.SignalReader`` for one policy; feed it only this policy's objects. Safe to use from several
    threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._brokers: dict[str, _Broker] = {}
        self._pulses: dict[str, _Pulse] = {}
        self._versions: dict[str, int] = {}
        self._gone: dict[str, float] = {}  # when each was deleted, the oldest first
        self._by_source: dict[_Source, tuple[Signal, ...]] | None = None  # None: to be made of ``_brokers``
        self._sorted: list[_Entry] | None = None  # the same

    def on_broker_health(self, found: Object) -> bool:
        """A BrokerHealth was added or changed; True if its signals or its spec changed.

        An older version than the last one is ignored: a list can have been requested before a watch event arrived.
        """
        name, now = found["metadata"]["name"], _read(found)
        with self._lock:
            if self._outdated(found):
                return False
            self._gone.pop(name, None)
            before = self._brokers.get(name)
            self._brokers[name] = now
            if before == now:
                return False
            self._by_source = self._sorted = None
            return True

    def on_broker_health_gone(self, found: Object) -> bool:
        """A BrokerHealth was deleted; True when it was known."""
        with self._lock:
            if self._outdated(found):
                return False
            self._forget(found["metadata"]["name"])
            self._by_source = self._sorted = None
            return self._brokers.pop(found["metadata"]["name"], None) is not None

    def _forget(self, gone: str) -> None:
        """Drop the versions of objects that were deleted long ago."""
        now = self._clock.monotonic()
        self._gone.pop(gone, None)
        self._gone[gone] = now
        for name in [name for name, at in self._gone.items() if now - at > GONE_SECONDS]:
            del self._gone[name]
            self._versions.pop(name, None)

    def _outdated(self, found: Object) -> bool:
        """Whether a newer version of the object is known; resource versions of one kind are ordered (KEP-5504)."""
        name, version = found["metadata"]["name"], str(found["metadata"].get("resourceVersion", ""))
        if not version.isdigit():
            return False
        if int(version) < self._versions.get(name, 0):
            return True
        self._versions[name] = int(version)
        return False

    def on_lease(self, found: Object) -> bool:
        """A prober's Lease was added or changed; True if its signals turned from stale to fresh."""
        spec = found.get("spec") or {}
        name, holder, renewed = (
            found["metadata"]["name"],
            spec.get("holderIdentity") or "",
            _time(spec.get("renewTime")),
        )
        now = self._clock.monotonic()
        with self._lock:
            last = self._pulses.get(name)
            if last is None:
                self._pulses[name] = _Pulse(holder, renewed, now, None)
                return False
            if (renewed, holder) == (last.renewed, last.holder):
                return False
            advanced = now
            if renewed is not None and last.renewed is not None and renewed > last.renewed and holder == last.holder:
                # After a gap in the watch an advance may be old. The prober's clock is trusted only for the interval
                # between two of its own renewals, never for the current time.
                advanced = min(now, last.seen + (renewed - last.renewed).total_seconds())
            self._pulses[name] = _Pulse(holder, renewed, now, advanced)
            return last.advanced is None or last.holder != holder

    def on_lease_gone(self, found: Object) -> bool:
        """A prober's Lease was deleted; True if it was known. Its entries are no evidence any more."""
        with self._lock:
            return self._pulses.pop(found["metadata"]["name"], None) is not None

    def signals(self) -> tuple[Signal, ...]:
        """Last signal of every source, ordered by broker, type and source."""
        now = self._clock.monotonic()
        with self._lock:
            if self._sorted is None:
                entries = (entry for broker in self._brokers.values() for entry in broker.entries)
                self._sorted = sorted(entries, key=lambda e: (e.signal.broker, e.signal.type, e.signal.source))
            return tuple([_aged(entry, self._pulses.get(entry.lease), now) for entry in self._sorted])

    def judged(self, detection: Detection) -> object:
        """The signals that a reconcile would judge, and which sources are stale, as a value to compare.

        It is asked for every second, so the signals are neither copied nor sorted while none has changed.
        """
        now = self._clock.monotonic()
        with self._lock:
            found = [
                (signals, (age := _age(pulse, source.prober, now)) is not None and age <= patience)
                for source, signals in self._sources().items()
                if (patience := detection.stale_after(source.type, source.source)) is not None
                for pulse in (self._pulses.get(source.lease),)
            ]
        return tuple(found)

    def sources(self) -> tuple[SourceSignals, ...]:
        """How old the signals of each source are, and what they report."""
        now = self._clock.monotonic()
        with self._lock:
            return tuple(
                [
                    SourceSignals(
                        source.type,
                        source.source,
                        _age(self._pulses.get(source.lease), source.prober, now),
                        Counter([signal.reading for signal in signals]),
                    )
                    for source, signals in self._sources().items()
                ]
            )

    def _sources(self) -> Mapping[_Source, tuple[Signal, ...]]:
        """All signals by source, sorted again only after a change. Call it with the lock held."""
        if self._by_source is None:
            self._by_source = _by_source(self._brokers)
        return self._by_source

    def overrides(self) -> tuple[Override, ...]:
        """Overrides, including expired ones, ordered by broker."""
        with self._lock:
            found = [broker.override for broker in self._brokers.values() if broker.override is not None]
        return tuple(sorted(found, key=lambda o: o.broker))

    def generations(self) -> dict[int, int]:
        """Generation of each broker's spec that its override is from."""
        with self._lock:
            found = [(broker.broker, broker.generation) for broker in self._brokers.values()]
        return {broker: generation for broker, generation in found if broker is not None and generation is not None}

    def problems(self) -> tuple[str, ...]:
        """Entries and overrides that are invalid, each with its error."""
        with self._lock:
            return tuple(sorted(text for broker in self._brokers.values() for text in broker.problems))


def _aged(entry: _Entry, pulse: _Pulse | None, now: float) -> Signal:
    age = _age(pulse, entry.prober, now)
    return entry.signal if age is None else entry.signal.aged(age)


def _age(pulse: _Pulse | None, prober: str, now: float) -> float | None:
    """Seconds since the prober's Lease was seen to advance; None where it was not."""
    # A Lease that another prober holds proves nothing about the prober that wrote the entry.
    if pulse is None or pulse.holder != prober or pulse.advanced is None:
        return None
    return max(0.0, now - pulse.advanced)


def _by_source(brokers: Mapping[str, _Broker]) -> dict[_Source, tuple[Signal, ...]]:
    """All signals by source, in an order that does not depend on when objects arrived."""
    found: dict[_Source, list[Signal]] = {}
    for _, broker in sorted(brokers.items()):
        for entry in broker.entries:
            source = _Source(entry.lease, entry.prober, entry.signal.type, entry.signal.source)
            found.setdefault(source, []).append(entry.signal)
    return {source: tuple(signals) for source, signals in sorted(found.items())}


def _read(found: Object) -> _Broker:
    name, spec = found["metadata"]["name"], found.get("spec") or {}
    broker = spec.get("brokerId")
    if not isinstance(broker, int):
        return _Broker(
            (), None, (f"brokerhealth {name}: spec.brokerId is missing: delete the object, the operator creates it",)
        )
    good, bad = read_entries((found.get("status") or {}).get("signals"))
    entries = tuple(_Entry(entry.signal(broker, None), entry.lease_name, entry.prober_uid) for entry in good)
    problems = [f"brokerhealth {name}: {unreadable}" for unreadable in bad]
    override = None
    try:
        override = _override(broker, spec.get("override"), owner_of(found, "spec", "override"))
    except ValidationError as error:
        problems.append(f"brokerhealth {name}: spec.override is ignored: {explain(error, broker_health.Override)}")
    return _Broker(entries, override, tuple(problems), broker, found["metadata"].get("generation"))


def _override(broker: int, raw: Any, owner: str) -> Override | None:
    if not raw:
        return None
    said = broker_health.Override.model_validate(raw)
    return said.to_core(broker, said.by or owner)


def _time(value: Any) -> datetime | None:
    """Parse a time of a Lease, which a watch may have parsed already; None if it is missing or invalid."""
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None
