"""All policies of all namespaces, one line each, for ``bellwether status --all-namespaces``."""

from __future__ import annotations

from collections.abc import Sequence

from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.status_conditions import condition
from bellwether.cli.leadership import broker_lookup

HEAD = ("NAMESPACE", "POLICY", "MODE", "READY", "REASON", "SICK", "DOWN", "UNKNOWN", "DEMOTED", "AT-RISK")


def all_policies(api: KubernetesClient) -> list[LeadershipPolicy]:
    """All policies, by namespace and name. Raises what the client raises."""
    found = (LeadershipPolicy.read(body) for body in broker_lookup.policies(api, None))
    return sorted(found, key=lambda policy: (policy.metadata.namespace, policy.metadata.name))


def rows(policies: Sequence[LeadershipPolicy]) -> list[tuple[str, ...]]:
    """One row for each policy; what its operator has not reported yet is empty."""
    return [_row(policy) for policy in policies]


def _row(policy: LeadershipPolicy) -> tuple[str, ...]:
    status, brokers = policy.status, policy.status.brokers
    ready, at_risk = condition(status.conditions, "Ready"), status.partitions_at_risk
    counts = ("",) * 4
    if brokers is not None:
        counts = (str(brokers.sick), str(brokers.down), str(brokers.unknown), str(brokers.demoted))
    return (
        policy.metadata.namespace,
        policy.metadata.name,
        str(status.mode or policy.spec.mode),
        str(ready.status) if ready is not None else "Unknown",
        ready.reason if ready is not None else "",
        *counts,
        str(at_risk.total) if at_risk is not None else "",
    )
