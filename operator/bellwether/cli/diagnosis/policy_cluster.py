"""Connect to the Kafka cluster of a policy with its addresses and Secrets, for ``bellwether doctor --policy``.

In: a policy's name. Out: a ``ExaminedCluster``, with what the policy has demoted and judges unhealthy. The Secrets are
read with the rights of the user who runs the command.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import PODS, KubernetesClient, Object
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection, sides
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.adapters.kubernetes.sidecar_injection import AGENT, PROBER, Liveness
from bellwether.api.v1alpha1.broker_health import BrokerHealth, BrokerVerdict
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.status_conditions import condition, true_condition
from bellwether.cli.diagnosis.client_impact import held, holds_back, why_not_held
from bellwether.cli.diagnosis.cluster_examination import ExaminedCluster
from bellwether.cli.diagnosis.policy_view import PolicyView, policy_view
from bellwether.cli.diagnosis.remedies import remedy, typed
from bellwether.cli.kubernetes_target import Target, connect_policy
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.output import clock, since
from bellwether.core.detection.health_states import SHOULD_NOT_LEAD, HealthState
from bellwether.core.doctor.cause_remediation import few_brokers
from bellwether.core.doctor.remediation import Remediation
from bellwether.core.doctor.unhealthy_leaders import JudgedBrokers, QuarantineCheck, SlowBroker, UnhealthyBroker
from bellwether.core.listing import NAMED, few
from bellwether.core.model.quarantine_order import RETURN_SECONDS
from bellwether.core.reasons import DESCRIPTIONS, Reason, reason_named
from bellwether.core.settings.policy import QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, OverrideState, Reading, SignalType
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import BellwetherError

_SHOWN_BROKERS = 8
_NO_AGENT = (
    "no quarantine agent reports: set sidecars.quarantineAgent.enabled of the chart and let the pods be created again"
    " (pods without the volumes of sidecars.dataVolumes get none), or run bellwether quarantine-agent next to it"
)
_NO_PROBER = "no storage prober reports, so recovery would not be seen: run bellwether probe storage next to the broker"


@contextmanager
def policy_cluster(target: Target, bootstrap: tuple[str, ...]) -> Iterator[ExaminedCluster]:
    """The cluster of a policy; ``bootstrap`` replaces its addresses. Raises Terminal, Transient or Unauthenticated.

    The files that Secrets are written to exist as long as the context.
    """
    api, namespace, policy = connect_policy(target)
    body = broker_lookup.find_policy(api, namespace, policy)
    found = LeadershipPolicy.read(body)
    notes = list(_demotions(api, namespace, policy))
    view = _view(api, body, notes)
    judged = _judged(view, notes) if view is not None else None
    quarantine = _quarantine(api, view, notes) if view is not None else None
    with SecretReader(api, namespace, destinations=ANYWHERE) as secrets:
        made = connection(found.spec.kafka, secrets, bootstrap)
        listeners = _watched(found, secrets, notes)
        yield ExaminedCluster(
            made, namespace, policy, found.status.cluster_id, tuple(notes), judged, quarantine, listeners
        )


def _watched(found: LeadershipPolicy, secrets: SecretReader, notes: list[str]) -> tuple[str, ...]:
    """Names of the listeners that are watched, as brokers advertise them; empty if none is, or if that is unknown."""
    settings = found.policy().detection.external_reachability
    if not settings.enabled or found.spec.kafka.strimzi is None:
        return settings.listeners if settings.enabled else ()
    try:
        return sides(found.spec.kafka, secrets, settings.listeners, ()).listeners
    except BellwetherError as error:
        notes.append(f"listeners were not checked: {error}")
        return ()


def _demotions(api: KubernetesClient, namespace: str, policy: str) -> Iterator[str]:
    """Brokers that the policy has demoted, by its undo record."""
    try:
        record = ConfigMapRecords(api, namespace, policy).read()
    except BellwetherError as error:
        yield f"the undo record of policy {namespace}/{policy} cannot be read: {error}"
        return
    if record is None or not record.demoted:
        return
    brokers = sorted(record.demoted.values(), key=lambda d: d.broker)
    shown = few([f"{d.broker} ({d.reason})" for d in brokers], _SHOWN_BROKERS)
    yield f"demoted by policy {namespace}/{policy}: broker {shown}"


def _view(api: KubernetesClient, body: Object, notes: list[str]) -> PolicyView | None:
    try:
        return policy_view(api, body, SystemClock().now())
    except BellwetherError as error:
        policy = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
        notes.append(f"the verdicts of policy {policy} cannot be read: {error}")
        return None


def _quarantine(api: KubernetesClient, view: PolicyView, notes: list[str]) -> QuarantineCheck:
    """What quarantine lacks, by the agents' signals and the brokers' pods; adds to ``notes`` what was not checked."""
    pods: list[Object] = []
    if view.policy.spec.quarantine.to_core().mode is not QuarantineMode.OFF:
        strimzi, metadata = view.policy.spec.kafka.strimzi, view.policy.metadata
        namespace = (strimzi.namespace if strimzi is not None else None) or metadata.namespace
        unchecked = (
            f"no pod of namespace {namespace} has the quarantine agent of policy {metadata.namespace}/{metadata.name}"
        )
        try:
            pods = _with_agent(api.list(PODS, namespace), metadata.name)
        except BellwetherError as error:
            cannot = f"pods of namespace {namespace} cannot be listed ({error})"
            unchecked = f"{cannot}: allow it to yourself, or look at the broker's container"
        if not pods:
            notes.append(f"liveness probes were not checked: {unchecked}")
    stale = {(one.type, one.source) for one in view.probers if one.stale(view.now)}
    return _quarantine_check(view.policy, view.brokers, stale, pods)


def _quarantine_check(
    policy: LeadershipPolicy,
    brokers: Collection[BrokerHealth],
    stale: Collection[tuple[str, str]],
    pods: Iterable[Object],
) -> QuarantineCheck:
    """What is missing so that each broker could be held. ``stale`` are sources, by type, that report no more;
    ``pods`` are those with a quarantine agent of the policy.
    """
    settings = policy.spec.quarantine.to_core()
    if settings.mode is QuarantineMode.OFF:
        return QuarantineCheck(False, ("spec.quarantine.mode is Off: set it to Enabled, and run this command again",))
    if not brokers:
        return QuarantineCheck(True, ("no broker of the policy is known yet: no agent can have reported",))
    lacking: dict[str, list[int]] = {}
    for broker, text in ((one.spec.broker_id, text) for one in brokers for text in _lacking(one, stale)):
        lacking.setdefault(text, []).append(broker)
    missing = [f"{few_brokers(ids)}: {text}" for text, ids in lacking.items()]
    return QuarantineCheck(True, (*missing, *_short_probes(pods, settings.limit_seconds)))


def _lacking(health: BrokerHealth, stale: Collection[tuple[str, str]]) -> Iterator[str]:
    entries = {entry.type: entry for entry in health.status.signals if (entry.type, entry.source) not in stale}
    for type_, absent, unknown in (
        (SignalType.STORAGE_LATENCY, _NO_PROBER, "its storage prober does not know its disk"),
        (QUARANTINE_AGENT, _NO_AGENT, "its quarantine agent cannot hold it"),
    ):
        if (entry := entries.get(type_)) is None:
            yield absent
        elif entry.reading is Reading.UNKNOWN:
            yield f"{unknown}: {entry.message}"


def _with_agent(pods: Iterable[Object], policy: str) -> list[Object]:
    """The pods that have a quarantine agent of a policy."""
    return [
        pod
        for pod in pods
        if any(c["name"] == AGENT and f"--policy={policy}" in (c.get("args") or ()) for c in pod["spec"]["containers"])
    ]


def _short_probes(pods: Iterable[Object], limit_seconds: int) -> Iterator[str]:
    """Liveness probes that would end a held broker before its quarantine is over."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        containers = pod["spec"]["containers"]
        # Only the broker is stopped: the container with the volumes that the storage prober measures.
        data = {m["name"] for c in containers if c["name"] == PROBER for m in c.get("volumeMounts") or ()}
        for container in containers:
            probe, mounted = container.get("livenessProbe"), {m["name"] for m in container.get("volumeMounts") or ()}
            if probe is None or container["name"].startswith("bellwether-") or (data and not data & mounted):
                continue
            if (liveness := Liveness.of(probe)).tolerated_seconds < limit_seconds:
                needed = liveness.failures_for(limit_seconds + RETURN_SECONDS)
                text = (
                    f"the liveness probe of container {container['name']} ends a held broker after"
                    f" {liveness.tolerated_seconds} s, and spec.quarantine.limitSeconds is {limit_seconds}: set its"
                    f" failureThreshold to {needed} (periodSeconds {liveness.period})"
                )
                found.setdefault(text, []).append(pod["metadata"]["name"])
    for text, names in found.items():
        yield f"{few(sorted(names), NAMED)}: {text}"


