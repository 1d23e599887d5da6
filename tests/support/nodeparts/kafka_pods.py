"""Kafka brokers as Kubernetes objects: a StatefulSet with volumes, and a load balancer. In: sidecars. Out: objects.

Three brokers, ids 1 to 3, each a controller too; each cluster has a namespace of its own. The internal listener is
known by the pod's name, the external one by the load balancer's address. Written as a platform team would, under Pod
Security's ``restricted``.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeparts.kafka_image import BALANCER, IMAGE, JARS, SHIM
from realparts import kafka_jars
from realparts.kafka_settings import Node, properties, render

Object = Mapping[str, Any]

ACCOUNT = "kafka"
BROKERS = (1, 2, 3)
INTERNAL, CONTROLLER, EXTERNAL = 9092, 9093, 9094
BALANCER_API = 8474
USER = 10001
DATA, METADATA, SLOW = Path("/var/lib/kafka/data"), Path("/var/lib/kafka/metadata"), Path("/slow")
CONTROL = SLOW / "control"
SLOW_DISK = {
    "LD_PRELOAD": str(SLOW / "slowdisk.so"),
    "BELLWETHER_SLOWDISK_DIRECTORY": str(DATA),
    "BELLWETHER_SLOWDISK_CONTROL": str(CONTROL),
}

# Brokers start before they have names, and come back at other addresses.
_NAMES = "-Dsun.net.inetaddr.ttl=5 -Dsun.net.inetaddr.negative.ttl=0"
_FLAGS = " ".join((*kafka_jars.FLAGS, *kafka_jars.LOGGING, _NAMES))
_START = f"""
settings=/etc/kafka/broker-${{HOSTNAME##*-}}.properties
test -f {METADATA}/meta.properties ||
    java -cp '/{JARS}/*' kafka.tools.StorageTool format --cluster-id $CLUSTER_ID --config $settings
export {" ".join(f"{name}={value}" for name, value in SLOW_DISK.items())}
exec java -Xmx256m {_FLAGS} -cp '/{JARS}/*' kafka.Kafka $settings
"""
_PREPARE = f"cp /{SHIM} {SLOW}/slowdisk.so && head -c 12 /dev/zero >{CONTROL}"
CONFINED: Object = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
POD: Object = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster by its namespace and the address of its load balancer."""

    namespace: str
    balancer: str

    @property
    def cluster_id(self) -> str:
        """Kafka's cluster id, 16 bytes of the namespace in base64."""
        return base64.urlsafe_b64encode(self.namespace.encode()[:16].ljust(16, b"-")).decode().rstrip("=")

    def host(self, broker: int) -> str:
        """A broker's name in the Kubernetes cluster."""
        return f"kafka-{broker}.kafka.{self.namespace}.svc.cluster.local"

    @property
    def internal(self) -> list[str]:
        """Bootstrap servers of clients inside."""
        return [f"{self.host(broker)}:{INTERNAL}" for broker in BROKERS]

    @property
    def external(self) -> list[str]:
        """Bootstrap servers of clients outside."""
        return [f"{self.balancer}:{external_port(broker)}" for broker in BROKERS]


MAIN = Cluster("kafka", "10.213.140.1")


def external_port(broker: int) -> int:
    """A broker's port at the load balancer."""
    return 19090 + broker


def settings(cluster: Cluster, broker: int) -> dict[str, str]:
    """A broker's server.properties."""
    node = Node(broker, Path("/unused"), CONTROLLER, INTERNAL, EXTERNAL, extra={"min.insync.replicas": "2"})
    own = {
        "controller.quorum.voters": ",".join(f"{one}@{cluster.host(one)}:{CONTROLLER}" for one in BROKERS),
        "listeners": f"INTERNAL://:{INTERNAL},EXTERNAL://:{EXTERNAL},CONTROLLER://:{CONTROLLER}",
        "advertised.listeners": (
            f"INTERNAL://{cluster.host(broker)}:{INTERNAL},EXTERNAL://{cluster.balancer}:{external_port(broker)}"
        ),
        "log.dirs": str(DATA),
        "metadata.log.dir": str(METADATA),
    }
    return {**properties(node, [node], len(BROKERS)), **own}


def namespace(cluster: Cluster) -> list[Object]:
    """The namespace, where the strictest rules for pods are enforced, and the brokers' account."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace, "labels": labels}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(cluster, ACCOUNT)},
    ]


def volumes(cluster: Cluster, folder: Path) -> list[Object]:
    """A persistent volume for each claim of each broker, in folders of the host that must exist."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume(cluster, claim, broker)},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": str(folder / volume(cluster, claim, broker)), "type": "Directory"},
                "claimRef": {"namespace": cluster.namespace, "name": f"{claim}-kafka-{broker}"},
            },
        }
        for broker in BROKERS
        for claim in ("data", "metadata")
    ]


