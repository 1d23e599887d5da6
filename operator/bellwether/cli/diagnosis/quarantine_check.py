"""What is missing so that quarantine could hold each broker, with the remedy. Called by ``policy_cluster``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.adapters.kubernetes.sidecar_injection import AGENT, PROBER, Liveness
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.doctor.cause_remediation import few_brokers
from bellwether.core.doctor.unhealthy_leaders import QuarantineCheck
from bellwether.core.listing import NAMED, few
from bellwether.core.model.quarantine_order import RETURN_SECONDS
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.core.settings.policy import QuarantineMode
from bellwether.core.signals import Reading, SignalType

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
        yield f"{few(sorted(names), NAMED)}: {text}"
