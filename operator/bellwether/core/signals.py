"""A signal: one observation of one broker from one source, with its age.

Probers write them, the Kubernetes adapter reads them back and ages them on its own clock, ``detection`` adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class SignalType(StrEnum):
    """The kinds of evidence that Bellwether brings along; other kinds plug in by entry point under their own names."""

    EXTERNAL_REACHABILITY = "ExternalReachability"
    SELF_REACHABILITY = "SelfReachability"
    STORAGE_LATENCY = "StorageLatency"
    REPLICATION_LAG = "ReplicationLag"
    PROMETHEUS = "Prometheus"
    ALERTMANAGER = "Alertmanager"


class Reading(StrEnum):
    """What a source says of a broker. A prober counts its own thresholds, so a reading has already been confirmed."""

    PASSING = "Passing"
    FAILING = "Failing"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Signal:
    """One source's word on one broker.

    ``type`` is a SignalType, or the name that a plugged-in kind has given itself. ``control`` is the internal
    listener's answer to the same request (ExternalReachability only). ``latency_seconds`` is the last measured latency,
    ``usual_seconds`` what is usual for that very disk (StorageLatency only). ``value`` is the figure that was compared,
    in its source's own unit (ReplicationLag: seconds). ``age_seconds`` is the time since the reader saw the source's
    Lease advance, on the reader's monotonic clock; ``None`` means never, and is not evidence.
    """

    broker: int
    type: str
    source: str
    reading: Reading
    since: datetime
    age_seconds: float | None = None
    control: Reading = Reading.UNKNOWN
    latency_seconds: float | None = None
    message: str = ""
    usual_seconds: float | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Override:
    """A person's word on a broker (``BrokerHealth.spec.override``); ``until`` ``None`` means until taken away.

    ``by`` says whose word it is, for the audit trail. ``purpose`` ``None``: the word alone counts.
    """

    broker: int
    state: OverrideState
    reason: str = ""
    until: datetime | None = None
    by: str = ""
    purpose: Purpose | None = None

    def active(self, now: datetime) -> bool:
        """Whether the override still holds at ``now``."""
        return self.until is None or now < self.until


class OverrideState(StrEnum):
    """What an override asks for."""

    DEMOTED = "Demoted"
    PROMOTED = "Promoted"


class Purpose(StrEnum):
    """What a person wants an override for, where that changes what it does."""

    MAINTENANCE = "Maintenance"
