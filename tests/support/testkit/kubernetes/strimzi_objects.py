"""Objects as Strimzi leaves them in the Kubernetes API, without a Strimzi: for tests of their readers.

In: names, addresses, certificates. Out: bodies of ``kafka.strimzi.io`` and of the Secrets and pods that belong to them,
status included. The integration tests hold the same bodies against Strimzi's real definitions.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from bellwether.adapters.kubernetes.api_client import SECRETS, Object, Resource
from testkit.kubernetes.memory_api import MemoryApi

GROUP = "kafka.strimzi.io"
CLUSTER = "my-cluster"
NAMESPACE = "default"
MOMENT = "2026-01-02T03:04:05Z"
GROUPS = Resource("/apis", GROUP, "v1", "APIGroup")


def resource(plural: str, kind: str, version: str = "v1") -> Resource:
    """A kind of Strimzi's."""
    return Resource(f"/apis/{GROUP}/{version}", plural, f"{GROUP}/{version}", kind)


KAFKAS = resource("kafkas", "Kafka")
USERS = resource("kafkausers", "KafkaUser")
REBALANCES = resource("kafkarebalances", "KafkaRebalance")


def served(*versions: str) -> Object:
    """What the API server says of Strimzi's group."""
    return {"metadata": {"name": "", "namespace": ""}, "versions": [{"version": v} for v in versions]}


def listener(name: str, port: int, type_: str = "internal", *, tls: bool = True, user: str = "", **more: Any) -> Object:
    """A listener of spec.kafka.listeners; ``user`` is the kind of its authentication."""
    authentication = {"authentication": {"type": user}} if user else {}
    return {"name": name, "port": port, "type": type_, "tls": tls, **authentication, **more}


LISTENERS = (
    listener("plain", 9092, tls=False),
    listener("tls", 9093, user="scram-sha-512"),
    listener("external", 9094, "loadbalancer", user="scram-sha-512"),
)


def kafka(
    name: str = CLUSTER,
    namespace: str = NAMESPACE,
    *,
    listeners: Sequence[Object] = LISTENERS,
    bootstrap: Mapping[str, str] | None = None,
    certificates: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    conditions: Sequence[Object] | None = None,
) -> Object:
    """A Kafka resource that is Ready and publishes its listeners; ``bootstrap`` by name, by default Services' names."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": MOMENT}
    addresses = (
        {one["name"]: f"{name}-kafka-bootstrap.{namespace}.svc:{one['port']}" for one in listeners}
        if bootstrap is None
        else bootstrap
    )
    return {
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {
            "kafka": {
                "version": "4.3.1",
                "listeners": list(listeners),
                "rack": {"type": "topology-label", "topologyKey": "topology.kubernetes.io/zone"},
            },
            "entityOperator": {"topicOperator": {}, "userOperator": {}},
        },
        "status": {
            "conditions": list(conditions if conditions is not None else [ready]),
            "observedGeneration": 1,
            "listeners": [
                {
                    "name": one["name"],
                    "bootstrapServers": addresses[one["name"]],
                    **({"certificates": list(certificates)} if one["tls"] and certificates else {}),
                }
                for one in listeners
                if one["name"] in addresses
            ],
        },
    }


def not_ready(reason: str, message: str) -> Object:
    """The condition by which Strimzi says what stops it."""
    return {"type": "NotReady", "status": "True", "reason": reason, "message": message, "lastTransitionTime": MOMENT}


def kafka_user(
    name: str = "bellwether",
    kind: str = "scram-sha-512",
    *,
    namespace: str = NAMESPACE,
    cluster: str = CLUSTER,
    ready: bool = True,
    acls: Sequence[Object] = (),
) -> Object:
    """A KafkaUser; its Secret has its name once it is ready."""
    spec: Object = {"authentication": {"type": kind}} if kind else {}
    if acls:
        spec["authorization"] = {"type": "simple", "acls": list(acls)}
    conditions = [
        {"type": "Ready", "status": "True", "lastTransitionTime": MOMENT}
        if ready
        else not_ready("InvalidResourceException", "Cluster CA is missing")
    ]
    said: Object = {"conditions": conditions, "observedGeneration": 1}
    if ready and kind in ("tls", "scram-sha-512"):
        said |= {"username": f"CN={name}" if kind == "tls" else name, "secret": name}
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"strimzi.io/cluster": cluster, "bellwether.dev/purpose": "kafka"},
    }
    return {"metadata": metadata, "spec": spec, "status": said}


def secret(name: str, namespace: str = NAMESPACE, cluster: str = CLUSTER, **values: str) -> Object:
    """A Secret with Strimzi's labels; ``_`` in a key means ``.``."""
    labels = {"strimzi.io/cluster": cluster, "strimzi.io/kind": "Kafka"}
    data = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": data}


