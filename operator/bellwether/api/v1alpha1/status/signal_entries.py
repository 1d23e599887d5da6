"""Signal entries in ``BrokerHealth.status.signals``: the last reading of each source, written on changes only.

Each prober owns its own entries by server-side apply. They are read one by one: a broken entry is passed over and
named, and takes no other down with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field, ValidationError

from bellwether.api.v1alpha1.base_model import Reported, as_map, explain
from bellwether.core.signals import Reading, Signal

SIGNAL_LIMIT = 64
SIGNAL_MESSAGE_LIMIT = 512
LONGEST_LATENCY = 86_400_000_000


class SignalEntry(Reported):
    """One source's last word on the broker. It is as fresh as the last renewal of its prober's Lease."""

    type: str = Field(
        min_length=1,
        max_length=63,
        pattern="^[A-Z][A-Za-z0-9]*$",
        description="Kind of evidence: ExternalReachability, SelfReachability, StorageLatency, ReplicationLag,"
        " Prometheus, Alertmanager, or the name of a kind that was plugged in.",
    )
    source: str = Field(
        min_length=1,
        max_length=63,
        pattern="^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        description="Stable name of where it comes from: a vantage, a prober's place, a Prometheus rule, an alert.",
    )
    reading: Reading = Field(description="What the source says, its own thresholds already applied.")
    control: Reading = Field(
        default=Reading.UNKNOWN,
        description="The internal listener's answer to the same request (ExternalReachability).",
    )
    since: AwareDatetime = Field(description="Since when the source has said so.")
    message: str = Field(default="", max_length=SIGNAL_MESSAGE_LIMIT, description="What was seen, in one sentence.")
    latency_microseconds: int | None = Field(
        default=None, ge=0, le=LONGEST_LATENCY, description="Latency when this entry was written."
    )
    usual_latency_microseconds: int | None = Field(
        default=None, ge=0, le=LONGEST_LATENCY, description="What is usual for this very disk (StorageLatency)."
    )
    value: str | None = Field(
        default=None,
        max_length=32,
        pattern=r"^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$",
        description="The figure that was compared when this entry was written, as a decimal number.",
    )
    prober_uid: str = Field(
        alias="proberUID",
        min_length=1,
        max_length=64,
        description="UUID of the prober's process.",
    )
    sequence: int = Field(ge=0, description="Counts the entries that this prober's process has written.")
    lease_name: str = Field(
        min_length=1, max_length=253, description="The prober's Lease; the entry counts while it is renewed."
    )

    def to_core(self, broker: int, age_seconds: float | None) -> Signal:
        """The entry as evidence; ``age_seconds`` as in Signal."""
        return Signal(
            broker=broker,
            type=self.type,
            source=self.source,
            reading=self.reading,
            since=self.since,
            age_seconds=age_seconds,
            control=self.control,
            latency_seconds=_seconds(self.latency_microseconds),
            message=self.message,
            usual_seconds=_seconds(self.usual_latency_microseconds),
            value=None if self.value is None else float(self.value),
        )


def entry_of(signal: Signal, prober_uid: str, sequence: int, lease_name: str) -> SignalEntry:
    """What a prober writes for a signal of its own; a message that is too long is cut."""
    return SignalEntry(
        type=str(signal.type),
        source=signal.source,
        reading=signal.reading,
        control=signal.control,
        since=signal.since,
        message=signal.message[:SIGNAL_MESSAGE_LIMIT],
        latency_microseconds=_microseconds(signal.latency_seconds),
        usual_latency_microseconds=_microseconds(signal.usual_seconds),
        value=None if signal.value is None or not math.isfinite(signal.value) else f"{signal.value:.6g}",
        proberUID=prober_uid,
        sequence=sequence,
        lease_name=lease_name,
    )


def _microseconds(seconds: float | None) -> int | None:
    if seconds is None or not math.isfinite(seconds):
        return None
    return min(LONGEST_LATENCY, max(0, round(seconds * 1_000_000)))


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1_000_000


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry that was passed over: where it stands, what it calls itself, and what is wrong with it."""

    index: int
    name: str
    problem: str

    def __str__(self) -> str:
        return f"status.signals[{self.index}] {self.name} is passed over: {self.problem}"


def read_entries(entries: Any) -> tuple[tuple[SignalEntry, ...], tuple[Unreadable, ...]]:
    """The entries that can be judged, and those that cannot, named. Never raises."""
    if not isinstance(entries, Iterable) or isinstance(entries, str | bytes):
        return (), (() if entries is None else (Unreadable(0, "", "status.signals is not a list"),))
    good: list[SignalEntry] = []
    bad: list[Unreadable] = []
    for index, entry in enumerate(entries):
        try:
            read = SignalEntry.model_validate(entry)
        except ValidationError as error:
            bad.append(Unreadable(index, _name(entry), explain(error)))
            continue
        good.append(read)
    return tuple(good), tuple(bad)


def _name(entry: Any) -> str:
    """What an entry calls itself, whatever it is made of."""
    if isinstance(entry, SignalEntry):
        return f"{entry.type}/{entry.source}"
    if not isinstance(entry, dict):
        return "(not an object)"
    return f"{str(entry.get('type', '?'))[:63]}/{str(entry.get('source', '?'))[:63]}"


def _only_readable(entries: Any) -> Any:
    return read_entries(entries)[0][:SIGNAL_LIMIT]


Signals = Annotated[
    tuple[SignalEntry, ...],
    Field(max_length=SIGNAL_LIMIT, json_schema_extra=as_map("type", "source")),
    BeforeValidator(_only_readable),
]
