"""A signal: one observation of one broker from one source, with its age.

Probers write them, the Kubernetes adapter reads them back and ages them on its own clock, ``detection`` adds them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from bellwether.core.reasons import Reason


class SignalType(StrEnum):
    """Built-in signal types. Plug-ins add others by entry point, under their own names."""

    EXTERNAL_REACHABILITY = "ExternalReachability"
    CANARY = "Canary"
    SELF_REACHABILITY = "SelfReachability"
    STORAGE_LATENCY = "StorageLatency"
    READ_LATENCY = "ReadLatency"
    REPLICATION_LAG = "ReplicationLag"
    CERTIFICATE_EXPIRY = "CertificateExpiry"
    PROMETHEUS = "Prometheus"


class SignalTraits(NamedTuple):
    """What a built-in type of signals means.

    Its settings are the field of ``Detection`` with its name in snake case. ``reasons`` are those for which its signals
    demote, each with how unsuitable a leader with it is, from 0 to 5. ``symptom`` is the reason as which all of them
    count where brokers are compared; None: each for itself. ``by_reading``: the reading alone is judged, because the
    source has applied the thresholds (``detection.thresholds``); the others measure harm, or have a file of their own
    in ``detection``. ``on_host``: its source runs on the broker's host, as a sidecar in its pod.
    """

    reasons: Mapping[Reason, int] = {}
    symptom: Reason | None = None
    by_reading: bool = False
    on_host: bool = False


SIGNALS: Mapping[str, SignalTraits] = {
    SignalType.EXTERNAL_REACHABILITY: SignalTraits(
        {Reason.EXTERNALLY_UNREACHABLE: 4, Reason.FREEZING: 4, Reason.NOT_FENCED_IN_TIME: 5},
        Reason.EXTERNALLY_UNREACHABLE,
    ),
    SignalType.CANARY: SignalTraits({Reason.CANARY_FAILING: 4}, Reason.CANARY_FAILING),
    SignalType.STORAGE_LATENCY: SignalTraits(
        {Reason.STORAGE_SLOW: 3, Reason.LOG_DIR_SLOW: 3}, Reason.STORAGE_SLOW, on_host=True
    ),
    SignalType.READ_LATENCY: SignalTraits({Reason.READS_SLOW: 3}, Reason.STORAGE_SLOW, on_host=True),
    SignalType.SELF_REACHABILITY: SignalTraits(on_host=True),
    SignalType.REPLICATION_LAG: SignalTraits({Reason.REPLICATION_LAGGING: 2}, Reason.STORAGE_SLOW, by_reading=True),
    SignalType.CERTIFICATE_EXPIRY: SignalTraits({Reason.CERTIFICATE_EXPIRING: 2}, by_reading=True),
}
"""All built-in types but Prometheus, whose rules are judged each for itself."""

QUARANTINE_AGENT = "Quarantine"
"""Type of a quarantine agent's entries in ``status.signals``: its own state, not evidence about the broker.

``Passing``: the agent is ready and the broker runs; ``value`` is the number of the last order that it released.
``Failing``: the agent holds the broker by the order of that number. ``Unknown``: it cannot hold the broker, and
the message says why.
"""

ON_BROKER_HOST = (*(type_ for type_, traits in SIGNALS.items() if traits.on_host), QUARANTINE_AGENT)
"""Types of signals whose source runs on the broker's host, as a sidecar in its pod."""


class Reading(StrEnum):
    """Result that a source reports for a broker. Probers apply their thresholds, so a reading is already confirmed."""

    PASSING = "Passing"
    FAILING = "Failing"
    UNKNOWN = "Unknown"


class UnreachableCause(StrEnum):
    """What a request to a broker's listener broke at; ``core.detection.finding_messages`` has the words."""

    REFUSED = "Refused"
    NO_ROUTE = "NoRoute"
    NO_CONNECTION = "NoConnection"
    NAME_UNKNOWN = "NameUnknown"
    TLS_SILENT = "TlsSilent"
    TLS_FAILED = "TlsFailed"
    CERTIFICATE_EXPIRED = "CertificateExpired"
    CERTIFICATE_INVALID = "CertificateInvalid"
    CREDENTIALS_REFUSED = "CredentialsRefused"
    CONNECTION_CLOSED = "ConnectionClosed"
    NO_ANSWER = "NoAnswer"
    WRONG_BROKER = "WrongBroker"
    SLOW = "Slow"


