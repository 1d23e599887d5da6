"""Broker pods as Strimzi makes them, created on an API server, which may add sidecars to them."""

from __future__ import annotations

import json
from typing import Any

from realparts.apiserver import ApiServer

INJECTED = {
    "inject": True,
    "accounts": [{"name": "orders-kafka", "policy": "orders"}],
    "podSelector": {"strimzi.io/broker-role": "true"},
    "dataVolume": "data-0",
}
"""Chart values that inject sidecars into these pods."""

_CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1001,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def a_broker(name: str, account: str = "orders-kafka") -> dict[str, Any]:
    """A pod as Strimzi makes it, as far as it matters here: each container is confined, the pod itself is not."""
    mounts = [{"name": "data-0", "mountPath": "/var/lib/kafka/data-0"}]
    kafka = {"name": "kafka", "image": "kafka", "securityContext": _CONFINED, "volumeMounts": mounts}
    labels = {"strimzi.io/cluster": "orders", "strimzi.io/broker-role": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "serviceAccountName": account,
            "containers": [kafka],
            "volumes": [{"name": "data-0", "emptyDir": {}}],
        },
    }


def created(server: ApiServer, namespace: str, pod: dict[str, Any], *options: str) -> dict[str, Any]:
    """The pod as the API server made it."""
    text = server.kubectl("create", "-n", namespace, "-f", "-", "-o", "json", *options, stdin=json.dumps(pod))
    found: dict[str, Any] = json.loads(text)
    return found


def as_would_be_created(server: ApiServer, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as the API server would make it."""
    return created(server, namespace, pod, "--dry-run=server")


def without_defaults(found: Any, like: Any) -> Any:
    """Of what the API server has, what is of the same keys as what was asked for."""
    if isinstance(like, dict):
        return {key: without_defaults(found.get(key), value) for key, value in like.items()}
    if isinstance(like, list) and isinstance(found, list) and len(found) == len(like):
        return [without_defaults(one, other) for one, other in zip(found, like, strict=True)]
    return found
