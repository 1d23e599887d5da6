"""What counts as sick, per kind of signal. Defaults are those of ``core.policies``, written once there."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.connections import HostPort
from bellwether.api.v1alpha1.models import AS_SET, DISTINCT, Matching, Model, Rule, integer
from bellwether.core import policies

_REACHABILITY = policies.Reachability()
_STORAGE = policies.StorageLatency()

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

    enabled: bool = Field(
        default=_REACHABILITY.enabled, strict=True, description="Whether this kind of signal is judged."
    )
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
        _REACHABILITY.failure_threshold, 1, 100, "Failures in a row after which a vantage says Failing."
    )
    success_threshold: int = integer(
        _REACHABILITY.success_threshold, 1, 100, "Successes in a row after which a vantage says Passing again."
    )
    stale_after_seconds: int = integer(
        _REACHABILITY.stale_after_seconds, 2, 7200, "Silence of a prober after which its word counts for nothing."
    )

    rules: ClassVar[tuple[Rule, ...]] = (_STALE,)

    def to_core(self) -> policies.Reachability:
        """The same as a value of the core."""
        return policies.Reachability(**dict(self))


class StorageLatency(Model):
    """How fast a small write with fdatasync is in each broker's log directory."""

    enabled: bool = Field(default=_STORAGE.enabled, strict=True, description="Whether this kind of signal is judged.")
    period_seconds: int = integer(_STORAGE.period_seconds, 1, 3600, "How often to probe.")
    timeout_seconds: int = integer(
        _STORAGE.timeout_seconds, 1, 300, "How long one write may take before it counts as slow, unfinished."
    )
    threshold_milliseconds: int = integer(
        _STORAGE.threshold_milliseconds, 1, 60000, "A write that takes longer is slow."
    )
    window_samples: int = integer(_STORAGE.window_samples, 1, 1000, "How many of the last writes are looked at.")
    failure_threshold: int = integer(
        _STORAGE.failure_threshold, 1, 1000, "Slow writes in the window from which on the prober says Failing."
    )
    success_threshold: int = integer(
        _STORAGE.success_threshold, 1, 1000, "Fast writes in a row after which the prober says Passing again."
    )
    stale_after_seconds: int = integer(
        _STORAGE.stale_after_seconds, 2, 7200, "Silence of a prober after which its word counts for nothing."
    )

    rules: ClassVar[tuple[Rule, ...]] = (_STALE, _WINDOW)

    def to_core(self) -> policies.StorageLatency:
        """The same as a value of the core."""
        return policies.StorageLatency(**dict(self))


class Detection(Model):
    """What counts as sick, per kind of signal."""

    external_reachability: ExternalReachability = Field(
        default_factory=ExternalReachability,
        description="Whether clients outside reach each broker at the address that its external listener advertises.",
    )
    storage_latency: StorageLatency = Field(
        default_factory=StorageLatency,
        description="How fast a small write with fdatasync is in each broker's log directory.",
    )