@dataclass(frozen=True, slots=True)
class Harm:
    """What probes of a broker lost by one source's count, in the episode that began at ``since``.

    ``lost_seconds`` is a leaky sum: the share of requests that failed or missed the latency objective, minus a small
    allowance, times the seconds for which that lasted. ``share`` is that share over the last seconds, 0 to 1.
    ``ongoing`` says whether the last request was lost. ``earlier_seconds`` is what of it was lost before the source
    last turned to Failing: harm of earlier failures that has not faded yet. ``frozen_seconds`` is the part that was
    lost in gaps that are over and in which the internal listener did not answer either (ExternalReachability only).
    """

    lost_seconds: float
    share: float
    since: datetime
    ongoing: bool = True
    earlier_seconds: float = 0.0
    frozen_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ListenerReading:
    """What a source reports of one of several listeners of a broker that fails, is slow, or is not measured.

    ``harm`` and ``cause`` as in ``Signal``. Unknown: this source does not measure that listener.
    """

    name: str
    reading: Reading
    harm: Harm | None = None
    cause: UnreachableCause | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """One source's observation of one broker.

    ``type`` is a SignalType, or the name of a plug-in's signal type. ``control`` is the internal listener's answer to
    the same request (ExternalReachability only). ``latency_seconds`` is the last measured latency, ``usual_seconds``
    the usual latency of that disk (StorageLatency only). ``value`` is the figure that was compared, in its source's own
    unit (ReplicationLag: seconds; StorageLatency: what a sync takes, in seconds). ``harm`` is what probes lost, None
    while nothing is lost or where the source does not count it. ``age_seconds`` is the time since the reader saw the
    source's Lease advance, on the reader's monotonic clock; ``None`` means never, and is not evidence. ``directory`` is
    the log directory that was measured (StorageLatency and ReadLatency; empty where the prober does not say),
    ``metadata_log`` whether the KRaft metadata log lies in it (StorageLatency only; None where that is unknown).
    ``cause`` is what failed requests broke at (ExternalReachability; None where that is not known, or nothing fails).
    ``broken_link_to`` is the broker that it and this one do not fetch from each other, while others serve both
    (ReplicationLag only).
    ``listeners`` are those of several that fail or are slow (ExternalReachability): the signal itself has the reading,
    the harm and the cause of the worst one. Empty where one listener is measured, or all of them pass.
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
    harm: Harm | None = None
    directory: str = ""
    cause: UnreachableCause | None = None
    metadata_log: bool | None = None
    broken_link_to: int | None = None
    listeners: tuple[ListenerReading, ...] = ()

    @property
    def failing_listeners(self) -> tuple[str, ...]:
        """Names of the listeners that fail, where several are measured."""
        return tuple(one.name for one in self.listeners if one.reading is Reading.FAILING)

    def at_listener(self, name: str) -> Signal:
        """The signal as that listener alone would have it; Unknown if it fails and does not say at which."""
        if self.reading is Reading.UNKNOWN or not (self.listeners or self.reading is Reading.FAILING):
            return self
        other = Reading.PASSING if self.listeners else Reading.UNKNOWN
        said = next((one for one in self.listeners if one.name == name), ListenerReading(name, other))
        return replace(self, reading=said.reading, harm=said.harm, cause=said.cause)

    def aged(self, seconds: float) -> Signal:
        """The signal at that age. Every reconcile ages every signal: ``replace`` takes twice as long."""
        return Signal(
            self.broker,
            self.type,
            self.source,
            self.reading,
            self.since,
            seconds,
            self.control,
            self.latency_seconds,
            self.message,
            self.usual_seconds,
            self.value,
            self.harm,
            self.directory,
            self.cause,
            self.metadata_log,
            self.broken_link_to,
            self.listeners,
        )


class SourceSignals(NamedTuple):
    """All signals of one source: their type, their age as in ``Signal``, and how many have each reading."""

    type: str
    source: str
    age_seconds: float | None
    readings: Mapping[Reading, int]


@dataclass(frozen=True, slots=True)
class Override:
    """A manual override for a broker (``BrokerHealth.spec.override``); ``until`` ``None`` means until it is removed.

    ``by`` names the person, for the audit log. ``purpose`` ``None``: no special handling.
    ``accept_unavailable_writes``: a broker in maintenance may be stopped although partitions then have fewer ISR
    members than min.insync.replicas.
    """

    broker: int
    state: OverrideState
    reason: str = ""
    until: datetime | None = None
    by: str = ""
    purpose: Purpose | None = None
    accept_unavailable_writes: bool = False

    def active(self, now: datetime) -> bool:
        """Whether the override is in effect at ``now``."""
        return self.until is None or now < self.until


class OverrideState(StrEnum):
    """State that an override requests."""

    DEMOTED = "Demoted"
    PROMOTED = "Promoted"


class Purpose(StrEnum):
    """Purpose of an override, where it changes what the override does."""

    MAINTENANCE = "Maintenance"
