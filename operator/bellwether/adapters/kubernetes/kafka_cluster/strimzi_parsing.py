"""Parse Strimzi's objects into values of the core. Pure: API objects in, values out; absent fields are None or empty.

Versions ``v1`` and ``v1beta2`` of ``kafka.strimzi.io`` are equal in the fields that are read here. Called by
``strimzi_discovery``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.core.model.broker_identity import Pod, ordinal
from bellwether.core.model.strimzi import Listener

CLUSTER_LABEL = "strimzi.io/cluster"
BROKER_LABEL = "strimzi.io/broker-role"
PAUSE_ANNOTATION = "strimzi.io/pause-reconciliation"
SHARING_ANNOTATION = "bellwether.dev/policies-from"
EVERY_NAMESPACE = "*"


def listeners(kafka: Object) -> tuple[Listener, ...]:
    """Listeners of a Kafka resource in its order, with their status."""
    wanted = _within(kafka, "spec", "kafka").get("listeners") or ()
    published = {one.get("name") or one.get("type"): one for one in _within(kafka, "status").get("listeners") or ()}
    return tuple(_listener(one, published.get(one.get("name"), {})) for one in wanted)


def _listener(wanted: Mapping[str, Any], published: Mapping[str, Any]) -> Listener:
    addresses = str(published.get("bootstrapServers") or "").split(",")
    return Listener(
        name=str(wanted.get("name", "")),
        port=int(wanted.get("port") or 0),
        type=str(wanted.get("type", "")),
        tls=bool(wanted.get("tls")),
        authentication=str(_within(wanted, "authentication").get("type") or ""),
        own_certificate=bool(_within(wanted, "configuration").get("brokerCertChainAndKey")),
        bootstrap=tuple(address.strip() for address in addresses if address.strip()),
        certificates=tuple(published.get("certificates") or ()),
    )


@dataclass(frozen=True, slots=True)
class User:
    """A KafkaUser: its authentication, user name and Secret; the Secret is empty until Strimzi has created it."""

    name: str
    cluster: str
    authentication: str
    username: str
    secret: str


def user(body: Object) -> User:
    """Parse a KafkaUser."""
    metadata, status = body["metadata"], _within(body, "status")
    return User(
        name=str(metadata["name"]),
        cluster=str((metadata.get("labels") or {}).get(CLUSTER_LABEL, "")),
        authentication=str(_within(body, "spec", "authentication").get("type") or ""),
        username=str(status.get("username") or metadata["name"]),
        secret=str(status.get("secret") or ""),
    )


def admits(kafka: Object, namespace: str) -> bool:
    """Whether policies of that namespace may use the cluster: always in its own, in others if the annotation permits
    it.
    """
    metadata = kafka["metadata"]
    said = (metadata.get("annotations") or {}).get(SHARING_ANNOTATION, "")
    named = {one.strip() for one in said.split(",")}
    return namespace == metadata.get("namespace") or bool(named & {namespace, EVERY_NAMESPACE})


def paused(kafka: Object) -> bool:
    """Whether Strimzi's reconciliation of the cluster is paused."""
    return str((kafka["metadata"].get("annotations") or {}).get(PAUSE_ANNOTATION, "")).lower() == "true"


def rebalancing(rebalances: Iterable[Object]) -> tuple[str, ...]:
    """Names of the KafkaRebalances that are moving replicas or leaders; their state is a condition type."""
    return tuple(sorted(str(one["metadata"]["name"]) for one in rebalances if "Rebalancing" in _true(one)))


def pods(bodies: Iterable[Object]) -> dict[int, Pod]:
    """Broker pods by broker; Strimzi ends a pod's name in the node id."""
    found = {}
    for body in bodies:
        metadata = body["metadata"]
        broker = ordinal(str(metadata["name"]))
        if broker is not None and (metadata.get("labels") or {}).get(BROKER_LABEL) == "true":
            found[broker] = Pod(str(metadata["name"]), "Ready" in _true(body))
    return dict(sorted(found.items()))


def not_ready_message(body: Object) -> str:
    """Why Strimzi reports an object as NotReady; empty if it does not."""
    conditions = _within(body, "status").get("conditions") or ()
    bad = [c for c in conditions if c.get("type") == "NotReady" and c.get("status") == "True"]
    return next((f"{c.get('reason', 'NotReady')}: {c.get('message', '')}".rstrip(": ") for c in bad), "")


def _true(body: Object) -> set[str]:
    """Types of the conditions that are True."""
    conditions = _within(body, "status").get("conditions") or ()
    return {str(c.get("type")) for c in conditions if c.get("status") == "True"}


def _within(body: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """A nested object; empty if there is none."""
    for step in path:
        body = body.get(step) or {}
    return body
