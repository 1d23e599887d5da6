"""What counts as sick, per kind of signal, as values with their defaults: written once, here.

The Kubernetes models in ``api/v1alpha1/detection`` take their defaults from here. Probers count by these values, the
modules of ``detection`` judge by them. The words of the probes are Kubernetes' own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from bellwether.core.signals import SignalType

QUARANTINE_AGENT = "Quarantine"
"""The kind of a warden's entries in ``status.signals``; they are its word and no evidence about the broker.

``Passing``: it watches, and the broker runs; ``value`` is the number of the last order that it released. ``Failing``:
it has paused the broker by the order of that number. ``Unknown``: it cannot pause it, and the message says why.
"""

AGENT_STALE_AFTER_SECONDS = 15
"""How long a warden's word counts after it was last heard of."""


class OnFailing(StrEnum):
    """What a failing signal makes of its broker: ``Demote`` makes it Sick, ``Suspect`` only names it."""

    DEMOTE = "Demote"
    SUSPECT = "Suspect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """How external reachability is probed and judged; no ``bootstrap_servers`` means those of the policy itself.

    A broker that fails is asked twice as often, so that ``failure_threshold`` failures in a row are soon counted: that
    many tell a broken path from a bad one, on which some questions come through.
    """

    enabled: bool = True
    listener: str = "EXTERNAL"
    bootstrap_servers: tuple[str, ...] = ()
    vantages: tuple[str, ...] = ()
    period_seconds: int = 1
    timeout_seconds: int = 2
    failure_threshold: int = 6
    success_threshold: int = 3
    stale_after_seconds: int = 10
    startup_grace_seconds: int = 180
    disputed_after_seconds: int = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfReachability:
    """How a sidecar's look at its own socket table is judged: has anyone from outside been heard of lately?"""

    enabled: bool = True
    period_seconds: int = 1
    quiet_after_seconds: int = 30
    failure_threshold: int = 3
    success_threshold: int = 3
    stale_after_seconds: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLatency:
    """How the latency of a broker's log directory is probed and judged.

    A write is slow above ``threshold_milliseconds``, the floor, and above ``history_ratio`` times what is usual for
    that very disk. A disk is slow when so many of its last writes were, and it is ``peer_ratio`` times slower than the
    median of its peers: what slows all of them is not one broker's fault.
    """

    enabled: bool = True
    period_seconds: int = 1
    timeout_seconds: int = 5
    threshold_milliseconds: int = 50
    history_ratio: int = 3
    peer_ratio: int = 8
    window_samples: int = 50
    failure_threshold: int = 40
    success_threshold: int = 5
    stale_after_seconds: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationLag:
    """How long a follower may trail its leaders.

    Lag is counted in seconds: how long ago the leader's log ended where the follower's ends now.
    """

    enabled: bool = True
    period_seconds: int = 5
    timeout_seconds: int = 2
    threshold_seconds: int = 10
    failure_threshold: int = 3
    success_threshold: int = 3
    stale_after_seconds: int = 30
    on_failing: OnFailing = OnFailing.SUSPECT


