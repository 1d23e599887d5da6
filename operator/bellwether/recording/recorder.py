"""Recorder: watch one policy and write a trace, for ``bellwether record``. It reads, and changes nothing.

In: BrokerHealths and Leases, polled and aged by the same book as the operator's; Kafka's metadata, which a thread of
its own reads, as a sick broker may keep it waiting. Out: an instant in the trace whenever something has changed. What
cannot be read at a moment is written down as such, and the recording goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES, KubernetesClient, Object
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import PodWatch, Wanted
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.adapters.kubernetes.objects.signal_sources import with_sources
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.broker_identity import KnownHosts
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.fault_tolerance import followed_by
from bellwether.core.signals import Reading, SignalType
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError
from bellwether.ports.kafka import ClusterReader, FaultToleranceReader
from bellwether.recording.recorded_status import said_section
from bellwether.recording.replay_settings import settings_section
from bellwether.recording.traces.anonymization import Anonymity
from bellwether.recording.traces.cluster_section import cluster_section
from bellwether.recording.traces.merge_patch import Json, difference
from bellwether.recording.traces.trace_lines import Instant
from bellwether.recording.traces.trace_sections import (
    DEMOTED,
    KAFKA,
    OVERRIDES,
    PODS,
    RETURNING,
    heard_section,
    signals_section,
)

METADATA_SECONDS = 5.0
OVERDUE_SECONDS = 2.0
"""From when on an answer is overdue, if the last one did not take long itself."""

POLICY_SECONDS = 5.0
_SUSPECT = frozenset({"Sick", "Down", "Suspect"})


class HeldClock:
    """A clock fixed at the time of the current read, so that all its results have one age."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moment = clock.monotonic()

    def hold(self) -> float:
        """Move on to now."""
        self._moment = self._clock.monotonic()
        return self._moment

    def now(self) -> datetime:
        """Wall-clock time."""
        return self._clock.now()

    def monotonic(self) -> float:
        """The moment of the look."""
        return self._moment

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        self._clock.sleep(seconds)


