"""Broker pods as Strimzi makes them, created on an API server, which may add sidecars to them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import yaml

from bellwether.adapters.kubernetes.api_client import PODS, KubernetesClient, Resource, connect
from realparts.apiserver import ApiServer
from waiting import limit, until

INJECTED = {
    "inject": True,
    "accounts": [{"name": "orders-kafka", "policy": "orders"}],
    "podSelector": {"strimzi.io/broker-role": "true"},
    "dataVolumes": [{"name": "data-0"}],
}
"""Chart values that inject sidecars into these pods."""

_CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1001,
    "seccompProfile": {"type": "RuntimeDefault"},
}


TWO_KINDS = {
    **INJECTED,
    "accounts": [
        {"name": "orders-kafka", "policy": "orders"},
        {
            "name": "pay-kafka",
            "policy": "payments",
            "dataVolumes": [{"name": "data-0"}, {"name": "data-1", "directory": "/srv/kafka-1"}],
            "runAsUser": 1001,
            "externalPort": 9095,
            "ignoredNetworks": [],
            "resources": {"requests": {"memory": "128Mi"}},
        },
    ],
    "ignoredNetworks": ["10.0.0.0/8"],
}
"""As ``INJECTED``, for a second cluster as well, whose brokers have two volumes, another user, port and size."""


def a_broker(name: str, account: str = "orders-kafka", volumes: Sequence[str] = ("data-0",)) -> dict[str, Any]:
    """A pod as Strimzi makes it, as far as it matters here: each container is confined, the pod itself is not."""
    mounts = [{"name": volume, "mountPath": f"/var/lib/kafka/{volume}"} for volume in volumes]
    probe = {"exec": {"command": ["/opt/kafka/kafka_liveness.sh"]}, "initialDelaySeconds": 15, "timeoutSeconds": 5}
    kafka = {
        "name": "kafka",
        "image": "kafka",
        "securityContext": _CONFINED,
        "volumeMounts": mounts,
        "livenessProbe": probe,
    }
    labels = {"strimzi.io/cluster": "orders", "strimzi.io/broker-role": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "serviceAccountName": account,
            "containers": [kafka],
            "volumes": [{"name": volume, "emptyDir": {}} for volume in volumes],
        },
    }


def a_plain_broker(name: str, account: str = "orders-kafka") -> dict[str, Any]:
    """A pod of a StatefulSet of one's own: the user is the pod's, and an exporter comes before the broker."""
    pod = a_broker(name, account)
    (kafka,) = pod["spec"]["containers"]
    confined = {key: value for key, value in _CONFINED.items() if key != "runAsUser"}
    probe = {"tcpSocket": {"port": 9092}, "periodSeconds": 10}
    exporter = {"name": "exporter", "image": "exporter", "securityContext": confined, "livenessProbe": probe}
    grouped = {**confined, "runAsGroup": 2000}
    broker = {**kafka, "name": "broker", "securityContext": grouped, "livenessProbe": probe}
    pod["spec"] |= {"containers": [exporter, broker], "securityContext": {"runAsUser": 1000}}
    return pod


def quarantinable(pod: dict[str, Any]) -> tuple[bool, tuple[int, int | None], dict[str, int]]:
    """Of a pod with an agent: whether it shares processes, the agent's user and group, how long probes may fail."""
    spec = pod["spec"]
    (agent,) = [c for c in spec["containers"] if c["name"] == "bellwether-quarantine-agent"]
    probes = {c["name"]: c["livenessProbe"] for c in spec["containers"] if "livenessProbe" in c}
    tolerated = {name: probe["periodSeconds"] * probe["failureThreshold"] for name, probe in probes.items()}
    context = agent["securityContext"]
    return spec.get("shareProcessNamespace", False), (context["runAsUser"], context.get("runAsGroup")), tolerated


@functools.cache
def _connected(server: ApiServer) -> KubernetesClient:
    """kubectl would take a hundred times the CPU time, and tests ask until something is so."""
    return connect(server.kubeconfig).with_timeout(limit(60))


# The client has no option for a dry run.
_DRY_RUN = Resource(PODS.prefix, f"{PODS.plural}?dryRun=All", PODS.api_version, PODS.kind)


def created(server: ApiServer, namespace: str, pod: dict[str, Any], resource: Resource = PODS) -> dict[str, Any]:
    """The pod as the API server made it. Raises Terminal where it is refused."""
    return _connected(server).create(resource, namespace, pod)


def dry_run(server: ApiServer, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as the API server would make it. Raises Terminal where it would be refused."""
    return created(server, namespace, pod, _DRY_RUN)


def until_added(server: ApiServer, namespace: str, containers: int) -> dict[str, Any]:
    """A broker's pod, once admission makes it one with so many containers."""
    return until(
        lambda: dry_run(server, namespace, a_broker("orders-brokers-3")),
        60,
        so=lambda pod: len(pod["spec"]["containers"]) == containers,
        every=0.5,
    )


def without_defaults(found: Any, like: Any) -> Any:
    """Of what the API server has, what is of the same keys as what was asked for."""
    if isinstance(like, dict):
        return {key: without_defaults(found.get(key), value) for key, value in like.items()}
    if isinstance(like, list) and isinstance(found, list) and len(found) == len(like):
        return [without_defaults(one, other) for one, other in zip(found, like, strict=True)]
    return found


def pasted(objects: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """The containers that a rendered chart has ready to paste, under a key."""
    (held,) = [o for o in objects if o["kind"] == "ConfigMap" and o["metadata"]["name"].endswith("-sidecars")]
    containers: list[dict[str, Any]] = yaml.safe_load(held["data"][key])
    return containers


def added(pod: dict[str, Any], like: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sidecars of a pod, as far as ``like`` says how they should be."""
    return [without_defaults(one, other) for one, other in zip(pod["spec"]["containers"][1:], like, strict=True)]
