"""Look up the BrokerHealth of a broker, or report which name is wrong: policy, namespace or broker id.

In: a policy's name and a broker id. Out: API objects. Called by ``explain``, ``overrides`` and ``wait``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.core.listing import few
from bellwether.core.reasons import Reason
from bellwether.ports.errors import BellwetherError, Terminal

SHOWN = 10
"""How many policies or brokers an error message lists."""


class NamedPolicy(NamedTuple):
    """The policy that a command is about."""

    api: KubernetesClient
    namespace: str
    name: str


def find_policy(api: KubernetesClient, namespace: str, policy: str) -> Object:
    """Get a LeadershipPolicy. Terminal if it does not exist."""
    try:
        return api.get(POLICIES, namespace, policy)
    except NotFound:
        there = policy_names(api, namespace)
        others = f"it has: {few(there, SHOWN)}" if there else f"it has none: {elsewhere(api)}"
        raise Terminal(f"namespace {namespace} has no LeadershipPolicy {policy}; {others}") from None


def only_policy(api: KubernetesClient, namespace: str) -> str:
    """Name of the only policy of a namespace. Terminal if there is none, or more than one."""
    found = policy_names(api, namespace)
    if not found:
        raise Terminal(f"namespace {namespace} has no LeadershipPolicy: {elsewhere(api)}")
    if len(found) > 1:
        raise Terminal(f"namespace {namespace} has several policies: set --policy to one of {few(found, SHOWN)}")
    return found[0]


def policy_names(api: KubernetesClient, namespace: str) -> list[str]:
    """Names of the policies of a namespace. Terminal without the CRD."""
    return sorted(str(p["metadata"]["name"]) for p in policies(api, namespace))


def policies(api: KubernetesClient, namespace: str | None) -> list[Object]:
    """The policies of a namespace, or (None) of all. Terminal without the CRD."""
    try:
        return api.list(POLICIES, namespace)
    except NotFound:
        raise Terminal(
            "this Kubernetes API has no LeadershipPolicies: check the context, or install the CRDs with the chart"
        ) from None


def elsewhere(api: KubernetesClient) -> str:
    """Where policies are, as far as this account may list them, and which option names the namespace."""
    try:
        found = sorted(f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in api.list(POLICIES, None))
    except BellwetherError:
        found = []
    if not found:
        return "set --namespace"
    return f"set --namespace; there are: {few(found, SHOWN)}"


def find_health(api: KubernetesClient, namespace: str, policy: str, broker: int) -> Object:
    """Get a broker's BrokerHealth. Terminal if the policy or the broker is unknown."""
    found = find_policy(api, namespace, policy)
    try:
        return api.get(BROKER_HEALTHS, namespace, object_names.broker_health(policy, broker))
    except NotFound:
        problem = trouble(found)
        ids = few(sorted(h["spec"]["brokerId"] for h in healths(api, namespace, policy)), SHOWN)
        known = f"policy {namespace}/{policy} has no broker {broker}"
        if problem is not None:
            raise Terminal(f"{known}: {problem}") from None
        raise Terminal(f"{known}; it has: {ids or 'none yet'}") from None


def choose_brokers(
    api: KubernetesClient, namespace: str, policy: str, brokers: Iterable[int], racks: Iterable[str]
) -> tuple[int, ...]:
    """The brokers with these ids, and all of these racks, each once. Terminal if one of them is unknown."""
    chosen = dict.fromkeys(brokers)
    for broker in chosen:
        find_health(api, namespace, policy, broker)
    if not racks:
        return tuple(chosen)
    found: dict[str, list[int]] = {}
    for health in healths(api, namespace, policy):
        rack = (health.get("status") or {}).get("rack")
        if rack:
            found.setdefault(str(rack), []).append(int(health["spec"]["brokerId"]))
    for rack in racks:
        if rack not in found:
            find_policy(api, namespace, policy)
            known = ", ".join(sorted(found)) or "none yet"
            raise Terminal(f"policy {namespace}/{policy} has no broker in rack {rack}; its racks: {known}")
        chosen |= dict.fromkeys(sorted(found[rack]))
    return tuple(chosen)


def healths(api: KubernetesClient, namespace: str, policy: str) -> list[Object]:
    """List all BrokerHealths of a policy."""
    return api.list(BROKER_HEALTHS, namespace, {object_names.POLICY_LABEL: object_names.legal(policy)})


def trouble(policy: Object) -> str | None:
    """Why a policy is not reconciled, from its conditions; None if it is.

    One that is reconciled and cannot do its work is Connected and not Ready.
    """
    ready, connected = condition(policy, "Ready"), condition(policy, "Connected") or {}
    if ready is None:
        return "the policy was never reconciled: check that an operator is running and watches this namespace"
    reconciled = connected.get("status") == "True" and ready.get("reason") != Reason.CRD_OUTDATED
    if ready["status"] == "True" or reconciled:
        return None
    return f"the policy is not Ready: {ready.get('reason')}: {ready.get('message')}"


def condition(body: Object, type_: str) -> dict[str, Any] | None:
    """A condition of an object's status; None if it is not set."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == type_), None)