class Metadata:
    """The cluster as last read, and the error since then."""

    def __init__(self, reader: ClusterReader, clock: Clock, margins: FaultToleranceReader | None = None) -> None:
        self._reader = reader
        self._clock = clock
        self._margins = margins
        self._began: float | None = None
        self._took = 0.0
        self._failed = ""
        self.cluster: Cluster | None = None
        self.suspects: frozenset[int] = frozenset()
        self.slow: frozenset[int] = frozenset()
        self.trailing: Mapping[int, bool] = {}
        """Whether slow brokers trail as followers, where that is known."""

    @property
    def trouble(self) -> str:
        """Why the cluster cannot be read, also while an answer is overdue; empty when it can."""
        began = self._began
        limit = max(OVERDUE_SECONDS, 3 * self._took)
        if not self._failed and began is not None and self._clock.monotonic() - began > limit:
            return f"no answer for {limit:.0f} s"
        return self._failed

    def read(self) -> None:
        """Read once; a failure is kept in ``trouble``."""
        began = self._began = self._clock.monotonic()
        try:
            self._reader.avoid(self.suspects)
            self.cluster = self._reader.read()
            self._failed, self._took = "", self._clock.monotonic() - began
            self.trailing = self._trailing(self.cluster)
        except BellwetherError as error:
            self._failed = str(error)
        finally:
            self._began = None

    def _trailing(self, cluster: Cluster) -> Mapping[int, bool]:
        followed = {broker: followed_by(cluster, broker) for broker in sorted(self.slow & cluster.live)}
        if self._margins is None or not followed:
            return {}
        found = self._margins.margins((), (), followed)
        return {broker: broker in found.trailing for broker in followed if broker in found.trailing | found.keeping_up}

    def follow(self, stop: threading.Event) -> None:
        """Read again and again until ``stop``: the body of a thread."""
        while not stop.is_set():
            self.read()
            stop.wait(METADATA_SECONDS)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is written down: everything, or no partitions, or no names."""

    partitions: bool = True
    anonymity: Anonymity | None = None


@dataclass
class Recorder:
    """One recording. Call ``look`` once a period; it raises only what ``write`` raises."""

    api: KubernetesClient
    namespace: str
    policy: str
    metadata: Metadata
    write: Callable[[Instant], None]
    """Where instants go."""

    clock: Clock
    scope: Scope = field(default_factory=Scope)
    trouble: dict[str, str] = field(default_factory=dict)
    """What cannot be read at present, and why."""

    def __post_init__(self) -> None:
        self._held = HeldClock(self.clock)
        self._book = SignalCache(self._held)
        self._pods = PodWatch(self.api, self._held, every_seconds=0.0)
        self._began: float | None = None
        self._state: dict[str, Json] = {}
        self._healths: dict[str, Object] = {}
        self._leases: dict[str, Object] = {}
        self._policy_due = float("-inf")
        self._cluster: Cluster | None = None
        self._hosts: dict[int, tuple[str, ...]] = {}
        self._sections: dict[str, Json] = {}

    @property
    def seconds(self) -> float:
        """How long it has been recording."""
        return 0.0 if self._began is None else self._held.monotonic() - self._began

    @property
    def brokers(self) -> int:
        """How many brokers are known."""
        return len(self._healths)

    def look(self) -> None:
        """Read everything that is due, and write what has changed."""
        self._attempt("the Kubernetes API", self._read_signals)
        now = self._held.monotonic()
        if now >= self._policy_due:
            self._policy_due = now + POLICY_SECONDS
            self._attempt("the policy", self._read_policy)
        self._read_cluster()
        self._read_pods()
        if self._began is None:
            self._began = now
        state = self._now(now - self._began)
        news = difference(self._state, state)
        if news:
            self._state = state
            self.write(Instant(now - self._began, self.clock.now(), news))

    def _read_signals(self) -> None:
        labels = {object_names.POLICY_LABEL: object_names.legal(self.policy)}
        healths = self.api.list(BROKER_HEALTHS, self.namespace, labels)
        leases = self.api.list(LEASES, self.namespace, {**labels, object_names.PROBER_LABEL: "true"})
        self._held.hold()
        self._healths = _fed(self._healths, healths, self._book.on_broker_health, self._book.on_broker_health_gone)
        self._leases = _fed(self._leases, leases, self._book.on_lease, self._book.on_lease_gone)
        self.metadata.slow = frozenset(
            s.broker
            for s in self._book.signals()
            if (s.type, s.reading) == (SignalType.STORAGE_LATENCY, Reading.FAILING)
        )
        self._read_said()

    def _read_said(self) -> None:
        """The operator's statuses; demoted and restoring brokers are read again when those change."""
        statuses: dict[int, Mapping[str, Any]] = {}
        for health in self._healths.values():
            broker = (health.get("spec") or {}).get("brokerId")
            if isinstance(broker, int):
                statuses[broker] = health.get("status") or {}
        self._hosts = {b: tuple(map(str, s.get("advertisedHosts") or ())) for b, s in statuses.items()}
        said = said_section(statuses)
        states = {b: (row.get("verdict") or {}).get("state") for b, row in said.items()}
        self.metadata.suspects = frozenset(int(b) for b, state in states.items() if state in _SUSPECT)
        before = self._sections.get("said") or {}
        changed = _demoted_words(before) != _demoted_words(said)
        self._sections["said"] = said
        if changed or "demoted" not in self._sections or "the undo record" in self.trouble:
            self._attempt("the undo record", self._read_record)

    def _read_record(self) -> None:
        record = ConfigMapRecords(self.api, self.namespace, self.policy).read()
        demoted = dict(record.demoted) if record is not None else {}
        hidden = self.scope.anonymity
        self._sections["demoted"] = DEMOTED.write(hidden.demoted(demoted) if hidden is not None else demoted)
        if record is not None and record.returning:
            self._sections["returning"] = RETURNING.write(record.returning)
        else:
            self._sections.pop("returning", None)

    def _read_policy(self) -> None:
        policy = with_sources(self.api, LeadershipPolicy.read(self.api.get(POLICIES, self.namespace, self.policy)))
        self._pods.want(Wanted.of(policy))
        found = settings_section(policy)
        self._sections["policy"] = self.scope.anonymity.settings(found) if self.scope.anonymity is not None else found

    def _read_cluster(self) -> None:
        cluster, trouble = self.metadata.cluster, self.metadata.trouble
        self._note(KAFKA, trouble)
        if cluster is not None and cluster is not self._cluster:
            if cluster != self._cluster:
                shown = cluster if self.scope.anonymity is None else self.scope.anonymity.cluster(cluster)
                self._sections["cluster"] = cluster_section(shown, self.scope.partitions)
            self._cluster = cluster

    def _read_pods(self) -> None:
        """The brokers' pods, where the policy has their restarts watched: as little as the operator sees of them."""
        self._pods.look()
        hosts = KnownHosts(self._hosts).seen(self._cluster).hosts if self._cluster is not None else self._hosts
        pods, hidden = self._pods.by_broker(hosts), self.scope.anonymity
        self._note("pods", self._pods.problem)
        if pods is not None:
            self._sections["pods"] = PODS.write(hidden.pods(pods) if hidden is not None else pods)
        else:
            self._sections.pop("pods", None)

    def _now(self, at: float) -> dict[str, Json]:
        signals, overrides = self._book.signals(), self._book.overrides()
        said: dict[str, Json] = self._sections.get("said") or {}
        away: dict[str, str] = dict(self.trouble)
        hidden = self.scope.anonymity
        if hidden is not None:
            signals, overrides = hidden.signals(signals), hidden.overrides(overrides)
            said = {broker: hidden.said(row) for broker, row in said.items()}
            away = dict.fromkeys(away, "left out")
        return {
            **self._sections,
            "signals": signals_section(signals),
            "heard": heard_section(signals, at),
            "overrides": OVERRIDES.write({one.broker: replace(one, by="") for one in overrides}),
            "followers": {str(broker): {"trailing": known} for broker, known in self.metadata.trailing.items()},
            "said": said,
            "away": away,
        }

    def _attempt(self, what: str, read: Callable[[], None]) -> None:
        try:
            read()
            self._note(what, "")
        except BellwetherError as error:
            self._note(what, str(error))
            self._held.hold()

    def _note(self, what: str, problem: str) -> None:
        """Note why something cannot be read; an empty problem: that it can."""
        self.trouble.pop(what, None)
        if problem:
            self.trouble[what] = problem


def _fed(
    before: Mapping[str, Object], found: list[Object], seen: Callable[[Object], bool], gone: Callable[[Object], bool]
) -> dict[str, Object]:
    """Update the signal cache with everything that a list contains, and with what it no longer contains."""
    now = {one["metadata"]["name"]: one for one in found}
    for name, one in before.items():
        if name not in now:
            gone(one)
    for one in found:
        seen(one)
    return now


def _demoted_words(said: Mapping[str, Json]) -> dict[str, Json]:
    return {broker: row.get("demoted") for broker, row in said.items()}
