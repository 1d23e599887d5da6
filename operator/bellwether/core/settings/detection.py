"""Detection settings per signal type, with their defaults: the only place where they are defined.

The Kubernetes models in ``api/v1alpha1/spec`` are made from them. Probers count by these values, the ``detection``
package judges by them. The field names follow Kubernetes probes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar

from bellwether.core.reasons import Reason
from bellwether.core.settings.harm import Objectives
from bellwether.core.settings.setting import INTERNAL, SETTING, Setting
from bellwether.core.settings.source_settings import OnFailing, Plugin, PrometheusRule
from bellwether.core.signals import QUARANTINE_AGENT, SIGNALS, SignalType

AGENT_STALE_AFTER_SECONDS = 15
"""Seconds for which a quarantine agent's signal is valid after its last renewal."""


_FIELDS = {t: "".join(f"_{c.lower()}" if c.isupper() else c for c in t).removeprefix("_") for t in SIGNALS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """How external reachability is probed and judged; empty ``bootstrap_servers`` means those of the policy.

    ``listeners`` are the names of the external listeners, at least one; ``bootstrap_servers`` are addresses of the
    first.
    """

    enabled: Annotated[bool, SETTING] = True
    """Whether signals of this type are used."""
    listeners: tuple[str, ...] = ("EXTERNAL",)
    bootstrap_servers: tuple[str, ...] = ()
    vantages: tuple[str, ...] = ()
    startup_grace_seconds: Annotated[int, Setting(0, 86400)] = 180
    """Seconds after a restart for which an unreachable broker is only Suspect while its internal listener is reachable,
    because load balancers need time to register a target. Ends when the broker is reachable.
    """

    # Each request represents the second until the next. More requests would cost each broker a connection more.
    period_seconds: ClassVar[int] = 1
    # The objective of a request that opens a connection: TCP sends a lost SYN again after 1 s, and one lost packet is
    # no failure.
    timeout_seconds: ClassVar[int] = 2
    # A lost SYN is sent again after 1 s, so who has not answered by now has lost two packets or is gone: such a request
    # counts as failed until it is answered after all.
    late_after_seconds: ClassVar[float] = 1.25
    # A prober renews its Lease every 2 s; this allows for a slow API server and a change of its leader.
    stale_after_seconds: ClassVar[int] = 10


CANARY_TOPIC = "bellwether-canary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Whether records are produced to each broker and fetched from it, by the vantages of ``Reachability``.

    The limits are the objectives. ``topic`` has one partition for each broker, whose only replica is on that broker.
    """

    enabled: Annotated[bool, SETTING] = False
    """Whether signals of this type are used."""
    topic: str = CANARY_TOPIC

    # One record of ten bytes each second.
    period_seconds: ClassVar[int] = 1
    # As long as a client's connection takes whose first SYN is lost.
    timeout_seconds: ClassVar[int] = 2
    stale_after_seconds: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfReachability:
    """How the sidecar's check of the broker's socket table is judged: were there external clients recently?"""

    enabled: Annotated[bool, SETTING] = True
    """Whether signals of this type are used."""

    # Reading a socket table costs less than a millisecond.
    period_seconds: ClassVar[int] = 1
    # Clients send at least a fetch or a metadata request within fetch.max.wait.ms and reconnect.backoff.max.ms; 30 s is
    # far beyond both defaults.
    idle_after_seconds: ClassVar[int] = 30
    # A client that reconnects is missing in one or two looks.
    failure_threshold: ClassVar[int] = 3
    success_threshold: ClassVar[int] = 3
    stale_after_seconds: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLatency:
    """Whether the latency of writes in a broker's log directory is judged; the limit is the produce objective."""

    enabled: Annotated[bool, SETTING] = True
    """Whether signals of this type are used."""

    # One append of 32 KiB and one sync of 4 KiB each second: no disk notices them.
    period_seconds: ClassVar[int] = 1
    # How long a single measurement waits for its write (``bellwether probe storage --once``).
    timeout_seconds: ClassVar[int] = 5
    stale_after_seconds: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLatency:
    """Whether direct reads of old segments in a broker's log directory are judged; the limit is the fetch objective."""

    enabled: Annotated[bool, SETTING] = True
    """Whether signals of this type are used."""

    # One read of 4 KiB each second: no disk notices it.
    period_seconds: ClassVar[int] = 1
    stale_after_seconds: ClassVar[int] = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationLag:
    """How long a follower may lag behind its leaders.

    Lag is in seconds: how long ago the leader's log ended where the follower's ends now.
    """

    enabled: Annotated[bool, SETTING] = True
    """Whether signals of this type are used."""
    threshold_seconds: Annotated[int, Setting(1, 3600)] = 10
    """A follower lags if its log ends where the leader's log ended longer ago than this, in seconds."""
    on_failing: Annotated[OnFailing, SETTING] = OnFailing.SUSPECT
    """Effect of a failing signal: Demote makes the broker Sick, Suspect only reports it."""

    # A round asks every leader for the offsets of all partitions.
    period_seconds: ClassVar[int] = 5
    timeout_seconds: ClassVar[int] = 2
    # A lag is confirmed by three rounds: one late answer is not a lag.
    failure_threshold: ClassVar[int] = 3
    success_threshold: ClassVar[int] = 3
    # Two rounds of a large cluster, and the reading of its metadata.
    stale_after_seconds: ClassVar[int] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateExpiry:
    """For how many days the certificates of a broker's external listeners (``Reachability.listeners``) are valid.

    Off by default: the certificates of a cluster often expire together, and then every broker is Suspect.
    """

    enabled: Annotated[bool, SETTING] = False
    """Whether signals of this type are used."""
    minimum_days: Annotated[int, Setting(1, 365)] = 7
    """A broker fails if the certificate of an external listener expires in fewer days than this."""
    on_failing: Annotated[OnFailing, SETTING] = OnFailing.SUSPECT
    """Effect of a failing signal: Demote makes the broker Sick, Suspect only reports it."""

    # One TLS handshake for each listener: a certificate that is exchanged passes within three minutes.
    period_seconds: ClassVar[int] = 60
    stale_after_seconds: ClassVar[int] = 360


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSignals:
    """Signals that are judged by their reading alone, because their source has applied the threshold.

    An empty ``source`` matches any; ``quorum`` is how many sources must agree.
    """

    type: str
    reason: Reason = Reason.SIGNAL_FAILING
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

    objectives: Annotated[Objectives, SETTING] = field(default_factory=Objectives)
    """Latency objectives: a request that takes longer counts as lost for its clients."""
    tolerance: Annotated[int, Setting(1, 20)] = 1
    """A broker is demoted when its probes have lost this multiple of what moving its leaders away and back costs its
    clients.
    """
    external_reachability: Reachability = field(default_factory=Reachability)
    canary: Canary = field(default_factory=Canary)
    self_reachability: Annotated[SelfReachability, SETTING] = field(default_factory=SelfReachability)
    """Whether the broker's socket table shows active external clients. It is used only while most other brokers have
    some.
    """
    storage_latency: Annotated[StorageLatency, SETTING] = field(default_factory=StorageLatency)
    """Latency of a small append in the log directory of each broker; syncs are timed apart and move nothing."""
    read_latency: Annotated[ReadLatency, SETTING] = field(default_factory=ReadLatency)
    """Latency of direct reads from old segments in the log directory of each broker, against the fetch objective."""
    replication_lag: Annotated[ReplicationLag, SETTING] = field(default_factory=ReplicationLag)
    """How far followers lag behind their leaders, by the log-end offsets of both."""
    certificate_expiry: Annotated[CertificateExpiry, SETTING] = field(default_factory=CertificateExpiry)
    """For how many days the certificates of a broker's external listeners are valid."""
    prometheus_rules: Annotated[tuple[PrometheusRule, ...], INTERNAL] = ()
    plugins: Annotated[tuple[Plugin, ...], INTERNAL] = ()

    @cached_property
    def threshold_signals(self) -> tuple[ThresholdSignals, ...]:
        """Signals judged by their reading alone: built-in ones, Prometheus rules and plug-in signal types."""
        found = [
            ThresholdSignals(
                type=type_,
                reason=next(iter(traits.reasons)),
                stale_after_seconds=settings.stale_after_seconds,
                on_failing=settings.on_failing,
            )
            for type_, traits in SIGNALS.items()
            if traits.by_reading and (settings := self.settings_of(type_)).enabled
        ]
        found += [
            ThresholdSignals(
                type=SignalType.PROMETHEUS,
                source=rule.name,
                stale_after_seconds=rule.stale_after_seconds,
                leaders_only=rule.leaders_only,
                on_failing=rule.on_failing,
            )
            for rule in self.prometheus_rules
            if not rule.shows_acks
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

    def settings_of(self, type_: str) -> Any:
        """The settings of a type in ``SIGNALS``: each has ``enabled`` and ``stale_after_seconds``."""
        return getattr(self, _FIELDS[type_])

    @cached_property
    def stale_limits(self) -> tuple[int, ...]:
        """The seconds after which signals of some type are stale, in ascending order."""
        own = (self.settings_of(type_).stale_after_seconds for type_ in SIGNALS)
        return tuple(sorted({*own, *(watch.stale_after_seconds for watch in self.threshold_signals)}))

    @property
    def acks_rules(self) -> dict[str, int]:
        """Prometheus rules that show producers with ``acks=all``, with the seconds after which they are ignored."""
        return {rule.name: rule.stale_after_seconds for rule in self.prometheus_rules if rule.shows_acks}

    def stale_after(self, type_: str, source: str) -> int | None:
        """Seconds for which a signal of that type and source is valid after its prober's last renewal.

        ``None`` when the policy does not use it. Signals of a quarantine agent and of producers' acks are no evidence
        about a broker, and have a limit as well.
        """
        if type_ in SIGNALS:
            settings = self.settings_of(type_)
            return int(settings.stale_after_seconds) if settings.enabled else None
        if type_ == QUARANTINE_AGENT:
            return AGENT_STALE_AFTER_SECONDS
        if type_ == SignalType.PROMETHEUS and source in self.acks_rules:
            return self.acks_rules[source]
        return next((w.stale_after_seconds for w in self.threshold_signals if w.covers(type_, source)), None)
