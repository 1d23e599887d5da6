"""What probers and people said, as last seen through watches, aged on our own clock (law 5).

In: BrokerHealth and Lease objects, from whatever threads the watches run in. Out: ``core.signals`` values for one
policy's cycle. An entry is as old as the last renewal that we saw of its prober's Lease; until one was seen its age is
None, and it is no evidence. Called by ``handlers`` (feeding) and through ``ports.SignalSource`` (reading).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bellwether.adapters.kubernetes.client import Object
from bellwether.core.signals import Override, OverrideState, Reading, Signal, SignalType
from bellwether.ports import Clock


@dataclass(frozen=True, slots=True)
class _Pulse:
    """One prober's Lease: its holder, the renewal last seen, and when on our clock; ``advanced`` None before the first."""

    holder: str
    renewed: datetime | None
    seen: float
    advanced: float | None


@dataclass(frozen=True, slots=True)
class _Entry:
    signal: Signal
    lease: str
    prober: str


@dataclass(frozen=True, slots=True)
class _Broker:
    entries: tuple[_Entry, ...]
    override: Override | None
    problems: tuple[str, ...]


class SignalBook:
    """``ports.SignalSource`` for one policy; feed it only this policy's objects. Safe to use from several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._brokers: dict[str, _Broker] = {}
        self._pulses: dict[str, _Pulse] = {}

    def on_broker_health(self, found: Object) -> bool:
        """A BrokerHealth was added or changed; True when its signals or its override are news."""
        name, now = found["metadata"]["name"], _read(found)
        with self._lock:
            before = self._brokers.get(name)
            self._brokers[name] = now
            return before != now

    def on_broker_health_gone(self, found: Object) -> bool:
        """A BrokerHealth was deleted; True when it was known."""
        with self._lock:
            return self._brokers.pop(found["metadata"]["name"], None) is not None

    def on_lease(self, found: Object) -> bool:
        """A prober's Lease was added or changed; True when the evidence of its prober turned from stale to fresh."""
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
            if renewed is not None and last.renewed is not None and renewed > last.renewed:
                # After a gap in the watch an advance may be old news. The prober's clock is trusted for the distance
                # between its own two renewals only, never for what time it is.
                advanced = min(now, last.seen + (renewed - last.renewed).total_seconds())
            self._pulses[name] = _Pulse(holder, renewed, now, advanced)
            return last.advanced is None or last.holder != holder

    def on_lease_gone(self, found: Object) -> bool:
        """A prober's Lease was deleted; True when it was known. Its entries are no evidence from now on."""
        with self._lock:
            return self._pulses.pop(found["metadata"]["name"], None) is not None

    def signals(self) -> tuple[Signal, ...]:
        """The last word of every source, in order of broker, type and source."""
        now = self._clock.monotonic()
        with self._lock:
            aged = [
                _aged(entry, self._pulses.get(entry.lease), now)
                for broker in self._brokers.values()
                for entry in broker.entries
            ]
        return tuple(sorted(aged, key=lambda s: (s.broker, s.type, s.source)))

    def overrides(self) -> tuple[Override, ...]:
        """What people asked for, expired ones included, in order of broker."""
        with self._lock:
            found = [broker.override for broker in self._brokers.values() if broker.override is not None]
        return tuple(sorted(found, key=lambda o: o.broker))

    def problems(self) -> tuple[str, ...]:
        """The entries that could not be read, each named with what is wrong with it."""
        with self._lock:
            return tuple(sorted(text for broker in self._brokers.values() for text in broker.problems))


def _aged(entry: _Entry, pulse: _Pulse | None, now: float) -> Signal:
    signal = entry.signal
    # A Lease in another prober's hands says nothing of the prober that wrote the entry.
    known = pulse is not None and pulse.holder == entry.prober and pulse.advanced is not None
    age = max(0.0, now - pulse.advanced) if known and pulse is not None and pulse.advanced is not None else None
    return Signal(
        broker=signal.broker,
        type=signal.type,
        source=signal.source,
        reading=signal.reading,
        since=signal.since,
        age_seconds=age,
        control=signal.control,
        latency_seconds=signal.latency_seconds,
        message=signal.message,
    )


def _read(found: Object) -> _Broker:
    name, spec = found["metadata"]["name"], found.get("spec") or {}
    broker = spec.get("brokerId")
    if not isinstance(broker, int):
        return _Broker((), None, (f"brokerhealth {name}: spec.brokerId is missing: let the operator make the object",))
    entries: list[_Entry] = []
    problems: list[str] = []
    for raw in (found.get("status") or {}).get("signals") or []:
        try:
            entries.append(_entry(broker, raw))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            who = f"{raw.get('type')}/{raw.get('source')}" if isinstance(raw, dict) else repr(raw)
            problems.append(f"brokerhealth {name}: signal {who} is passed over: {type(error).__name__}: {error}")
    override = None
    try:
        override = _override(broker, spec.get("override"))
    except (KeyError, TypeError, ValueError) as error:
        problems.append(f"brokerhealth {name}: spec.override is passed over: {type(error).__name__}: {error}")
    return _Broker(tuple(entries), override, tuple(problems))


def _entry(broker: int, raw: Any) -> _Entry:
    since, latency = _time(raw["since"]), raw.get("latencyMilliseconds")
    if since is None:
        raise ValueError("since is empty")
    signal = Signal(
        broker=broker,
        type=SignalType(raw["type"]),
        source=str(raw["source"]),
        reading=Reading(raw["reading"]),
        since=since,
        control=Reading(raw.get("control") or Reading.UNKNOWN),
        latency_seconds=None if latency is None else float(latency) / 1000,
        message=str(raw.get("message") or ""),
    )
    return _Entry(signal, str(raw["leaseName"]), str(raw["proberUID"]))


def _override(broker: int, raw: Any) -> Override | None:
    if not raw:
        return None
    reason, by = str(raw.get("reason") or ""), raw.get("by")
    return Override(broker, OverrideState(raw["state"]), f"{reason} ({by})" if by else reason, _time(raw.get("until")))


def _time(value: Any) -> datetime | None:
    """A time as the API shows it; a watch may have parsed it already."""
    if value is None or value == "":
        return None
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    return moment
