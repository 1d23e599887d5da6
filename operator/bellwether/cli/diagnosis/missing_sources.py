"""Sources of signals that do not report, and how to start them: the remedy of ``NoEvidence`` where they are known.

In: BrokerHealth objects, the vantages that the policy names, and pods. Out: text. Called by ``status`` and ``explain``,
and by ``doctor`` for what quarantine needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.adapters.kubernetes.sidecar_injection import AGENT, PROBER, Liveness
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.detection.findings import NOT_REPORTED
from bellwether.core.doctor.cause_remediation import few_brokers
from bellwether.core.doctor.judged_brokers import QuarantineCheck
from bellwether.core.model.quarantine_order import RETURN_SECONDS
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import ON_BROKER_HOST, QUARANTINE_AGENT
from bellwether.core.settings.policy import QuarantineMode
from bellwether.core.signals import Reading, SignalType

SOURCES_NAMED = 5
VANTAGES = "spec.detection.externalReachability.vantages"
_DEPLOYMENTS = (
    "kubectl get deploy -A -l app.kubernetes.io/part-of=bellwether lists the probers; scale one without replicas to 1,"
    " and read the log of one that is not ready"
)
_SIDECARS = "kubectl get pods -n NAMESPACE shows whether the containers of the broker's pod are ready"


class MissingSource(NamedTuple):
    """A source of one type of signal that does not report. ``new``: it has no report at all, the policy names it."""

    type: str
    source: str
    new: bool = False


def missing_sources(health: BrokerHealth, vantages: Iterable[str]) -> list[MissingSource]:
    """Sources without which the broker cannot be judged; none if it can be, or if they are not known.

    ``vantages`` are those that the policy names, of which one may never have reported.
    """
    verdict = health.status.verdict
    if verdict is None or verdict.reason != Reason.NO_EVIDENCE:
        return []
    found = [MissingSource(e.type, e.source) for e in verdict.evidence if NOT_REPORTED in e.ignored_reason]
    reported = {e.source for e in verdict.evidence if e.type == SignalType.EXTERNAL_REACHABILITY}
    return found + [
        MissingSource(SignalType.EXTERNAL_REACHABILITY, v, new=True) for v in sorted({*vantages} - reported)
    ]


def named_vantages(policy: LeadershipPolicy) -> tuple[str, ...]:
    """Vantages that a policy names; none if reachability is not judged."""
    reachability = policy.spec.detection.external_reachability.to_core()
    return reachability.vantages if reachability.enabled else ()


def start_sources(missing: Iterable[MissingSource]) -> str:
    """What to start, by name, and where to look; empty for none."""
    types: dict[str, list[str]] = {}
    found = dict.fromkeys(missing)
    for one in found:
        types.setdefault(one.source, []).append(one.type)
    deployed = {s: t for s, t in types.items() if not any(one in ON_BROKER_HOST for one in t)}
    sidecars = {s: t for s, t in types.items() if s not in deployed}
    said = [(deployed, "start the prober of", _DEPLOYMENTS), (sidecars, "start the sidecar of", _SIDECARS)]
    texts = [f"{verb} {_named(sources)}: {look}" for sources, verb, look in said if sources]
    if new := sorted(one.source for one in found if one.new):
        texts.append(f"if no prober is to have the name {' or '.join(new)}, correct {VANTAGES}")
    return "; ".join(texts)


def _named(sources: dict[str, list[str]]) -> str:
    texts = [f"{source} ({', '.join(types)})" for source, types in list(sources.items())[:SOURCES_NAMED]]
    return ", ".join(texts) + (f" and {len(sources) - len(texts)} more" if len(sources) > len(texts) else "")


_NO_AGENT = (
    "no quarantine agent reports: set sidecars.quarantineAgent.enabled of the chart and let the pods be created again"
    " (pods without the volumes of sidecars.dataVolumes get none), or run bellwether quarantine-agent next to it"
)
_NO_PROBER = "no storage prober reports, so recovery would not be seen: run bellwether probe storage next to the broker"


def quarantine_check(
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


def with_agent(pods: Iterable[Object], policy: str) -> list[Object]:
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
        more = f" and {len(names) - SOURCES_NAMED} more" if len(names) > SOURCES_NAMED else ""
        yield f"{', '.join(sorted(names)[:SOURCES_NAMED])}{more}: {text}"
