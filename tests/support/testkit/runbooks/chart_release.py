"""The chart, rendered and applied as a release: with pods for its Deployments and for a broker, which no kubelet runs.

In: an API server, the namespace of a policy, a folder. Out: what a person finds of the release in the API, and what a
process of one of its containers needs: arguments, account, variables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.destinations import VARIABLE
from realparts.apiserver import ApiServer
from realparts.helm import Helm
from realparts.ports import LOOPBACK
from sourcetree import ROOT
from testkit.processes.sites import POLICY

HOME = "bellwether"
"""Name and namespace of the release, as on the pages."""
OPERATOR = f"{HOME}-operator"
ZONES = ("zone-a", "zone-b")
PROBERS = tuple(f"{HOME}-prober-reachability-{zone}" for zone in ZONES)
REPLICA = "7d9c5b8f4-x2k4p"
"""What ends the names of pods."""
LOAD_CONFIG = "/etc/bellwether/load.yaml"
CREDENTIALS, MISSING = "kafka-credentials", "kafka-user"
"""The Secrets that the operator may read; there is no second one."""
STRIMZI, _BROKER_ACCOUNT = "orders", "kafka"


class ChartRelease:
    """See the module. ``store`` is where load plans are."""

    def __init__(self, server: ApiServer, namespace: str, directory: Path) -> None:
        self._server = server
        self._namespace = namespace
        self.store = directory / "store"
        self.load_config = directory / "load.yaml"
        server.create_namespace(HOME)
        rendered = Helm(directory / "helm").template(ROOT / "helm" / "bellwether", self._values(), namespace=HOME)
        self._objects = [o for o in rendered if "helm.sh/hook" not in o["metadata"].get("annotations", {})]
        self.load_config.write_text(self._config_map(f"{HOME}-load")["load.yaml"])
        self.apply(*self._objects, self._broker_pod())
        for found in self._objects:
            if found["kind"] == "Deployment":
                self.apply(pod(HOME, found["metadata"]["name"], found["spec"]["template"]))

    def apply(self, *objects: Object) -> None:
        """Apply objects, each to the namespace that it names."""
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self._server.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))

    def named(self, kind: str, ending: str) -> Object:
        """The object of the chart whose name ends so. Raises StopIteration where there is none."""
        return next(o for o in self._objects if o["kind"] == kind and o["metadata"]["name"].endswith(ending))

    def container(self, deployment: str) -> Object:
        """The container of a Deployment."""
        found: Object = self.named("Deployment", deployment)["spec"]["template"]["spec"]["containers"][0]
        return found

    def command(self, deployment: str, *instead: str) -> list[str]:
        """What a container runs; of two equal options the last one counts."""
        arguments = [one.replace(LOAD_CONFIG, str(self.load_config)) for one in self.container(deployment)["args"]]
        return [sys.executable, "-m", "bellwether", *arguments, *instead]

    def variables(self, deployment: str) -> dict[str, str]:
        """Variables of a process in that container, its account's kubeconfig among them."""
        account = self.named("Deployment", deployment)["spec"]["template"]["spec"]["serviceAccountName"]
        env = self.container(deployment).get("env", ())
        variables = {one["name"]: one["value"] for one in env if "value" in one}  # the others name a pod
        return {**variables, "KUBECONFIG": str(self._server.service_account_kubeconfig(HOME, account))}

    def _values(self) -> dict[str, Any]:
        brokers = {"name": _BROKER_ACCOUNT, "policy": POLICY, "policyNamespace": self._namespace}
        return {
            "allowedDestinations": LOOPBACK[VARIABLE].split(),
            "crds": {"install": False},
            "watchNamespaces": [self._namespace],
            "rbac": {"secretNames": [CREDENTIALS, MISSING]},
            "probers": [{"kind": "Reachability", "vantage": zone} for zone in ZONES],
            "sidecars": {"quarantineAgent": {"enabled": True}, "accounts": [brokers]},
            "spark": {"enabled": True, "namespaces": [self._namespace]},
            "load": {"stores": {"default": {"namespaces": ["*"], "uri": str(self.store)}}},
            "sampler": {"enabled": True},
        }

    def _config_map(self, name: str) -> Mapping[str, str]:
        data: Mapping[str, str] = self.named("ConfigMap", name)["data"]
        return data

    def _broker_pod(self) -> Object:
        """A broker's pod with the sidecars that the chart gives to paste."""
        (sidecars,) = self._config_map(f"{HOME}-sidecars").values()
        pasted = yaml.safe_load(sidecars)
        mounted = dict.fromkeys(one["name"] for c in pasted for one in c.get("volumeMounts", ()))
        volumes = [{"name": name, "emptyDir": {}} for name in mounted]
        containers = [{"name": "kafka", "image": "kafka"}, *pasted]
        spec = {"serviceAccountName": _BROKER_ACCOUNT, "containers": containers, "volumes": volumes}
        labels = {"strimzi.io/cluster": STRIMZI}
        return pod(self._namespace, f"{STRIMZI}-brokers", {"metadata": {"labels": labels}, "spec": spec})


def pod(namespace: str, owner: str, template: Mapping[str, Any]) -> Object:
    """A pod of a template, as a controller makes it."""
    metadata = {**template["metadata"], "name": f"{owner}-{REPLICA}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