def volume(cluster: Cluster, claim: str, broker: int) -> str:
    """Name of a broker's volume, and of its folder on the host."""
    return f"{claim}-{cluster.namespace}-{broker}"


def brokers(cluster: Cluster, sidecars: Sequence[Object] = ()) -> list[Object]:
    """The StatefulSet with its settings and its service; ``sidecars`` share each pod, its network and its volumes."""
    files = {f"broker-{broker}.properties": render(settings(cluster, broker)) for broker in BROKERS}
    selector = {"app": "kafka"}
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    ports = [{"name": "internal", "port": INTERNAL}, {"name": "external", "port": EXTERNAL}]
    named = _named(cluster, "kafka")
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": files},
        {"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": {**headless, "ports": ports}},
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": named,
            "spec": {
                "serviceName": "kafka",
                "replicas": len(BROKERS),
                "ordinals": {"start": BROKERS[0]},
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": selector}, "spec": _pod(cluster, sidecars)},
                "volumeClaimTemplates": [_claim("data"), _claim("metadata")],
            },
        },
    ]


def balancer(cluster: Cluster) -> list[Object]:
    """The load balancer: one port for each broker's external listener, at an address that outsiders reach."""
    selector = {"app": "balancer"}
    ports = [
        {"name": "api", "port": BALANCER_API},
        *({"name": f"broker-{one}", "port": external_port(one)} for one in BROKERS),
    ]
    container = {
        "name": "toxiproxy",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": [f"/{BALANCER}", "-host", "0.0.0.0", "-port", str(BALANCER_API)],  # noqa: S104 - in its own pod
        "readinessProbe": {"httpGet": {"path": "/version", "port": BALANCER_API}, "periodSeconds": 1},
        "resources": {"limits": {"memory": "128Mi"}},
        "securityContext": CONFINED,
    }
    pod = {"securityContext": POD, "containers": [container]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _named(cluster, "balancer"),
            "spec": {"clusterIP": cluster.balancer, "selector": selector, "ports": ports},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": _named(cluster, "balancer"),
            "spec": {
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": selector}, "spec": pod},
            },
        },
    ]


def _pod(cluster: Cluster, sidecars: Sequence[Object]) -> Object:
    mounts = [
        _mount("data", DATA),
        _mount("metadata", METADATA),
        _mount("slow", SLOW),
        _mount("settings", Path("/etc/kafka")),
        _mount("tmp", Path("/tmp")),
    ]
    broker = {
        "name": "kafka",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-ec", _START],
        "env": [{"name": "CLUSTER_ID", "value": cluster.cluster_id}],
        "readinessProbe": {"tcpSocket": {"port": INTERNAL}, "periodSeconds": 2},
        "resources": {"requests": {"cpu": "100m", "memory": "400Mi"}, "limits": {"memory": "900Mi"}},
        "securityContext": CONFINED,
        "volumeMounts": mounts,
    }
    prepare = {
        "name": "prepare",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-ec", _PREPARE],
        "securityContext": CONFINED,
        "volumeMounts": [_mount("slow", SLOW)],
    }
    return {
        "serviceAccountName": ACCOUNT,
        "securityContext": POD,
        "terminationGracePeriodSeconds": 30,
        "initContainers": [prepare],
        "containers": [broker, *(_on_the_same_disk(sidecar) for sidecar in sidecars)],
        "volumes": [
            {"name": "slow", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "settings", "configMap": {"name": "kafka"}},
        ],
    }


def _on_the_same_disk(sidecar: Object) -> Object:
    """What probes the broker's volume feels it slow, too: the shim is its disk."""
    mounts = sidecar.get("volumeMounts", [])
    if not any(mount["mountPath"] == str(DATA) and not mount.get("readOnly") for mount in mounts):
        return sidecar
    environment = [*sidecar.get("env", []), *({"name": name, "value": value} for name, value in SLOW_DISK.items())]
    return {**sidecar, "env": environment, "volumeMounts": [*mounts, _mount("slow", SLOW)]}


def _named(cluster: Cluster, name: str) -> Object:
    return {"name": name, "namespace": cluster.namespace}


def _mount(name: str, path: Path) -> Object:
    return {"name": name, "mountPath": str(path)}


def _claim(name: str) -> Object:
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": wanted}
