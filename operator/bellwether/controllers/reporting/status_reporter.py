"""Status reporter: write status, events and metrics for all policies of this process.

Called by the policy loops. Status is written only when it differs (invariant 8). If the API is unavailable, that is
logged and the next reconcile retries, as leader moves do not depend on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from pydantic import ValidationError

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    LEADER_REBALANCES,
    POLICIES,
    SIGNAL_SOURCES,
    KubernetesClient,
    Object,
    Resource,
)
from bellwether.adapters.kubernetes.api_errors import OutdatedDefinition
from bellwether.adapters.kubernetes.kept_fields import kept_list
from bellwether.adapters.kubernetes.objects.broker_health_objects import BrokerHealths
from bellwether.adapters.kubernetes.objects.event_recorder import EventWriter
from bellwether.adapters.kubernetes.objects.status_writer import StatusWriter
from bellwether.api.v1alpha1.base_model import API_VERSION, InvalidObject
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leader_rebalance import policy_named
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.policy_status import LeadershipPolicyStatus, Mode
from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.api.v1alpha1.status.status_conditions import Condition
from bellwether.controllers.reporting import status as rendered_status
from bellwether.controllers.reporting.events import news, of_rebalance
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report
from bellwether.gather import Memory
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics

log = structlog.get_logger(__name__)

TIDY_SECONDS = 300.0


@dataclass
class _Said:
    """Last reported state of one policy."""

    status: Object = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    brokers: dict[int, dict[str, Condition]] = field(default_factory=dict)
    written: dict[int, tuple[BrokerReport, int | None]] = field(default_factory=dict)
    """What each broker's status was rendered from: its report, and the generation of its spec."""
    known: frozenset[int] = frozenset()
    uids: Mapping[int, str] = field(default_factory=dict)
    tidied_at: float = float("-inf")
    report: Report | None = None
    rebalance: tuple[str, LeaderRebalanceStatus | None] = "", None
    """The uid of the LeaderRebalance that was used, and its state."""


