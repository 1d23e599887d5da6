"""``spec.detection``: thresholds per type of signal. Defaults are those of ``core.settings.detection``, written once
there.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import AS_SET, DISTINCT, Matching, Model, Rule, as_map, integer
from bellwether.api.v1alpha1.spec.detection_sources import Alertmanager, Plugin, Prometheus
from bellwether.api.v1alpha1.spec.kafka_spec import HostPort
from bellwether.core.settings import detection

_REACHABILITY = detection.Reachability()
_SELF = detection.SelfReachability()
_STORAGE = detection.StorageLatency()
_LAG = detection.ReplicationLag()

Listener = Annotated[
    str,
    Matching("^[A-Za-z0-9_.-]+$", "must be the name of a listener as in advertised.listeners, such as EXTERNAL", 64),
]
Vantage = Annotated[
    str,
    Matching(
        "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        "must consist of letters, digits, '-', '_' and '.', such as eu-west-1a",
        63,
    ),
]

_FAILURES = "Failures in a row after which the signal says Failing."
_SUCCESSES = "Successes in a row after which the signal says Passing again."
_SILENCE = "Silence of a prober after which its word counts for nothing."
_ENABLED = "Whether this kind of signal is judged."

_STALE = Rule(
    cel="self.staleAfterSeconds > self.periodSeconds + self.timeoutSeconds",
    message="must exceed periodSeconds + timeoutSeconds, or evidence goes stale between two probes: raise it",
    holds=lambda s: s.stale_after_seconds > s.period_seconds + s.timeout_seconds,
    field="staleAfterSeconds",
)
_WINDOW = Rule(
    cel="self.failureThreshold <= self.windowSamples",
    message="must be at most windowSamples, or it can never be reached: lower it, or raise windowSamples",
    holds=lambda s: s.failure_threshold <= s.window_samples,
    field="failureThreshold",
)


class ExternalReachability(Model):
    """Whether clients outside reach each broker at the address that its external listener advertises."""

    enabled: bool = Field(default=_REACHABILITY.enabled, strict=True, description=_ENABLED)
    listener: Annotated[
        Listener, Field(description="Name of the external listener, as in the brokers' advertised.listeners.")
    ] = _REACHABILITY.listener
    bootstrap_servers: Annotated[
        tuple[HostPort, ...],
        Field(
            max_length=32,
            description="Where probers connect first, from outside. Empty: every broker's advertised address is learned"
            " through kafka.bootstrapServers.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ] = _REACHABILITY.bootstrap_servers
    vantages: Annotated[
        tuple[Vantage, ...],
        Field(
            max_length=16,
            description="Names of the places that probe. A majority of them, at least two where two exist, must agree."
            " Empty: whichever vantages have reported.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ] = _REACHABILITY.vantages
    period_seconds: int = integer(_REACHABILITY.period_seconds, 1, 3600, "How often to probe.")
    timeout_seconds: int = integer(_REACHABILITY.timeout_seconds, 1, 300, "How long one probe may take.")
    failure_threshold: int = integer(
        _REACHABILITY.failure_threshold, 1, 100, "Failures in a row after which a signal says Failing."
    )
    success_threshold: int = integer(
        _REACHABILITY.success_threshold, 1, 100, "Successes in a row after which a vantage says Passing again."
    )
    stale_after_seconds: int = integer(_REACHABILITY.stale_after_seconds, 2, 7200, _SILENCE)
    startup_grace_seconds: int = integer(
        _REACHABILITY.startup_grace_seconds,
        0,
        86400,
        "How long after a restart an unreachable broker is given, while its internal listener answers: load balancers"
        " take tens of seconds to register a target. Over as soon as the broker was reachable once.",
    )

    vantage_conflict_after_seconds: int = integer(
        _REACHABILITY.vantage_conflict_after_seconds,
        0,
        604800,
        "How long a quorum must have failed before it counts while another vantage still reaches the broker: one at"
        " fault is unreachable from everywhere.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (_STALE,)

    def to_core(self) -> detection.Reachability:
        """The same as a value of the core."""
        return detection.Reachability(**dict(self))


class StorageLatency(Model):
    """How fast a small write with fdatasync is in each broker's log directory."""

    enabled: bool = Field(default=_STORAGE.enabled, strict=True, description=_ENABLED)
    period_seconds: int = integer(_STORAGE.period_seconds, 1, 3600, "How often to probe.")
    timeout_seconds: int = integer(
        _STORAGE.timeout_seconds, 1, 300, "How long one write may take before it counts as slow, unfinished."
    )
    threshold_milliseconds: int = integer(
        _STORAGE.threshold_milliseconds, 1, 60000, "The floor: a write that takes no longer is never slow."
    )
    history_ratio: int = integer(
        _STORAGE.history_ratio, 1, 100, "A write is slow if it takes so many times what is usual for that very disk."
    )
    peer_ratio: int = integer(
        _STORAGE.peer_ratio,
        1,
        100,
        "A disk is slow if it takes so many times the median of the other brokers' disks; what slows all of them is no"
        " fault of one broker.",
    )
    window_samples: int = integer(_STORAGE.window_samples, 1, 1000, "How many of the last writes are looked at.")
    failure_threshold: int = integer(
        _STORAGE.failure_threshold, 1, 1000, "Slow writes in the window from which on the prober says Failing."
    )
    success_threshold: int = integer(
        _STORAGE.success_threshold, 1, 1000, "Fast writes in a row after which the prober says Passing again."
    )
    stale_after_seconds: int = integer(_STORAGE.stale_after_seconds, 2, 7200, _SILENCE)

    rules: ClassVar[tuple[Rule, ...]] = (_STALE, _WINDOW)

    def to_core(self) -> detection.StorageLatency:
        """The same as a value of the core."""
        return detection.StorageLatency(**dict(self))


