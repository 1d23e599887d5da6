"""The chart's values that the page on Strimzi shows: the chart takes them and makes of them what the page says."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether.adapters.kubernetes.sidecar_injection import FoundInPod, answer, read_sidecars
from realparts.helm import Helm
from testkit.kubernetes import strimzi_objects

pytestmark = pytest.mark.chart

ROOT = Path(__file__).parents[3]
CHART = ROOT / "helm" / "bellwether"


def shown() -> dict[str, Any]:
    """All blocks of values on the page, as one."""
    page = "".join((ROOT / "docs" / name).read_text() for name in ("strimzi.md", "strimzi-sidecars.md"))
    blocks = re.findall(r"^( *)```yaml\n *# values\.yaml\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2, "one on what may be read, one on sidecars"
    values: dict[str, Any] = {}
    for indent, block in blocks:
        values |= yaml.safe_load(re.sub(rf"^{indent}", "", block, flags=re.MULTILINE))
    return values


def rules(objects: list[dict[str, Any]], account: str) -> set[tuple[str, str, str]]:
    """Group, resource and verb of everything that is granted to an account."""
    bound = {
        o["roleRef"]["name"]
        for o in objects
        if o["kind"].endswith("Binding") and "roleRef" in o and any(s["name"] == account for s in o["subjects"])
    }
    roles = [o for o in objects if o["kind"] in ("Role", "ClusterRole") and o["metadata"]["name"] in bound]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_operator_may_read_what_strimzi_cluster_is_found_by(tmp_path: Path) -> None:
    objects = Helm(tmp_path).template(CHART, shown(), namespace="kafka")
    granted = rules(objects, "bellwether-operator")
    strimzi = "kafka.strimzi.io"
    wanted = {(strimzi, "kafkas", "get"), (strimzi, "kafkas", "list"), (strimzi, "kafkausers", "get")}
    assert granted >= wanted | {(strimzi, "kafkarebalances", "list"), ("", "pods", "list"), ("", "secrets", "get")}
    named = {
        n
        for o in objects
        if o["kind"] in ("Role", "ClusterRole")
        for r in o["rules"]
        for n in r.get("resourceNames", ())
    }
    assert "bellwether" in named
    assert "my-cluster-cluster-ca-cert" not in named, "the CA is in the status of the Kafka resource"


def test_nothing_of_strimzis_may_be_written(tmp_path: Path) -> None:
    objects = Helm(tmp_path).template(CHART, shown(), namespace="kafka")
    verbs = {
        verb
        for o in objects
        if o["kind"] in ("Role", "ClusterRole")
        for rule in o["rules"]
        if "kafka.strimzi.io" in rule["apiGroups"]
        for verb in rule["verbs"]
    }
    assert verbs == {"get", "list"}


def test_the_sidecars_are_added_by_the_webhook_which_finds_their_volumes(tmp_path: Path) -> None:
    served = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
    objects = Helm(tmp_path).template(CHART, shown(), served, namespace="kafka")
    assert not [o for o in objects if o["kind"] == "MutatingAdmissionPolicy" and "sidecars" in o["metadata"]["name"]]
    (webhook,) = (one for o in objects if o["kind"] == "MutatingWebhookConfiguration" for one in o["webhooks"])
    assert webhook["objectSelector"]["matchLabels"] == shown()["sidecars"]["podSelector"]
    assert webhook["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] == "kafka"
    deployments = (o for o in objects if o["kind"] == "Deployment" and "webhook" in o["metadata"]["name"])
    (argument,) = (
        argument
        for o in deployments
        for argument in o["spec"]["template"]["spec"]["containers"][0]["args"]
        if argument.startswith("--sidecars=")
    )
    account = read_sidecars(argument.removeprefix("--sidecars="))["my-cluster-kafka"]
    assert account.found_in_pod == FoundInPod(port=True)
    pod = strimzi_objects.pod(1, namespace="kafka")
    pod["spec"]["serviceAccountName"] = "my-cluster-kafka"
    review = {"kind": "AdmissionReview", "request": {"uid": "u", "object": pod}}
    response = json.loads(answer(json.dumps(review).encode(), {"my-cluster-kafka": account}))["response"]
    storage = json.loads(base64.b64decode(response["patch"]))[0]["value"]
    assert "--directory=data-0=/var/lib/kafka/data-0" in storage["args"]
    assert storage["volumeMounts"] == [{"name": "data-0", "mountPath": "/var/lib/kafka/data-0"}]
