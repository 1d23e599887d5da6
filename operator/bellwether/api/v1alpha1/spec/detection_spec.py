"""``spec.detection``: thresholds for each signal type. Defaults come from ``core.settings.detection``."""

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
    Matching("^[A-Za-z0-9_.-]+$", "must be the name of a listener, as in advertised.listeners, such as EXTERNAL", 64),
]
Vantage = Annotated[
    str,
    Matching(
        "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        "must consist of letters, digits, '-', '_' and '.', such as eu-west-1a",
        63,
    ),
]

_FAILURES = "Consecutive failures after which the signal is Failing."
_SUCCESSES = "Consecutive successes after which the signal is Passing again."
_SILENCE = "Signals older than this, in seconds, are ignored: the prober has not renewed its Lease."
_ENABLED = "Whether signals of this type are used."

_STALE = Rule(
    cel="self.staleAfterSeconds > self.periodSeconds + self.timeoutSeconds",
    message="must be greater than periodSeconds + timeoutSeconds, or signals become stale between two probes: raise it",
    holds=lambda s: s.stale_after_seconds > s.period_seconds + s.timeout_seconds,
    field="staleAfterSeconds",
)
_WINDOW = Rule(
    cel="self.failureThreshold <= self.windowSamples",
    message="must not exceed windowSamples, or it is never reached: lower it, or raise windowSamples",
    holds=lambda s: s.failure_threshold <= s.window_samples,
    field="failureThreshold",
)