class SelfReachability(Model):
    """Whether a broker's own socket table shows that somebody outside talks to it, while peers are talked to."""

    enabled: bool = Field(default=_SELF.enabled, strict=True, description=_ENABLED)
    period_seconds: int = integer(_SELF.period_seconds, 1, 3600, "How often the sidecar looks at the socket table.")
    idle_after_seconds: int = integer(
        _SELF.idle_after_seconds, 1, 86400, "How long nobody outside may have been heard of before a look fails."
    )
    failure_threshold: int = integer(_SELF.failure_threshold, 1, 100, _FAILURES)
    success_threshold: int = integer(_SELF.success_threshold, 1, 100, _SUCCESSES)
    stale_after_seconds: int = integer(_SELF.stale_after_seconds, 2, 7200, _SILENCE)

    def to_core(self) -> detection.SelfReachability:
        """The same as a value of the core."""
        return detection.SelfReachability(**dict(self))


class ReplicationLag(Model):
    """How far followers trail their leaders, from log-end offsets that both are asked for."""

    enabled: bool = Field(default=_LAG.enabled, strict=True, description=_ENABLED)
    period_seconds: int = integer(_LAG.period_seconds, 1, 3600, "How often brokers are asked for log-end offsets.")
    timeout_seconds: int = integer(_LAG.timeout_seconds, 1, 300, "How long one broker's answer may take.")
    threshold_seconds: int = integer(
        _LAG.threshold_seconds,
        1,
        3600,
        "A follower lags when its log ends where its leader's did longer ago than this.",
    )
    failure_threshold: int = integer(_LAG.failure_threshold, 1, 100, _FAILURES)
    success_threshold: int = integer(_LAG.success_threshold, 1, 100, _SUCCESSES)
    stale_after_seconds: int = integer(_LAG.stale_after_seconds, 2, 7200, _SILENCE)
    on_failing: detection.OnFailing = Field(
        default=_LAG.on_failing, description="Demote makes a lagging broker Sick, Suspect only names it."
    )

    rules: ClassVar[tuple[Rule, ...]] = (_STALE,)

    def to_core(self) -> detection.ReplicationLag:
        """The same as a value of the core."""
        return detection.ReplicationLag(**dict(self))


class Detection(Model):
    """What counts as sick, per kind of signal."""

    external_reachability: ExternalReachability = Field(
        default_factory=ExternalReachability,
        description="Whether clients outside reach each broker at the address that its external listener advertises.",
    )
    self_reachability: SelfReachability = Field(
        default_factory=SelfReachability,
        description="Whether a broker's own socket table shows that somebody outside talks to it.",
    )
    storage_latency: StorageLatency = Field(
        default_factory=StorageLatency,
        description="How fast a small write with fdatasync is in each broker's log directory.",
    )
    replication_lag: ReplicationLag = Field(
        default_factory=ReplicationLag, description="How far followers trail their leaders."
    )
    prometheus: Prometheus | None = Field(
        default=None, description="Queries that a Prometheus is asked; absent: none is."
    )
    alertmanager: Alertmanager | None = Field(
        default=None, description="Alerts that an Alertmanager sends to our webhook; absent: none counts."
    )
    plugins: tuple[Plugin, ...] = Field(
        default=(),
        max_length=16,
        description="Kinds of signal that other people's probers bring.",
        json_schema_extra=as_map("type"),
    )

    def to_core(self) -> detection.Detection:
        """The same as a value of the core."""
        return detection.Detection(
            reachability=self.external_reachability.to_core(),
            self_reachability=self.self_reachability.to_core(),
            storage=self.storage_latency.to_core(),
            replication_lag=self.replication_lag.to_core(),
            prometheus=self.prometheus.to_core() if self.prometheus is not None else detection.Prometheus(),
            alertmanager=self.alertmanager.to_core() if self.alertmanager is not None else detection.Alertmanager(),
            plugins=tuple(plugin.to_core() for plugin in self.plugins),
        )
