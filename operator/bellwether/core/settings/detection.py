"""Detection settings per signal type, with their defaults: the only place where they are defined.

The Kubernetes models in ``api/v1alpha1/spec`` are made from them. Probers count by these values, the ``detection``
package judges by them. The field names follow Kubernetes probes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Annotated, ClassVar

from bellwether.core.settings.field_doc import FieldDoc
from bellwether.core.settings.harm import Objectives
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


_Enabled = Annotated[bool, FieldDoc("Whether signals of this type are used.")]
_Failures = Annotated[int, FieldDoc("Consecutive failures after which the signal is Failing.", 1, 100)]
_Successes = Annotated[int, FieldDoc("Consecutive successes after which the signal is Passing again.", 1, 100)]
_STALE = "Signals older than this, in seconds, are ignored: the prober has not renewed its Lease."
_StaleAfter = Annotated[int, FieldDoc(_STALE, 2, 7200)]
_OnFailing = Annotated[
    OnFailing, FieldDoc("Effect of a failing signal: Demote makes the broker Sick, Suspect only reports it.")
]
_ProbePeriod = Annotated[int, FieldDoc("Seconds between two probes.", 1, 3600)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """How external reachability is probed and judged; empty ``bootstrap_servers`` means those of the policy.

    A failing broker is probed twice as often, so that ``failure_threshold`` failures in a row are counted soon. So many
    failures are needed to tell a broken path from a lossy one, on which some requests succeed.
    """

    enabled: _Enabled = True
    listener: str = "EXTERNAL"
    bootstrap_servers: tuple[str, ...] = ()
    vantages: tuple[str, ...] = ()
    period_seconds: _ProbePeriod = 1
    timeout_seconds: Annotated[int, FieldDoc("Timeout of one probe, in seconds.", 1, 300)] = 2
    failure_threshold: _Failures = 6
    success_threshold: _Successes = 3
    stale_after_seconds: _StaleAfter = 10
    startup_grace_seconds: Annotated[
        int,
        FieldDoc(
            "Seconds after a restart for which an unreachable broker is only Suspect while its internal listener is"
            " reachable, because load balancers need time to register a target. Ends when the broker is reachable.",
            0,
            86400,
        ),
    ] = 180
    vantage_conflict_after_seconds: Annotated[
        int,
        FieldDoc(
            "Seconds for which a quorum of the vantages must have failed before the broker is judged unreachable while"
            " another vantage still reaches it.",
            0,
            604800,
        ),
    ] = 1800


CANARY_TOPIC = "bellwether-canary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Whether records are produced to each broker and fetched from it, by the vantages of ``Reachability``.

    The limits are the objectives. ``topic`` has one partition for each broker, whose only replica is on that broker.
    """

    enabled: _Enabled = False
    topic: str = CANARY_TOPIC
    on_failing: _OnFailing = OnFailing.SUSPECT

    # One record of ten bytes each second.
    period_seconds: ClassVar[int] = 1
    # As long as a client's connection takes whose first SYN is lost.
    timeout_seconds: ClassVar[int] = 2
    stale_after_seconds: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfReachability:
    """How the sidecar's check of the broker's socket table is judged: were there external clients recently?"""

    enabled: _Enabled = True
    period_seconds: Annotated[int, FieldDoc("Seconds between two checks of the socket table.", 1, 3600)] = 1
    idle_after_seconds: Annotated[
        int, FieldDoc("Seconds without an active external client after which a check fails.", 1, 86400)
    ] = 30
    failure_threshold: _Failures = 3
    success_threshold: _Successes = 3
    stale_after_seconds: _StaleAfter = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLatency:
    """How the latency of a broker's log directory is probed and judged.

    A write is slow above ``threshold_milliseconds``, the minimum, and above ``history_ratio`` times the usual latency
    of that disk. A disk is slow when ``failure_threshold`` of its last ``window_samples`` writes were slow and it is
    ``peer_ratio`` times slower than the median of its peers: a slowdown of all disks is not one broker's fault.
    """

    enabled: _Enabled = True
    period_seconds: _ProbePeriod = 1
    timeout_seconds: Annotated[
        int, FieldDoc("Timeout of one write, in seconds. A write that reaches it counts as slow.", 1, 300)
    ] = 5
    threshold_milliseconds: Annotated[
        int, FieldDoc("Latency in milliseconds up to which a write is never slow.", 1, 60000)
    ] = 50
    history_ratio: Annotated[
        int,
        FieldDoc(
            "A write is slow only if its latency exceeds this multiple of the usual latency of that disk.", 1, 100
        ),
    ] = 3
    peer_ratio: Annotated[
        int,
        FieldDoc(
            "A disk is slow only if its latency is at least this multiple of the median across the other brokers.",
            1,
            100,
        ),
    ] = 8
    window_samples: Annotated[
        int, FieldDoc("Number of most recent writes in which slow writes are counted.", 1, 1000)
    ] = 50
    failure_threshold: Annotated[
        int, FieldDoc("Slow writes within windowSamples from which on the signal is Failing.", 1, 1000)
    ] = 40
    success_threshold: Annotated[
        int, FieldDoc("Consecutive fast writes after which the signal is Passing again.", 1, 1000)
    ] = 5
    stale_after_seconds: _StaleAfter = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLatency:
    """Whether direct reads from old segments of a broker's log directory are judged, by the fetch objective.

    A read that takes longer counts as harm from that moment on.
    """

    enabled: _Enabled = True
    on_failing: _OnFailing = OnFailing.SUSPECT

    # One read of 4 KiB each second: no disk notices it.
    period_seconds: ClassVar[int] = 1
    stale_after_seconds: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationLag:
    """How long a follower may lag behind its leaders.

    Lag is in seconds: how long ago the leader's log ended where the follower's ends now.
    """

    enabled: _Enabled = True
    period_seconds: Annotated[int, FieldDoc("Seconds between two requests for log-end offsets.", 1, 3600)] = 5
    timeout_seconds: Annotated[int, FieldDoc("Timeout of the request to one broker, in seconds.", 1, 300)] = 2
    threshold_seconds: Annotated[
        int,
        FieldDoc(
            "A follower lags if its log ends where the leader's log ended longer ago than this, in seconds.", 1, 3600
        ),
    ] = 10
    failure_threshold: _Failures = 3
    success_threshold: _Successes = 3
    stale_after_seconds: _StaleAfter = 30
    on_failing: _OnFailing = OnFailing.SUSPECT


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
    """Names of the alerts that count as signals, and the labels (name, value) that an alert of this Kafka cluster has.

    Other alerts sent to the webhook are ignored.
    """

    alerts: tuple[str, ...] = ()
    matchers: tuple[tuple[str, str], ...] = ()
    broker_label: str = "broker"
    stale_after_seconds: Annotated[
        int,
        FieldDoc("Signals older than this, in seconds, are ignored: the webhook has not renewed its Lease.", 2, 7200),
    ] = 30
    on_failing: _OnFailing = OnFailing.DEMOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A signal type measured by a third-party prober (entry point group ``bellwether.signals``)."""

    type: str
    sources: Annotated[
        int, FieldDoc("Number of sources that must report Failing before the broker is judged failing.", 1, 16)
    ] = 1
    period_seconds: Annotated[int, FieldDoc("Seconds between two measurements.", 1, 3600)] = 10
    timeout_seconds: Annotated[int, FieldDoc("Timeout of one measurement, in seconds.", 1, 300)] = 5
    failure_threshold: _Failures = 3
    success_threshold: _Successes = 3
    stale_after_seconds: _StaleAfter = 60
    leaders_only: Annotated[
        bool,
        FieldDoc("The signal is meaningful only while the broker leads: a demoted broker is not judged by it."),
    ] = False
    on_failing: _OnFailing = OnFailing.DEMOTE
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
    """Detection settings of one policy, for all signal types.

    A broker is demoted when the harm that it does to clients exceeds ``tolerance`` times the cost of moving its leaders
    away and back.
    """

    objectives: Objectives = field(default_factory=Objectives)
    tolerance: int = 1
    reachability: Reachability = field(default_factory=Reachability)
    canary: Canary = field(default_factory=Canary)
    self_reachability: SelfReachability = field(default_factory=SelfReachability)
    storage: StorageLatency = field(default_factory=StorageLatency)
    read_latency: ReadLatency = field(default_factory=ReadLatency)
    replication_lag: ReplicationLag = field(default_factory=ReplicationLag)
    prometheus: Prometheus = field(default_factory=Prometheus)
    alertmanager: Alertmanager = field(default_factory=Alertmanager)
    plugins: tuple[Plugin, ...] = ()

    @cached_property
    def threshold_signals(self) -> tuple[ThresholdSignals, ...]:
        """Signals judged by threshold alone: reads, replication lag, Prometheus rules, alerts and plug-in types."""
        lag, prometheus, alerts = self.replication_lag, self.prometheus, self.alertmanager
        found = [
            ThresholdSignals(
                type=SignalType.READ_LATENCY,
                stale_after_seconds=self.read_latency.stale_after_seconds,
                on_failing=self.read_latency.on_failing,
            )
        ] * self.read_latency.enabled
        found += [
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
            (SignalType.CANARY, self.canary),
            (SignalType.SELF_REACHABILITY, self.self_reachability),
            (SignalType.STORAGE_LATENCY, self.storage),
        ):
            if type_ == kind:
                return settings.stale_after_seconds if settings.enabled else None
        if type_ == QUARANTINE_AGENT:
            return AGENT_STALE_AFTER_SECONDS
        return next((w.stale_after_seconds for w in self.threshold_signals if w.covers(type_, source)), None)
