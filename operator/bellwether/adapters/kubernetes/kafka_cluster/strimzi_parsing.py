"""Parse Strimzi's objects into values of the core. Pure: bodies of the API in, values out; absent fields are absence.

Versions ``v1`` and ``v1beta2`` of ``kafka.strimzi.io`` look alike as far as they are read here. Called by
``strimzi_discovery``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.core.model.strimzi import Listener, Pod

CLUSTER_LABEL = "strimzi.io/cluster"
BROKER_LABEL = "strimzi.io/broker-role"
PAUSE_ANNOTATION = "strimzi.io/pause-reconciliation"
SHARING_ANNOTATION = "bellwether.dev/policies-from"
EVERY_NAMESPACE = "*"

_NODE_ID = re.compile(r"-(\d+)$")


def listeners(kafka: Object) -> tuple[Listener, ...]:
    """The listeners of a Kafka resource in its own order, with what its status publishes of each."""
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
    """A KafkaUser: how it names itself, as whom, and the Secret with what that takes; empty until Strimzi made it."""

    name: str
    cluster: str
    authentication: str
    username: str
    secret: str


def user(body: Object) -> User:
    """What a KafkaUser says."""
    metadata, status = body["metadata"], _within(body, "status")
    return User(
        name=str(metadata["name"]),
        cluster=str((metadata.get("labels") or {}).get(CLUSTER_LABEL, "")),
        authentication=str(_within(body, "spec", "authentication").get("type") or ""),
        username=str(status.get("username") or metadata["name"]),
        secret=str(status.get("secret") or ""),
    )


def admits(kafka: Object, namespace: str) -> bool:
    """Whether policies of that namespace may use the cluster: those of its own always, others where it says so."""
    metadata = kafka["metadata"]
    said = (metadata.get("annotations") or {}).get(SHARING_ANNOTATION, "")
    named = {one.strip() for one in said.split(",")}
    return namespace == metadata.get("namespace") or bool(named & {namespace, EVERY_NAMESPACE})


def paused(kafka: Object) -> bool:
    """Whether somebody has told Strimzi to leave the cluster alone."""
    return str((kafka["metadata"].get("annotations") or {}).get(PAUSE_ANNOTATION, "")).lower() == "true"


def rebalancing(rebalances: Iterable[Object]) -> tuple[str, ...]:
    """The names of the KafkaRebalances that move replicas or leaders now; their condition's type is their state."""
    return tuple(sorted(str(one["metadata"]["name"]) for one in rebalances if "Rebalancing" in _true(one)))


def pods(bodies: Iterable[Object]) -> dict[int, Pod]:
    """The brokers' pods, by broker; a pod's name ends in the id of its node."""
    found = {}
    for body in bodies:
        metadata = body["metadata"]
        number = _NODE_ID.search(str(metadata["name"]))
        if number is not None and (metadata.get("labels") or {}).get(BROKER_LABEL) == "true":
            found[int(number[1])] = Pod(str(metadata["name"]), "Ready" in _true(body))
    return dict(sorted(found.items()))


def amiss(body: Object) -> str:
    """Why Strimzi has not finished with an object, in its own words; empty where it says nothing."""
    conditions = _within(body, "status").get("conditions") or ()
    bad = [c for c in conditions if c.get("type") == "NotReady" and c.get("status") == "True"]
    return next((f"{c.get('reason', 'NotReady')}: {c.get('message', '')}".rstrip(": ") for c in bad), "")


def _true(body: Object) -> set[str]:
    """The types of the conditions that hold."""
    conditions = _within(body, "status").get("conditions") or ()
    return {str(c.get("type")) for c in conditions if c.get("status") == "True"}


def _within(body: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """An object inside an object; empty where there is none."""
    for step in path:
        body = body.get(step) or {}
    return body