class StatusReporter:
    """Writes status, events and metrics for all policies of this process."""

    def __init__(self, api: KubernetesClient, clock: Clock, instance: str, metrics: OperatorMetrics) -> None:
        self._api = api
        self._clock = clock
        self._statuses = StatusWriter(api)
        self._healths = BrokerHealths(api, clock)
        self._events = EventWriter(api, clock, instance)
        self._instance = instance
        self.metrics = metrics
        self._lock = threading.Lock()
        self._said: dict[tuple[str, str], _Said] = {}
        self._outdated: dict[tuple[str, str], str] = {}
        self.rebalances_of: Callable[[str, str], list[Object]] = self._listed_of
        """The LeaderRebalances that name a policy of a namespace; where there are watches, as these deliver them."""

    def healths(self, policy: LeadershipPolicy) -> list[Object]:
        """The policy's current BrokerHealth objects. Raises Transient or Terminal."""
        namespace, name = policy.metadata.namespace, policy.metadata.name
        return self._api.list(BROKER_HEALTHS, namespace, {object_names.POLICY_LABEL: object_names.legal(name)})

    def sources(self, policy: LeadershipPolicy) -> list[Object]:
        """The SignalSources of the policy's namespace. Raises Transient or Terminal."""
        return kept_list(self._api, SIGNAL_SOURCES, policy.metadata.namespace)

    def last_said(self, policy: LeadershipPolicy, healths: Iterable[Object]) -> list[BrokerHealth]:
        """Continue with the conditions in status after a take-over; returns the BrokerHealths that can be read."""
        namespace, name = policy.metadata.namespace, policy.metadata.name
        self._statuses.forget(namespace, name)  # another process has written since
        said = self._of(namespace, name)
        said.written.clear()
        said.conditions = {c.type: c for c in policy.status.conditions}
        said.status = policy.status.body()
        read = []
        for body in healths:
            self._statuses.saw(BROKER_HEALTHS, body)
            try:
                health = BrokerHealth.read(body)
            except InvalidObject as error:
                log.warning("broker_health_not_read", error=str(error))
                continue
            said.brokers[health.spec.broker_id] = {c.type: c for c in health.status.conditions}
            read.append(health)
        return read

    def rebalances(self, namespace: str) -> list[Object]:
        """The LeaderRebalances of a namespace. Raises Transient or Terminal."""
        found = kept_list(self._api, LEADER_REBALANCES, namespace)
        for body in found:
            self._statuses.saw(LEADER_REBALANCES, body)
        return found

    def without_policy(self, bodies: Iterable[Object]) -> None:
        """Report LeaderRebalances whose policy does not exist."""
        for body in bodies:
            namespace, name = body["metadata"]["namespace"], policy_named(body)
            text = f"no LeadershipPolicy {name} exists in namespace {namespace}: create it, or delete this object"
            try:
                if self._api.find(POLICIES, namespace, name) is None:  # else its controller reports
                    self._say_unused(body, text)
            except BellwetherError as error:
                log.warning("status_not_written", error=str(error))

    def rebalances_idle(self, namespace: str, policy: str, reason: Reason, why: str) -> None:
        """Report, in the LeaderRebalances that name a policy, that it is not reconciled, and why."""
        try:
            for body in self.rebalances_of(namespace, policy):
                self._say_unused(body, why, reason)
        except BellwetherError as error:
            log.warning("status_not_written", error=str(error))

    def _listed_of(self, namespace: str, policy: str) -> list[Object]:
        return [body for body in self.rebalances(namespace) if policy_named(body) == policy]

    def _say_unused(self, body: Mapping[str, Any], why: str, reason: Reason = Reason.REBALANCE_UNUSED) -> None:
        metadata, status = body["metadata"], rendered_status.unused_rebalance(body, why, self._clock.now(), reason)
        self._statuses.write_rebalance(metadata["namespace"], metadata["name"], status)

    def overwritten(self, resource: Resource, found: Object) -> bool:
        """Whether another writer has overwritten the status; the next reconcile writes it again."""
        return self._statuses.overwritten(resource, found)

    def leading(self, namespace: str, name: str, held: bool) -> None:
        """This process holds the Lease of the policy's cluster, or does not."""
        if not held:  # the new holder finds out what can be written
            self._outdated.pop((namespace, name), None)
        self.metrics.leading(namespace, name, held)

    def publish(
        self,
        policy: LeadershipPolicy,
        report: Report,
        memory: Memory,
        seconds: float,
        generations: Mapping[int, int] | None = None,
        rebalance: LeaderRebalanceStatus | None = None,
        must_lead: Callable[[], None] = lambda: None,
    ) -> bool:
        """Publish a reconcile's report; True if status has it.

        ``generations``: of each BrokerHealth's spec, as the reconcile read it.

        ``rebalance`` is its state; None where the policy has none. ``must_lead`` is called before every
        write and raises Fenced once another process may hold the Lease, whose reports are newer.
        """
        namespace, name = policy.metadata.namespace, policy.metadata.name
        said = self._of(namespace, name)
        acts = policy.policy().acts
        self.metrics.record_reconcile(namespace, name, seconds, report, len(memory.record.entries), acts)
        self.metrics.rebalance(namespace, name, rebalance)
        if report.result.changed or report.result.stopped is not None:
            log.info(
                "leaders_moved",
                reordered=report.result.reordered,
                elected=report.result.elected,
                blocked=len(report.held),
                seconds=round(seconds, 3),
                aborted=str(report.result.stopped.message) if report.result.stopped else None,
            )
        try:
            self._write(policy, report, said, generations or {}, rebalance, must_lead)
            self._outdated.pop((namespace, name), None)
        except OutdatedDefinition as error:
            self._outdated[namespace, name] = str(error)
            log.warning("status_not_written", error=str(error))
            self._say_outdated(policy, report, said, str(error))
            return False
        except BellwetherError as error:
            log.warning("status_not_written", error=str(error))
            return False
        return True

    def trouble(self, body: dict[str, Any], reason: Reason, message: str) -> None:
        """The policy could not be reconciled, and why."""
        metadata = body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        self.metrics.troubled(namespace, name, reason)
        said = self._of(namespace, name)
        if not said.conditions:  # conditions that others have written stay
            with suppress(ValidationError):
                stood = LeadershipPolicyStatus.model_validate(body.get("status") or {})
                said.conditions, said.status = {c.type: c for c in stood.conditions}, stood.body()
        generation = int(metadata.get("generation") or 0)
        status = rendered_status.trouble_status(
            reason, message, generation, said.conditions, self._clock.now(), said.status, _mode(body.get("spec"))
        )
        said.conditions.update({c["type"]: Condition.model_validate(c) for c in status["conditions"]})
        try:
            self._statuses.write_policy(namespace, name, status)
            self._events.post(_about(body), str(reason), message, warning=True, budget=f"{namespace}/{name}")
        except BellwetherError as error:
            log.warning("status_not_written", error=str(error))
        self.rebalances_idle(namespace, name, reason, f"policy {name} is not reconciled: {message}")

    def problems(self) -> list[str]:
        """Problems that keep this process from writing statuses, each once."""
        return sorted(set(dict(self._outdated).values()))

    def _say_outdated(self, policy: LeadershipPolicy, report: Report, said: _Said, why: str) -> None:
        """Report in the oldest fields that the CRDs are outdated; demotions continue meanwhile."""
        metadata = policy.metadata
        status = rendered_status.outdated_status(report, why, metadata.generation, said.conditions)
        said.conditions = {c["type"]: Condition.model_validate(c) for c in status["conditions"]}
        said.status = {}
        try:
            self._statuses.write_policy(metadata.namespace, metadata.name, status)
            self._events.post(_object_of(policy), str(Reason.CRD_OUTDATED), why, warning=True)
        except BellwetherError as error:
            log.warning("status_not_written", error=str(error))

    def forget(self, namespace: str, name: str) -> None:
        """Forget a deleted policy."""
        self._outdated.pop((namespace, name), None)
        with self._lock:
            self._said.pop((namespace, name), None)
        self._statuses.forget(namespace, name)
        self._healths.forget(namespace, name)
        self.metrics.forget(namespace, name)

    def _write(
        self,
        policy: LeadershipPolicy,
        report: Report,
        said: _Said,
        generations: Mapping[int, int],
        rebalance: LeaderRebalanceStatus | None,
        must_lead: Callable[[], None],
    ) -> None:
        namespace, name = policy.metadata.namespace, policy.metadata.name
        about = _object_of(policy)
        ids = frozenset(b.broker for b in report.brokers)
        now = self._clock.monotonic()
        if ids != said.known or now - said.tidied_at > TIDY_SECONDS:
            said.uids = self._healths.ensure_broker_healths(about, ids)
            try:
                self._healths.collect(namespace, name)
            except BellwetherError as error:  # statuses do not depend on it
                log.warning("outdated_signals_not_removed", error=str(error))
            said.known, said.tidied_at = ids, now
            said.brokers = {b: one for b, one in said.brokers.items() if b in ids}
            said.written = {b: known for b, known in said.written.items() if b in ids}
        stored = self._statuses.stored_brokers(namespace, name, ids)
        for broker in report.brokers:
            source = (broker, generations.get(broker.broker))
            if broker.broker in stored and said.written.get(broker.broker) == source:
                continue
            before = said.brokers.get(broker.broker, {})
            status = rendered_status.broker_status(*source, before, report.now)
            said.brokers[broker.broker] = {c["type"]: Condition.model_validate(c) for c in status["conditions"]}
            must_lead()
            said.written.pop(broker.broker, None)
            self._statuses.write_broker_health(namespace, name, broker.broker, status)
            said.written[broker.broker] = source
        last_election = said.status.get("lastElection")
        if report.result.elected:
            moment = report.now.replace(microsecond=0).isoformat().replace("+00:00", "Z")
            last_election = {"time": moment, "partitions": report.result.elected}
        status = rendered_status.policy_status(
            report, policy.metadata.generation, said.conditions, last_election, namespace, self._instance
        )
        said.conditions = {c["type"]: Condition.model_validate(c) for c in status["conditions"]}
        said.status = status
        must_lead()
        self._statuses.write_policy(namespace, name, status)
        uid, (former, known) = policy.rebalance.metadata.uid if policy.rebalance is not None else "", said.rebalance
        changes = of_rebalance(known, rebalance) if uid == former else ()
        rebalance_news = [(item, _rebalance_of(policy)) for item in changes]
        own = [
            (item, about if item.broker is None else _health_of(policy, item.broker, said.uids))
            for item in news(said.report, report)
        ]
        for item, about_item in (*own, *rebalance_news):
            log.info(
                "event_emitted", reason=str(item.reason), broker=item.broker, message=item.message, warning=item.warning
            )
            must_lead()
            self._events.post(
                about_item,
                str(item.reason),
                item.message,
                warning=item.warning,
                again=True,
                budget=f"{namespace}/{name}",
            )
        self._events.flush()
        said.report, said.rebalance = report, (uid, rebalance)
        self._write_rebalances(policy, rebalance, must_lead)

    def _write_rebalances(
        self, policy: LeadershipPolicy, now: LeaderRebalanceStatus | None, must_lead: Callable[[], None]
    ) -> None:
        """Status of the policy's LeaderRebalance, and of others that name it why they are not used.

        Raises Transient or Terminal where that of the used one is not written. Others wait for the next report.
        """
        used, namespace = policy.rebalance, policy.metadata.namespace
        for body, why in policy.rebalances.unused.values():
            must_lead()
            try:
                self._say_unused(body, why)
            except BellwetherError as error:
                log.warning("status_not_written", error=str(error))
        if used is not None and now is not None:
            must_lead()
            status = rendered_status.rebalance_status(used, now, self._clock.now())
            self._statuses.write_rebalance(namespace, used.metadata.name, status)

    def _of(self, namespace: str, name: str) -> _Said:
        with self._lock:
            return self._said.setdefault((namespace, name), _Said())


def _mode(spec: Any) -> Mode | None:
    """Mode by a spec that may be invalid."""
    try:
        return Mode.of(str(spec["mode"]), suspend=spec.get("suspend") is True)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _about(body: dict[str, Any]) -> Object:
    return {"apiVersion": API_VERSION, "kind": "LeadershipPolicy", "metadata": body["metadata"]}


def _object_of(policy: LeadershipPolicy) -> Object:
    metadata = policy.metadata
    return _about({"metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}})


def _rebalance_of(policy: LeadershipPolicy) -> Object:
    metadata = policy.rebalances.body.get("metadata") or {}
    return {"apiVersion": API_VERSION, "kind": "LeaderRebalance", "metadata": metadata}


def _health_of(policy: LeadershipPolicy, broker: int, uids: Mapping[int, str]) -> Object:
    """With its uid, without which ``kubectl describe`` does not find its events."""
    metadata = {
        "name": object_names.broker_health(policy.metadata.name, broker),
        "namespace": policy.metadata.namespace,
        "uid": uids.get(broker, ""),
    }
    return {"apiVersion": API_VERSION, "kind": "BrokerHealth", "metadata": metadata}