class Comparison(StrEnum):
    """Which side of its threshold a Prometheus rule fails on."""

    ABOVE = "Above"
    BELOW = "Below"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusRule:
    """One query that yields a value for each broker, and when that value is bad.

    ``peer_ratio`` asks besides that the value be so many times the median of the other brokers'; 0 asks for nothing.
    ``leaders_only`` marks a value that exists, or means something, only while the broker leads: it says nothing of a
    demoted one, so promotion is never judged by it.
    """

    name: str
    query: str
    threshold: float
    comparison: Comparison = Comparison.ABOVE
    peer_ratio: int = 0
    broker_label: str = "broker"
    leaders_only: bool = False
    failure_threshold: int = 3
    success_threshold: int = 3
    on_failing: OnFailing = OnFailing.DEMOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """Which Prometheus is asked, how often, and what for. Credentials stay with whoever connects."""

    url: str = ""
    period_seconds: int = 15
    timeout_seconds: int = 10
    stale_after_seconds: int = 60
    rules: tuple[PrometheusRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alertmanager:
    """Which alerts count as signals, by name; all others that the webhook is sent are passed over."""

    alerts: tuple[str, ...] = ()
    broker_label: str = "broker"
    stale_after_seconds: int = 30
    on_failing: OnFailing = OnFailing.DEMOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A kind of signal that somebody else's prober measures (entry point group ``bellwether.signals``)."""

    type: str
    sources: int = 1
    period_seconds: int = 10
    timeout_seconds: int = 5
    failure_threshold: int = 3
    success_threshold: int = 3
    stale_after_seconds: int = 60
    leaders_only: bool = False
    on_failing: OnFailing = OnFailing.DEMOTE
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSignals:
    """Signals whose source has counted and compared by itself, so that a failing reading is all there is to judge.

    ``source`` ``""`` means any; ``quorum`` so many sources must agree.
    """

    type: str
    source: str = ""
    quorum: int = 1
    stale_after_seconds: int = 30
    leaders_only: bool = False
    on_failing: OnFailing = OnFailing.DEMOTE

    def covers(self, type_: str, source: str) -> bool:
        """Whether a signal of that type and source is one of these."""
        return type_ == self.type and self.source in ("", source)


@dataclass(frozen=True, kw_only=True)
class Detection:
    """Every kind of signal of one policy."""

    reachability: Reachability = field(default_factory=Reachability)
    self_reachability: SelfReachability = field(default_factory=SelfReachability)
    storage: StorageLatency = field(default_factory=StorageLatency)
    replication_lag: ReplicationLag = field(default_factory=ReplicationLag)
    prometheus: Prometheus = field(default_factory=Prometheus)
    alertmanager: Alertmanager = field(default_factory=Alertmanager)
    plugins: tuple[Plugin, ...] = ()

    @cached_property
    def threshold_signals(self) -> tuple[ThresholdSignals, ...]:
        """What is judged by its readings alone: replication lag, Prometheus rules, alerts, other people's kinds."""
        lag, prometheus, alerts = self.replication_lag, self.prometheus, self.alertmanager
        found = [
            ThresholdSignals(
                type=SignalType.REPLICATION_LAG,
                stale_after_seconds=lag.stale_after_seconds,
                on_failing=lag.on_failing,
            )
        ] * lag.enabled
        found += [
            ThresholdSignals(
                type=SignalType.PROMETHEUS,
                source=rule.name,
                stale_after_seconds=prometheus.stale_after_seconds,
                leaders_only=rule.leaders_only,
                on_failing=rule.on_failing,
            )
            for rule in prometheus.rules
        ]
        found += [
            ThresholdSignals(
                type=SignalType.ALERTMANAGER,
                source=name,
                stale_after_seconds=alerts.stale_after_seconds,
                on_failing=alerts.on_failing,
            )
            for name in alerts.alerts
        ]
        found += [
            ThresholdSignals(
                type=plugin.type,
                quorum=plugin.sources,
                stale_after_seconds=plugin.stale_after_seconds,
                leaders_only=plugin.leaders_only,
                on_failing=plugin.on_failing,
            )
            for plugin in self.plugins
        ]
        return tuple(found)

    def stale_after(self, type_: str, source: str) -> int | None:
        """How many seconds a signal of that type and source counts after its prober was last heard of.

        ``None`` when the policy does not judge it at all. A warden's word is no evidence, and is heeded all the same.
        """
        for kind, settings in (
            (SignalType.EXTERNAL_REACHABILITY, self.reachability),
            (SignalType.SELF_REACHABILITY, self.self_reachability),
            (SignalType.STORAGE_LATENCY, self.storage),
        ):
            if type_ == kind:
                return settings.stale_after_seconds if settings.enabled else None
        if type_ == QUARANTINE_AGENT:
            return AGENT_STALE_AFTER_SECONDS
        return next((w.stale_after_seconds for w in self.threshold_signals if w.covers(type_, source)), None)
