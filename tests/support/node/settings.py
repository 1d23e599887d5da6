"""The configuration files of the node's programs, as pure functions. In: places and addresses. Out: texts.

Called by ``daemons``. What is not set is the program's own default.
"""

from __future__ import annotations

import json
from pathlib import Path

from node.addresses import BRIDGE, DNS_SERVICE, DOMAIN, FIRST_POD, PODS
from node.machine import PLUGINS
from node.places import CGROUP, CONTAINERD_SOCKET, Places

PAUSE_IMAGE = "docker.io/bellwether-node/pause:1"


def containerd(places: Places, snapshotter: str) -> str:
    """containerd's: everything in the node's folder, groups by path, no score that wants more rights than we have."""
    runtime = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc'
    return f"""version = 2
root = "{places.containerd}"
state = "{CONTAINERD_SOCKET.parent}"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"
default_runtime_name = "runc"
{runtime}]
runtime_type = "io.containerd.runc.v2"
{runtime}.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{network_folder(places)}"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{registries(places)}"
"""


def registries(places: Places) -> Path:
    """Where containerd finds, at each pull, the mirror of a registry."""
    return places.settings / "registries"


def network_folder(places: Places) -> Path:
    """Where containerd finds the pods' network."""
    return places.settings / "cni"


def pod_network() -> str:
    """The pods' network: one bridge, addresses counted up, no way out."""
    ranges = [[{"subnet": PODS, "rangeStart": FIRST_POD}]]
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]},
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}, indent=2)


def kubelet(places: Places, ca: Path) -> str:
    """The kubelet's (JSON is YAML)."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(ca)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "clusterDNS": [DNS_SERVICE],
            "clusterDomain": DOMAIN,
            "resolvConf": "",
            # The whole machine's groups are not ours to order.
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "cgroupRoot": f"/{CGROUP}",
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "oomScoreAdj": 0,
            "failSwapOn": False,
            # No registry is near: a collected image cannot be had again. A full disk is its owner's affair.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
            "podLogsDir": "/var/log/pods",
            "volumePluginDir": str(places.kubelet / "plugins-of-volumes"),
            "serializeImagePulls": False,
            "maxPods": 100,
        },
        indent=2,
    )
