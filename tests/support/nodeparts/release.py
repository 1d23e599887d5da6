"""Bellwether as its chart installs it on the node. In: values. Out: a release to install, upgrade and look at.

Helm is the real one, the chart the one in this tree. Called by the tests on a node.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bellwether import __version__
from node.kubectl import Kubectl, KubectlFailed
from realparts.helm import Helm
from waiting import limit

CHART = Path(__file__).resolve().parents[3] / "helm" / "bellwether"
IMAGE = f"docker.io/library/bellwether:{__version__}"
NAME = NAMESPACE = "bellwether"
POLICY = "main"
ROLLOUT_SECONDS = 180
UNINSTALL_SECONDS = 240
METRICS_PORT = 9464
ACTING = re.compile(r"^bellwether_operator_leading\{.*\} 1\.0$", re.MULTILINE)
VANTAGES = ("zone-a", "zone-b")
SPARK_IMAGE = "docker.io/library/bellwether-spark"
USER = 10001
"""Whom the images run as."""
HISTORY = "/var/lib/bellwether/history"
HISTORY_CLAIM = "history"


class Release:
    """One release in a namespace of its own, under Pod Security's strictest rules."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        """Nothing is installed yet; the folder is for Helm's own files."""
        self.kubectl = kubectl
        self._helm = Helm(folder, kubectl.kubeconfig)

    def prepare(self, history: Path) -> None:
        """Make the namespace, and in it a claim for the history of loads, which lies in that folder of the host."""
        history.mkdir(parents=True, exist_ok=True)
        os.chown(history, USER, USER)
        enforce = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = {"name": NAMESPACE, "labels": enforce}
        self.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, *_claim(history)])

    def install(self, values: Mapping[str, Any], *options: str) -> None:
        """Install it, or upgrade it where it is installed. Raises HelmFailed."""
        given = self._helm.given(values)
        command: list[str | Path] = ["upgrade", "--install", NAME, CHART, "--namespace", NAMESPACE, *given, *options]
        self._helm.run(*command, timeout_seconds=ROLLOUT_SECONDS + 10)

    def test(self) -> str:
        """What ``helm test`` says of it. Raises HelmFailed when it fails."""
        return self._helm.run("test", NAME, "--namespace", NAMESPACE, timeout_seconds=ROLLOUT_SECONDS)

    def uninstall(self) -> None:
        """Take it away, its hooks first, and wait until its pods are gone. Raises HelmFailed."""
        wait = ["--wait", "--timeout", f"{UNINSTALL_SECONDS}s"]
        self._helm.run("uninstall", NAME, "--namespace", NAMESPACE, *wait, timeout_seconds=2 * UNINSTALL_SECONDS)

    def roll_out(self) -> None:
        """Wait until every Deployment of the release runs as it should."""
        for name in self.kubectl("get", "deployments", "-n", NAMESPACE, "-o", "name").split():
            wait = ["rollout", "status", name, "-n", NAMESPACE, f"--timeout={limit(ROLLOUT_SECONDS):.0f}s"]
            self.kubectl(*wait, timeout_seconds=ROLLOUT_SECONDS + 10)

    def sidecars(self) -> list[Mapping[str, Any]]:
        """The containers that the chart has ready for brokers' pods."""
        found = self.kubectl.get("configmap", f"{NAME}-sidecars", "--namespace", NAMESPACE)
        (containers,) = found["data"].values()
        return list(yaml.safe_load(containers))

    def pods(self, *, component: str = "") -> list[Mapping[str, Any]]:
        """The release's pods, those of one component if it is named; completed hook pods are left out."""
        wanted = f"app.kubernetes.io/component{f'={component}' if component else '!=hook'}"
        selector = f"app.kubernetes.io/instance={NAME},{wanted}"
        return list(self.kubectl.get("pods", "--namespace", NAMESPACE, "--selector", selector))

    def acting(self) -> str:
        """The operator's pod that holds the Lease of the brokers' cluster, as its metrics say; empty if none does."""
        for pod in self.pods(component="operator"):
            name = pod["metadata"]["name"]
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:{METRICS_PORT}/proxy/metrics"
            with contextlib.suppress(KubectlFailed):  # it may be ending
                if ACTING.search(self.kubectl("get", "--raw", path)):
                    return str(name)
        return ""

    def healths(self) -> list[Mapping[str, Any]]:
        """What is said of each broker."""
        return list(self.kubectl.get("brokerhealths", "--namespace", NAMESPACE))

    def verdicts(self) -> dict[int, str]:
        """Each broker's verdict."""
        verdicts = {one["spec"]["brokerId"]: one.get("status", {}).get("verdict") for one in self.healths()}
        return {broker: verdict["state"] if verdict else "" for broker, verdict in verdicts.items()}

    def displaced(self) -> int | None:
        """How many partitions are not in the order that they had before; None while the policy says nothing."""
        count: int | None = self.policy().get("status", {}).get("displacedPartitions")
        return count

    def policy(self) -> Mapping[str, Any]:
        """The policy."""
        found: Mapping[str, Any] = self.kubectl.get("leadershippolicy", POLICY, "--namespace", NAMESPACE)
        return found


def values(internal: Sequence[str], brokers_account: str, brokers_namespace: str) -> dict[str, Any]:
    """What a platform team would set: an enforcing policy, probers, a sampler, sidecars for the brokers' account."""
    volume = {"name": "history", "persistentVolumeClaim": {"claimName": HISTORY_CLAIM}}
    return {
        "image": {"registry": "", "repository": "bellwether", "tag": __version__, "pullPolicy": "Never"},
        "operator": {
            "replicas": 2,
            "extraVolumes": [volume],
            "extraVolumeMounts": [{"name": "history", "mountPath": HISTORY}],
        },
        "spark": {"enabled": True, "image": {"repository": SPARK_IMAGE}},
        # The sampler's own, which it writes to /tmp; a test configures the one of its plans.
        "load": {"stores": {"default": {"namespaces": [NAMESPACE], "uri": "/tmp/loads"}}},
        "probers": [{"kind": "Reachability", "vantage": vantage} for vantage in VANTAGES],
        "sidecars": {"accounts": [{"name": brokers_account, "namespace": brokers_namespace, "policy": POLICY}]},
        "sampler": {"enabled": True, "periodSeconds": 10},
        "policies": [
            {
                "name": POLICY,
                "spec": {
                    "mode": "Enforce",
                    "kafka": {"bootstrapServers": list(internal)},
                    "detection": {"externalReachability": {"vantages": list(VANTAGES)}},
                    # Soon, and however often: the tests break the same brokers again and again.
                    "promotion": {"stabilizationSeconds": 10, "maxStabilizationSeconds": 0},
                },
            }
        ],
    }


def _claim(folder: Path) -> list[Mapping[str, Any]]:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": str(folder), "type": "Directory"},
        "claimRef": {"namespace": NAMESPACE, "name": HISTORY_CLAIM},
    }
    claim = {"name": HISTORY_CLAIM, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": HISTORY_CLAIM}, "spec": volume},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim, "spec": spec},
    ]