def _judged(view: PolicyView, notes: list[str]) -> JudgedBrokers | None:
    """What the policy says of its brokers; adds to ``notes`` why a verdict is missing or old."""
    policy = f"{view.policy.metadata.namespace}/{view.policy.metadata.name}"
    if view.unattended and view.renewed is not None:
        notes.append(f"no operator is at work, {since(view.renewed, view.now)}: verdicts on brokers are as old")
    judged = [(health, health.status.verdict) for health in view.brokers if health.status.verdict is not None]
    known = [health.spec.broker_id for health, verdict in judged if verdict.state is not HealthState.UNKNOWN]
    if not known:
        notes.append(f"policy {policy} judges no broker: whether clients reach the leaders is unknown")
        return None
    if unknown := [h.spec.broker_id for h in view.brokers if h.spec.broker_id not in known]:
        notes.append(
            f"policy {policy} cannot judge {few_brokers(unknown)}: whether clients reach what "
            f"{'it leads' if len(unknown) == 1 else 'they lead'} is unknown"
        )
    demoted = {h.spec.broker_id: h for h in view.brokers if true_condition(h.status.conditions, "Demoted") is not None}
    healthy = {h.spec.broker_id for h, verdict in judged if verdict.state is HealthState.HEALTHY}
    return JudgedBrokers(
        tuple(_unhealthy(health, verdict, view) for health, verdict in judged if verdict.state in SHOULD_NOT_LEAD),
        frozenset(demoted),
        {b: idle for b, h in demoted.items() if b in healthy and (idle := _idle(h, view)) is not None},
        tuple(_slow(h, view) for h in view.brokers if holds_back(h) is not None and not held(h)),
    )


