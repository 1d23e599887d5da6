"""Look up a broker's BrokerHealth for a command, or name the wrong policy, cluster or broker id.

In: a policy's and a broker's names. Out: objects of the API. Called by ``explain``, ``overrides`` and ``wait``.
"""

from __future__ import annotations

from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, KubernetesClient, NotFound, Object
from bellwether.core.reasons import Reason
from bellwether.ports.errors import Terminal

# A sick broker leads on, and the policy is reconciled all the same.
_RECONCILED = frozenset({str(r) for r in (Reason.CAP_REACHED, Reason.SYSTEMIC_CAUSE, Reason.CAPACITY_REACHED)})


def find_policy(api: KubernetesClient, namespace: str, policy: str) -> Object:
    """A LeadershipPolicy. Terminal when there is none of that name."""
    try:
        return api.get(POLICIES, namespace, policy)
    except NotFound:
        there = ", ".join(sorted(str(p["metadata"]["name"]) for p in api.list(POLICIES, namespace))) or "none"
        raise Terminal(f"there is no LeadershipPolicy {policy} in namespace {namespace}; there is: {there}") from None


def find_health(api: KubernetesClient, namespace: str, policy: str, broker: int) -> Object:
    """A broker's BrokerHealth. Terminal when the policy, or the broker, is unknown, or its cluster not seen yet."""
    found = find_policy(api, namespace, policy)
    try:
        return api.get(BROKER_HEALTHS, namespace, object_names.broker_health(policy, broker))
    except NotFound:
        amiss = trouble(found)
        ids = ", ".join(str(i) for i in sorted(h["spec"]["brokerId"] for h in healths(api, namespace, policy)))
        known = f"policy {namespace}/{policy} knows no broker {broker}"
        if amiss is not None:
            raise Terminal(f"{known}: {amiss}") from None
        raise Terminal(f"{known}; it knows: {ids or 'none yet'}") from None


def healths(api: KubernetesClient, namespace: str, policy: str) -> list[Object]:
    """All BrokerHealths of a policy."""
    return api.list(BROKER_HEALTHS, namespace, {object_names.POLICY_LABEL: object_names.legal(policy)})


def trouble(policy: Object) -> str | None:
    """Why a policy's operator takes no turns, as its status says; None when it takes them."""
    ready = condition(policy, "Ready")
    if ready is None:
        return "no operator has looked at the policy yet: is one running, and does it watch this namespace?"
    if ready["status"] == "True" or ready.get("reason") in _RECONCILED:
        return None
    return f"the policy is not Ready: {ready.get('reason')}: {ready.get('message')}"


def condition(body: Object, type_: str) -> dict[str, Any] | None:
    """One condition of an object's status; None when it was not given yet."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == type_), None)