def scram_secret(password: str, name: str = "bellwether", namespace: str = NAMESPACE) -> Object:
    """The Secret of a KafkaUser with a password."""
    jaas = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{name}" password="{password}";'
    made = secret(name, namespace, password=password, sasl_jaas_config=jaas)
    made["metadata"]["labels"] |= {"strimzi.io/kind": "KafkaUser", "bellwether.dev/purpose": "kafka"}  # copied from it
    return made


def pool(name: str, ids: Sequence[int], namespace: str = NAMESPACE, cluster: str = CLUSTER) -> Object:
    """A KafkaNodePool of brokers."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"strimzi.io/cluster": cluster}},
        "spec": {
            "replicas": len(ids),
            "roles": ["broker"],
            "storage": {"type": "jbod", "volumes": [{"id": 0, "type": "persistent-claim", "size": "100Gi"}]},
        },
        "status": {"nodeIds": list(ids), "roles": ["broker"], "replicas": len(ids), "observedGeneration": 1},
    }


def pod(
    broker: int,
    pool_name: str = "brokers",
    namespace: str = NAMESPACE,
    cluster: str = CLUSTER,
    *,
    ready: bool = True,
    leads: bool = True,
) -> Object:
    """The pod of one node, with the labels and the container that Strimzi gives it."""
    name = f"{cluster}-{pool_name}-{broker}"
    labels = {
        "strimzi.io/cluster": cluster,
        "strimzi.io/kind": "Kafka",
        "strimzi.io/name": f"{cluster}-kafka",
        "strimzi.io/component-type": "kafka",
        "strimzi.io/pool-name": pool_name,
        "strimzi.io/pod-name": name,
        "strimzi.io/broker-role": str(leads).lower(),
        "strimzi.io/controller-role": "false",
    }
    claim = {"name": "data-0", "persistentVolumeClaim": {"claimName": f"data-0-{name}"}}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "containers": [
                {
                    "name": "kafka",
                    "image": "quay.example/strimzi/kafka:1.2.0-kafka-4.3.1",
                    "volumeMounts": [{"name": "data-0", "mountPath": "/var/lib/kafka/data-0"}],
                }
            ],
            "volumes": [claim],
        },
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def rebalance(name: str, state: str, namespace: str = NAMESPACE, cluster: str = CLUSTER) -> Object:
    """A KafkaRebalance; its state is the type of the condition that holds."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"strimzi.io/cluster": cluster}},
        "spec": {},
        "status": {"conditions": [{"type": state, "status": "True", "lastTransitionTime": MOMENT}]},
    }


def put_cluster(
    api: MemoryApi,
    authority: str,
    password: str,
    namespace: str = NAMESPACE,
    annotations: Mapping[str, str] | None = None,
) -> None:
    """Create a cluster as Strimzi leaves it, with its authority (PEM) and a user that has a password."""
    api.put(GROUPS, served("v1"))
    api.put(KAFKAS, kafka(namespace=namespace, annotations=annotations))
    api.put(USERS, kafka_user(namespace=namespace))
    api.put(SECRETS, scram_secret(password, namespace=namespace))
    api.put(SECRETS, secret(f"{CLUSTER}-cluster-ca-cert", namespace, ca_crt=authority))
