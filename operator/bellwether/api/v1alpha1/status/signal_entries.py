"""Signal entries in ``BrokerHealth.status.signals``: the last reading of each source, written on changes only.

Each prober owns its own entries by server-side apply. Entries are parsed one by one: an invalid entry is ignored and
reported, and does not affect the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field, ValidationError

from bellwether.api.v1alpha1.base_model import as_map, explain
from bellwether.api.v1alpha1.core_models import Of, StatusModel
from bellwether.api.v1alpha1.spec.detection_spec import LISTENER_LIMIT
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS
from bellwether.core.signals import (
    QUARANTINE_AGENT,
    Harm,
    ListenerReading,
    Reading,
    Signal,
    SignalType,
    UnreachableCause,
)

SIGNAL_LIMIT = 64
SIGNAL_MESSAGE_LIMIT = 512
LOG_DIR_LIMIT = 1024
LONGEST_LATENCY = 86_400_000_000
LARGEST_LOST_MILLISECONDS = round(LARGEST_LOST_SECONDS * 1000)


class HarmEntry(StatusModel[Harm]):
    """What probes of the broker lost, by the count of one source."""

    lost_milliseconds: Annotated[int, Of("lost_seconds", 1000)] = Field(ge=0, le=LARGEST_LOST_MILLISECONDS)
    """Service that probes lost, in milliseconds: the share of requests that failed or missed the latency objective,
    minus a small allowance, added up over time. 600000 is the counter's limit: at least so much.
    """
    share_percent: Annotated[int, Of("share", 100)] = Field(ge=0, le=100)
    """Percentage of requests that failed or missed the objective in the last seconds."""
    since: AwareDatetime
    """Time at which this episode began."""
    ongoing: bool = True
    """Whether the last request was lost."""
    earlier_milliseconds: Annotated[int, Of("earlier_seconds", 1000)] = Field(
        default=0, ge=0, le=LARGEST_LOST_MILLISECONDS
    )
    """The part of lostMilliseconds that is left of failures before this one."""
    frozen_milliseconds: Annotated[int, Of("frozen_seconds", 1000)] = Field(
        default=0, ge=0, le=LARGEST_LOST_MILLISECONDS
    )
    """The part that was lost in gaps that are over and in which the internal listener did not answer either, as when
    the process freezes.
    """


class ListenerEntry(StatusModel[ListenerReading]):
    """What a source reports of one of several listeners of a broker that fails, is slow, or is not measured."""

    name: str = Field(min_length=1, max_length=64, pattern="^[A-Za-z0-9_.-]+$")
    """Name of the listener, as in advertised.listeners."""
    reading: Reading
    """Reading at this listener; Unknown while it is not measured."""
    harm: HarmEntry | None = None
    """What probes of the listener lost; unset while nothing is lost."""
    cause: UnreachableCause | None = None
    """What failed requests to it break at."""


class SignalEntry(StatusModel[Signal]):
    """Last signal of one source about the broker. It is as recent as the last renewal of its prober's Lease."""

    type: str = Field(
        min_length=1,
        max_length=63,
        pattern="^[A-Z][A-Za-z0-9]*$",
        description=f"Type of the signal: {', '.join(SignalType)}, {QUARANTINE_AGENT}, or the type of a plug-in.",
    )
    source: str = Field(min_length=1, max_length=63, pattern="^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    """Stable name of the source: a vantage, a prober, a Prometheus rule, an alert."""
    reading: Reading
    """Reading of the source, after its thresholds."""
    control: Reading = Reading.UNKNOWN
    """Reading of the same request to the internal listener (ExternalReachability only)."""
    since: AwareDatetime
    """Time since which the source has reported this reading."""
    message: str = Field(default="", max_length=SIGNAL_MESSAGE_LIMIT)
    """Observation in one sentence."""
    latency_microseconds: Annotated[int | None, Of("latency_seconds", 1_000_000)] = Field(
        default=None, ge=0, le=LONGEST_LATENCY
    )
    """Latency when this entry was written, in microseconds."""
    usual_latency_microseconds: Annotated[int | None, Of("usual_seconds", 1_000_000)] = Field(
        default=None, ge=0, le=LONGEST_LATENCY
    )
    """Usual latency of the same disk, in microseconds (StorageLatency only)."""
    value: str | None = Field(default=None, max_length=32, pattern=r"^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$")
    """Value that was compared with the threshold when this entry was written, as a decimal number."""
    harm: HarmEntry | None = None
    """What probes of the broker lost by the count of this source; unset while nothing is lost."""
    directory: str = Field(default="", max_length=LOG_DIR_LIMIT)
    """Log directory that was measured (StorageLatency and ReadLatency)."""
    cause: UnreachableCause | None = None
    """What failed requests break at (ExternalReachability)."""
    metadata_log: bool | None = None
    """Whether the KRaft metadata log lies in that directory (StorageLatency only); unset while that is unknown."""
    broken_link_to: int | None = Field(default=None, ge=0, le=2147483647)
    """Broker that this one cannot fetch from, nor it from this one, while others serve both (ReplicationLag only)."""
    listeners: tuple[ListenerEntry, ...] = Field(
        default=(), max_length=LISTENER_LIMIT, json_schema_extra=as_map("name")
    )
    """Of several listeners those that fail, are slow or are not measured (ExternalReachability)."""
    prober_uid: str = Field(alias="proberUID", min_length=1, max_length=64)
    """UUID of the prober process."""
    sequence: int = Field(ge=0)
    """Sequence number of the entry, counted by the prober process."""
    lease_name: str = Field(min_length=1, max_length=253)
    """Name of the prober's Lease. The entry is valid while the Lease is renewed."""

    def signal(self, broker: int, age_seconds: float | None) -> Signal:
        """The signal of the core; ``age_seconds`` as in Signal."""
        value = None if self.value is None else float(self.value)
        return self.to_core(broker=broker, age_seconds=age_seconds, value=value)


def entry_of(signal: Signal, prober_uid: str, sequence: int, lease_name: str) -> SignalEntry:
    """Entry that a prober writes for one of its signals; a message that is too long is truncated."""
    return SignalEntry.of(
        signal,
        value=None if signal.value is None or not math.isfinite(signal.value) else f"{signal.value:.6g}",
        prober_uid=prober_uid,
        sequence=sequence,
        lease_name=lease_name,
    )


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """An entry that was ignored: its index, its type and source, and the error."""

    index: int
    name: str
    problem: str

    def __str__(self) -> str:
        return f"status.signals[{self.index}] {self.name} is ignored: {self.problem}"


def read_entries(entries: Any) -> tuple[tuple[SignalEntry, ...], tuple[UnreadableEntry, ...]]:
    """Parse the entries; returns the valid ones, and the invalid ones with their errors. Never raises."""
    if not isinstance(entries, Iterable) or isinstance(entries, str | bytes):
        return (), (() if entries is None else (UnreadableEntry(0, "", "status.signals is not a list"),))
    good: list[SignalEntry] = []
    bad: list[UnreadableEntry] = []
    for index, entry in enumerate(entries):
        try:
            read = SignalEntry.model_validate(entry)
        except ValidationError as error:
            bad.append(UnreadableEntry(index, _name(entry), explain(error)))
            continue
        good.append(read)
    return tuple(good), tuple(bad)


def _name(entry: Any) -> str:
    """Type and source of an entry that may be invalid."""
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