class ExternalReachability(Model):
    """Whether external clients can reach each broker at the address that its external listener advertises."""

    enabled: bool = Field(default=_REACHABILITY.enabled, strict=True, description=_ENABLED)
    listener: Annotated[
        Listener, Field(description="Name of the external listener, as in advertised.listeners of the brokers.")
    ] = _REACHABILITY.listener
    bootstrap_servers: Annotated[
        tuple[HostPort, ...],
        Field(
            max_length=32,
            description="Initial addresses of the probers, as host:port on the external listener. If empty, the"
            " advertised addresses are read from the cluster that spec.kafka connects to.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ] = _REACHABILITY.bootstrap_servers
    vantages: Annotated[
        tuple[Vantage, ...],
        Field(
            max_length=16,
            description="Names of the vantages. A majority of them, and at least two where two exist, must agree that a"
            " broker is unreachable. If empty, every vantage that has reported counts.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ] = _REACHABILITY.vantages
    period_seconds: int = integer(_REACHABILITY.period_seconds, 1, 3600, "Seconds between two probes.")
    timeout_seconds: int = integer(_REACHABILITY.timeout_seconds, 1, 300, "Timeout of one probe, in seconds.")
    failure_threshold: int = integer(
        _REACHABILITY.failure_threshold, 1, 100, "Consecutive failures after which the signal is Failing."
    )
    success_threshold: int = integer(
        _REACHABILITY.success_threshold, 1, 100, "Consecutive successes after which the signal is Passing again."
    )
    stale_after_seconds: int = integer(_REACHABILITY.stale_after_seconds, 2, 7200, _SILENCE)
    startup_grace_seconds: int = integer(
        _REACHABILITY.startup_grace_seconds,
        0,
        86400,
        "Seconds after a restart for which an unreachable broker is only Suspect while its internal"
        " listener is reachable, because load balancers need time to register a target. Ends when the"
        " broker is reachable.",
    )

    vantage_conflict_after_seconds: int = integer(
        _REACHABILITY.vantage_conflict_after_seconds,
        0,
        604800,
        "Seconds for which a quorum of the vantages must have failed before the broker is judged"
        " unreachable while another vantage still reaches it.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (_STALE,)

    def to_core(self) -> detection.Reachability:
        """Convert to the settings of the core."""
        return detection.Reachability(**dict(self))


class StorageLatency(Model):
    """Latency of a small write with fdatasync in the log directory of each broker."""

    enabled: bool = Field(default=_STORAGE.enabled, strict=True, description=_ENABLED)
    period_seconds: int = integer(_STORAGE.period_seconds, 1, 3600, "Seconds between two probes.")
    timeout_seconds: int = integer(
        _STORAGE.timeout_seconds, 1, 300, "Timeout of one write, in seconds. A write that reaches it counts as slow."
    )
    threshold_milliseconds: int = integer(
        _STORAGE.threshold_milliseconds, 1, 60000, "Latency in milliseconds up to which a write is never slow."
    )
    history_ratio: int = integer(
        _STORAGE.history_ratio,
        1,
        100,
        "A write is slow only if its latency exceeds this multiple of the usual latency of that disk.",
    )
    peer_ratio: int = integer(
        _STORAGE.peer_ratio,
        1,
        100,
        "A disk is slow only if its latency is at least this multiple of the median across the other brokers.",
    )
    window_samples: int = integer(
        _STORAGE.window_samples, 1, 1000, "Number of most recent writes in which slow writes are counted."
    )
    failure_threshold: int = integer(
        _STORAGE.failure_threshold, 1, 1000, "Slow writes within windowSamples from which on the signal is Failing."
    )
    success_threshold: int = integer(
        _STORAGE.success_threshold, 1, 1000, "Consecutive fast writes after which the signal is Passing again."
    )
    stale_after_seconds: int = integer(_STORAGE.stale_after_seconds, 2, 7200, _SILENCE)

    rules: ClassVar[tuple[Rule, ...]] = (_STALE, _WINDOW)

    def to_core(self) -> detection.StorageLatency:
        """Convert to the settings of the core."""
        return detection.StorageLatency(**dict(self))


class SelfReachability(Model):
    """Whether the broker's socket table shows active external clients. It is used only while most other brokers have
    some.
    """

    enabled: bool = Field(default=_SELF.enabled, strict=True, description=_ENABLED)
    period_seconds: int = integer(_SELF.period_seconds, 1, 3600, "Seconds between two checks of the socket table.")
    idle_after_seconds: int = integer(
        _SELF.idle_after_seconds, 1, 86400, "Seconds without an active external client after which a check fails."
    )
    failure_threshold: int = integer(_SELF.failure_threshold, 1, 100, _FAILURES)
    success_threshold: int = integer(_SELF.success_threshold, 1, 100, _SUCCESSES)
    stale_after_seconds: int = integer(_SELF.stale_after_seconds, 2, 7200, _SILENCE)

    def to_core(self) -> detection.SelfReachability:
        """Convert to the settings of the core."""
        return detection.SelfReachability(**dict(self))


class ReplicationLag(Model):
    """How far followers lag behind their leaders, by the log-end offsets of both."""

    enabled: bool = Field(default=_LAG.enabled, strict=True, description=_ENABLED)
    period_seconds: int = integer(_LAG.period_seconds, 1, 3600, "Seconds between two requests for log-end offsets.")
    timeout_seconds: int = integer(_LAG.timeout_seconds, 1, 300, "Timeout of the request to one broker, in seconds.")
    threshold_seconds: int = integer(
        _LAG.threshold_seconds,
        1,
        3600,
        "A follower lags if its log ends where the leader's log ended longer ago than this, in seconds.",
    )
    failure_threshold: int = integer(_LAG.failure_threshold, 1, 100, _FAILURES)
    success_threshold: int = integer(_LAG.success_threshold, 1, 100, _SUCCESSES)
    stale_after_seconds: int = integer(_LAG.stale_after_seconds, 2, 7200, _SILENCE)
    on_failing: detection.OnFailing = Field(
        default=_LAG.on_failing,
        description="Effect of a failing signal: Demote makes the broker Sick, Suspect only reports it.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (_STALE,)

    def to_core(self) -> detection.ReplicationLag:
        """Convert to the settings of the core."""
        return detection.ReplicationLag(**dict(self))


class Detection(Model):
    """Signals by which brokers are judged, and their thresholds."""

    external_reachability: ExternalReachability = Field(
        default_factory=ExternalReachability,
        description="Whether external clients can reach each broker at the address that its external listener"
        " advertises.",
    )
    self_reachability: SelfReachability = Field(
        default_factory=SelfReachability,
        description="Whether the broker's socket table shows active external clients. It is used only while most"
        " other brokers have some.",
    )
    storage_latency: StorageLatency = Field(
        default_factory=StorageLatency,
        description="Latency of a small write with fdatasync in the log directory of each broker.",
    )
    replication_lag: ReplicationLag = Field(
        default_factory=ReplicationLag,
        description="How far followers lag behind their leaders, by the log-end offsets of both.",
    )
    prometheus: Prometheus | None = Field(
        default=None, description="Queries to a Prometheus server. If unset, there are none."
    )
    alertmanager: Alertmanager | None = Field(
        default=None,
        description="Alerts that an Alertmanager sends to the webhook of Bellwether. If unset, none is used.",
    )
    plugins: tuple[Plugin, ...] = Field(
        default=(),
        max_length=16,
        description="Signal types that plug-ins measure.",
        json_schema_extra=as_map("type"),
    )

    def to_core(self) -> detection.Detection:
        """Convert to the settings of the core."""
        return detection.Detection(
            reachability=self.external_reachability.to_core(),
            self_reachability=self.self_reachability.to_core(),
            storage=self.storage_latency.to_core(),
            replication_lag=self.replication_lag.to_core(),
            prometheus=self.prometheus.to_core() if self.prometheus is not None else detection.Prometheus(),
            alertmanager=self.alertmanager.to_core() if self.alertmanager is not None else detection.Alertmanager(),
            plugins=tuple(plugin.to_core() for plugin in self.plugins),
        )
