"""Look up the BrokerHealth of a broker, or report which name is wrong: policy, namespace or broker id.

In: a policy's name and a broker id. Out: API objects. Called by ``explain``, ``overrides`` and ``wait``.
"""

from __future__ import annotations

from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, KubernetesClient, NotFound, Object
from bellwether.core.reasons import Reason
from bellwether.ports.errors import BellwetherError, Terminal

ANSWER_SECONDS = 3.0
"""How long a command waits for the API server, so that a person has an answer within 5 s."""


def find_policy(api: KubernetesClient, namespace: str, policy: str) -> Object:
    """Get a LeadershipPolicy. Terminal if it does not exist."""
    try:
        return api.get(POLICIES, namespace, policy)
    except NotFound:
        there = ", ".join(sorted(str(p["metadata"]["name"]) for p in api.list(POLICIES, namespace)))
        others = f"it has: {there}" if there else f"it has none: {elsewhere(api)}"
        raise Terminal(f"namespace {namespace} has no LeadershipPolicy {policy}; {others}") from None


def elsewhere(api: KubernetesClient) -> str:
    """Where policies are, as far as this account may list them, and which option names the namespace."""
    try:
        found = sorted(f"{p['metadata']['namespace']}/{p['metadata']['name']}" for p in api.list(POLICIES, None))
    except BellwetherError:
        found = []
    if not found:
        return "set --namespace"
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return f"set --namespace; there are: {', '.join(found[:10])}{more}"


def find_health(api: KubernetesClient, namespace: str, policy: str, broker: int) -> Object:
    """Get a broker's BrokerHealth. Terminal if the policy or the broker is unknown."""
    found = find_policy(api, namespace, policy)
    try:
        return api.get(BROKER_HEALTHS, namespace, object_names.broker_health(policy, broker))
    except NotFound:
        problem = trouble(found)
        ids = ", ".join(str(i) for i in sorted(h["spec"]["brokerId"] for h in healths(api, namespace, policy)))
        known = f"policy {namespace}/{policy} has no broker {broker}"
        if problem is not None:
            raise Terminal(f"{known}: {problem}") from None
        raise Terminal(f"{known}; it has: {ids or 'none yet'}") from None


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