def _named(health: BrokerHealth, view: PolicyView) -> str:
    """Arguments that name the broker in a command."""
    return f"{health.spec.broker_id} --policy {view.policy.metadata.name} -n {view.policy.metadata.namespace}"


def _advised(reason: str, health: BrokerHealth, view: PolicyView) -> str:
    metadata = view.policy.metadata
    return typed(remedy(reason), metadata.namespace, metadata.name, str(health.spec.broker_id))


def _unhealthy(health: BrokerHealth, verdict: BrokerVerdict, view: PolicyView) -> UnhealthyBroker:
    demoted, named = condition(health.status.conditions, "Demoted"), _named(health, view)
    advised = _advised(verdict.reason, health, view)
    steps = [Remediation(advised, "nothing", checks=(f"bellwether explain {named}",))]
    kept, by_hand = "", None
    if demoted is not None and str(demoted.status) != "True":
        kept = f"{demoted.reason}: {demoted.message}"
        if demoted.reason == Reason.CAP_REACHED:
            do = "demote it by an override, which the cap does not limit, if the others have capacity"
            by_hand = Remediation(do, "no data moves", (f"bellwether demote {named} --reason WHY",))
        elif demoted.reason != verdict.reason:
            steps.append(Remediation(_advised(demoted.reason, health, view), "nothing: no data moves"))
    message = verdict.message or DESCRIPTIONS[reason_named(verdict.reason)]
    known = tuple(step for step in steps if step.action)
    return UnhealthyBroker(
        health.spec.broker_id, str(verdict.state), verdict.reason, message, kept, known, by_hand=by_hand
    )


def _idle(health: BrokerHealth, view: PolicyView) -> Remediation | None:
    """What lets a healthy broker lead that an override keeps from it, with who set it, why and until when; None for a
    drain.
    """
    override = health.spec.override
    if override is None or override.state is not OverrideState.DEMOTED or override.purpose is not None:
        return None
    by = f" by {override.by}" if override.by else ""
    until = f"; until {clock(override.until)}" if override.until is not None else ""
    do = (
        f"let broker {health.spec.broker_id} lead again: it is healthy, and an override{by} keeps it from leading"
        f" ({override.reason}{until})"
    )
    cost = "no data moves; what the override was set for must be over"
    return Remediation(do, cost, (f"bellwether release {_named(health, view)}",))


MAY_STOP = (
    "or stop its process, once the command below says that it may be stopped: every partition keeps min.insync.replicas"
    " in-sync replicas without it; but not if it is a controller voter that the quorum needs"
)
MAY_STOP_COST = "where no in-sync replica is to spare, the next lost broker stops acks=all writes"


def _slow(health: BrokerHealth, view: PolicyView) -> SlowBroker:
    held = holds_back(health)
    reason = held.reason if held is not None else str(Reason.STORAGE_SLOW)
    check = (f"bellwether explain {_named(health, view)}",)
    repair = Remediation("repair its disk: then everything is as before", "nothing", checks=check)
    leave = Remediation(MAY_STOP, MAY_STOP_COST, (f"bellwether drain {_named(health, view)} --reason WHY --wait",))
    not_held = why_not_held(health, view.policy)
    return SlowBroker(health.spec.broker_id, reason, not_held, (repair, leave))
