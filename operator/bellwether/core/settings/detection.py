"""Detection settings per signal type, with their defaults: the only place where they are defined.

The Kubernetes models in ``api/v1alpha1/detection`` take their defaults from here. Probers count by these values, the
``detection`` package judges by them. The field names follow Kubernetes probes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from bellwether.core.signals import SignalType

QUARANTINE_AGENT = "Quarantine"
"""Type of a quarantine agent's entries in ``status.signals``: its own state, not evidence about the broker.

``Passing``: the agent is ready and the broker runs; ``value`` is the number of the last order that it released.
``Failing``: the agent has paused the broker by the order of that number. ``Unknown``: it cannot pause the broker, and
the message says why.
"""

AGENT_STALE_AFTER_SECONDS = 15
"""Seconds for which a quarantine agent's signal is valid after its last renewal."""


class OnFailing(StrEnum):
    """Effect of a failing signal on its broker: ``Demote`` makes it Sick, ``Suspect`` only reports it."""

    DEMOTE = "Demote"
    SUSPECT = "Suspect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """How external reachability is probed and judged; empty ``bootstrap_servers`` means those of the policy.

    A failing broker is probed twice as often, so that ``failure_threshold`` failures in a row are counted soon. So many
    failures are needed to tell a broken path from a lossy one, on which some requests succeed.
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
    vantage_conflict_after_seconds: int = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfReachability:
    """How the sidecar's check of the broker's socket table is judged: were there external clients recently?"""

    enabled: bool = True
    period_seconds: int = 1
    idle_after_seconds: int = 30
    failure_threshold: int = 3
    success_threshold: int = 3
    stale_after_seconds: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLatency:
    """How the latency of a broker's log directory is probed and judged.

    A write is slow above ``threshold_milliseconds``, the minimum, and above ``history_ratio`` times the usual latency
    of that disk. A disk is slow when ``failure_threshold`` of its last ``window_samples`` writes were slow and it is
    ``peer_ratio`` times slower than the median of its peers: a slowdown of all disks is not one broker's fault.
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
    """How long a follower may lag behind its leaders.

    Lag is in seconds: how long ago the leader's log ended where the follower's ends now.
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
    """Side of the threshold on which a Prometheus rule fails."""

    ABOVE = "Above"
    BELOW = "Below"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusRule:
    """One query that yields a value per broker, and its threshold.

    ``peer_ratio`` additionally requires the value to be that multiple of the other brokers' median; 0 disables it.
    ``leaders_only`` marks a value that is meaningful only while the broker leads, so it is not used to judge a demoted
    broker.
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
    """Which Prometheus server is queried, how often, and with which rules. The adapter holds the credentials."""

    url: str = ""
    period_seconds: int = 15
    timeout_seconds: int = 10
    stale_after_seconds: int = 60
    rules: tuple[PrometheusRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alertmanager:
    """Names of the alerts that count as signals; other alerts sent to the webhook are ignored."""

    alerts: tuple[str, ...] = ()
    broker_label: str = "broker"
    stale_after_seconds: int = 30
    on_failing: OnFailing = OnFailing.DEMOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A signal type measured by a third-party prober (entry point group ``bellwether.signals``)."""

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
    """Signals that are judged by their reading alone, because their source has applied the threshold.

    An empty ``source`` matches any; ``quorum`` is how many sources must agree.
    """

    type: str
    source: str = ""
    quorum: int = 1
    stale_after_seconds: int = 30
    leaders_only: bool = False
    on_failing: OnFailing = OnFailing.DEMOTE

    def covers(self, type_: str, source: str) -> bool:
        """Whether these settings apply to a signal of that type and source."""
        return type_ == self.type and self.source in ("", source)


@dataclass(frozen=True, kw_only=True)
class Detection:
    """Detection settings of one policy, for all signal types."""

    reachability: Reachability = field(default_factory=Reachability)
    self_reachability: SelfReachability = field(default_factory=SelfReachability)
    storage: StorageLatency = field(default_factory=StorageLatency)
    replication_lag: ReplicationLag = field(default_factory=ReplicationLag)
    prometheus: Prometheus = field(default_factory=Prometheus)
    alertmanager: Alertmanager = field(default_factory=Alertmanager)
    plugins: tuple[Plugin, ...] = ()

    @cached_property
    def threshold_signals(self) -> tuple[ThresholdSignals, ...]:
        """Signals judged by threshold alone: replication lag, Prometheus rules, alerts and plug-in signal types."""
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
        """Seconds for which a signal of that type and source is valid after its prober's last renewal.

        ``None`` when the policy does not judge it. A quarantine agent's signal is not evidence, and has a limit as
        well.
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
