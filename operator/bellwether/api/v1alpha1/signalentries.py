"""Entries of ``BrokerHealth.status.signals``: one source's last word on one broker, written on news only.

Each prober owns its own entries by server-side apply. They are read one by one: a broken entry is passed over and
named, and takes no other down with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field, ValidationError

from bellwether.api.v1alpha1.models import Reported, as_map, explain
from bellwether.core.signals import Reading, Signal, SignalType

SIGNAL_LIMIT = 64
SIGNAL_MESSAGE_LIMIT = 512


class SignalEntry(Reported):
    """One source's last word on the broker. It is as fresh as the last renewal of its prober's Lease."""

    type: str = Field(
        min_length=1,
        max_length=63,
        pattern="^[A-Z][A-Za-z0-9]*$",
        description="Kind of evidence: ExternalReachability, StorageLatency.",
    )
    source: str = Field(
        min_length=1,
        max_length=63,
        pattern="^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        description="Stable name of where it comes from: a vantage, or the place of a storage prober.",
    )
    reading: Reading = Field(description="What the source says, its own thresholds already applied.")
    control: Reading = Field(
        default=Reading.UNKNOWN,
        description="The internal listener's answer to the same request (ExternalReachability).",
    )
    since: AwareDatetime = Field(description="Since when the source has said so.")
    message: str = Field(default="", max_length=SIGNAL_MESSAGE_LIMIT, description="What was seen, in one sentence.")
    latency_milliseconds: int | None = Field(
        default=None, ge=0, le=86400000, description="Latency when this entry was written."
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
        """The entry as evidence; ``age_seconds`` as in Signal. ValueError for a type that this version cannot judge."""
        latency = self.latency_milliseconds
        return Signal(
            broker=broker,
            type=SignalType(self.type),
            source=self.source,
            reading=self.reading,
            since=self.since,
            age_seconds=age_seconds,
            control=self.control,
            latency_seconds=None if latency is None else latency / 1000,
            message=self.message,
        )


def entry_of(signal: Signal, prober_uid: str, sequence: int, lease_name: str) -> SignalEntry:
    """What a prober writes for a signal of its own; a message that is too long is cut."""
    latency = signal.latency_seconds
    return SignalEntry(
        type=signal.type.value,
        source=signal.source,
        reading=signal.reading,
        control=signal.control,
        since=signal.since,
        message=signal.message[:SIGNAL_MESSAGE_LIMIT],
        latency_milliseconds=None if latency is None else round(latency * 1000),
        proberUID=prober_uid,
        sequence=sequence,
        lease_name=lease_name,
    )


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
        if read.type in set(SignalType):
            good.append(read)
        else:
            bad.append(Unreadable(index, _name(entry), "this version does not know the type; its prober is newer"))
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
