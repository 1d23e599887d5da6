"""A recorder next to a simulated operator: what the API and Kafka show of a ``MemorySite``, second by second.

In: a site that a test acts on, and the policy. Out: the instants of a trace, and what the operator itself reported, to
hold a replay against. The API is in memory; recorder, signal book, operator and cycle are the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, PODS, POLICIES, SIGNAL_SOURCES
from bellwether.api.v1alpha1.base_model import timestamp
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.signal_entries import entry_of
from bellwether.api.v1alpha1.status.status_conditions import Condition
from bellwether.controllers.reporting.status import broker_status
from bellwether.core.reporting.report import Report
from bellwether.recording.recorder import Metadata, Recorder, Scope
from bellwether.recording.traces.trace_lines import Header, Instant, read_instant
from bellwether.simulation.fault_script import VERBS, Stage
from bellwether.simulation.memory_kafka import MemoryReader
from testkit.kubernetes import api_objects
from testkit.kubernetes.broker_pods import pod
from testkit.kubernetes.memory_api import MemoryApi
from testkit.simulation import scenarios
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import Operator

Body = dict[str, Any]


@dataclass
class Kept:
    """Where a recorder's instants go."""

    instants: list[Instant] = field(default_factory=list)

    def write(self, instant: Instant) -> None:
        """Keep one, as a file would: through text and back."""
        after = self.instants[-1].at if self.instants else 0.0
        self.instants.append(read_instant(instant.line(), len(self.instants) + 2, after))


class Watched:
    """One site with an operator and a recorder, and the API between them."""

    def __init__(
        self,
        site: MemorySite,
        policy: Body | None = None,
        scope: Scope | None = None,
        sources: Sequence[Body] = (),
    ) -> None:
        self.site = site
        self.policy = policy or api_objects.policy(mode="Enforce")
        self.api = MemoryApi()
        self.api.put(POLICIES, self.policy)
        for source in sources:
            self.api.put(SIGNAL_SOURCES, source)
        self.kept = Kept()
        self.operator = Operator(site, LeadershipPolicy.read(self.policy).with_sources(sources).policy())
        self.metadata = Metadata(MemoryReader(site.cluster), site.clock, site.margins)
        self.recorder = Recorder(
            self.api, "default", "main", self.metadata, self.kept.write, site.clock, scope or Scope(partitions=True)
        )
        self.header = Header("main", "default", site.clock.now(), site.cluster_id)
        self._conditions: dict[int, dict[str, Condition]] = {}

    def second(self) -> Report | None:
        """A turn, what it and the probers write, and a look of the recorder; then time passes."""
        report = self.operator.reconcile()
        self.show(report)
        self.show_pods()
        self.metadata.read()
        self.recorder.look()
        self.site.clock.advance(1)
        return report

    def show(self, report: Report | None) -> None:
        """Let the API show the signals, the probers' Leases, overrides and the operator's words."""
        entries: dict[int, list[Body]] = {b: [] for b in self.site.cluster.snapshot().named}
        for signal in self.site.signals.signals():
            lease = f"lease-{signal.type}-{signal.source}".lower()
            entries.setdefault(signal.broker, []).append(entry_of(signal, signal.source, 1, lease).body())
            if signal.age_seconds == 0.0:
                self._renew(lease, signal.source)
        overrides = {o.broker: o for o in self.site.signals.overrides()}
        statuses = {} if report is None else {b.broker: self._status(b, report) for b in report.brokers}
        for broker, signals in entries.items():
            health = api_objects.health(broker)
            health["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
            if broker in overrides:
                asked = overrides[broker]
                until = {} if asked.until is None else {"until": timestamp(asked.until)}
                health["spec"]["override"] = {"state": str(asked.state), "reason": asked.reason or "asked", **until}
                if asked.purpose is not None:
                    health["spec"]["override"]["purpose"] = str(asked.purpose)
                    health["spec"]["override"]["acceptUnavailableWrites"] = asked.accept_unavailable_writes
            standing = self.api.find(BROKER_HEALTHS, "default", f"main-{broker}") or {}
            kept = {k: v for k, v in (standing.get("status") or {}).items() if k != "signals"}
            health["status"] = {**kept, **statuses.get(broker, {}), "signals": signals}
            BrokerHealth.read(health)
            self.api.put(BROKER_HEALTHS, health)

    def show_pods(self) -> None:
        """Let the API show the brokers' pods as they are."""
        for name in [key for key in self.api.objects if key[0] == "pods"]:
            del self.api.objects[name]
        for broker, one in (self.site.pods or {}).items():
            self.api.put(PODS, pod(broker, ready=one.ready, leaving=one.leaving))

    def _renew(self, lease: str, prober: str) -> None:
        labels = {object_names.POLICY_LABEL: "main", object_names.PROBER_LABEL: "true"}
        spec = {"holderIdentity": prober, "renewTime": self.site.clock.now().isoformat()}
        self.api.put(LEASES, {"metadata": {"name": lease, "namespace": "default", "labels": labels}, "spec": spec})

    def _status(self, broker: Any, report: Report) -> Body:
        before = self._conditions.get(broker.broker, {})
        status = broker_status(broker, 0, before, report.now)
        self._conditions[broker.broker] = {c["type"]: Condition.model_validate(c) for c in status["conditions"]}
        return status


def record(scenario: Mapping[str, Any], scope: Scope | None = None) -> tuple[Watched, list[Report | None]]:
    """Play a scenario of ``tests/scenarios`` with a recorder next to it; and what the operator reported each second."""
    site = scenarios.site_of(scenario["cluster"])
    body = api_objects.policy(**{"mode": "Enforce", **scenario.get("policy", {})})
    watched = Watched(site, body, scope, scenarios.sources_of(scenario))
    events = {int(second): happening for second, happening in scenario["events"].items()}
    reports = []
    for second in range(int(scenario["seconds"]) + 1):
        for what in events.get(second, []):
            for verb, about in what.items():
                if verb not in scenarios.APPROVALS:
                    VERBS[verb](Stage(site), about)
        reports.append(watched.second())
    return watched, reports
