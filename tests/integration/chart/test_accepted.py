"""Every object that the chart renders is accepted by a real API server, whose namespace refuses unconfined pods."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from realparts.apiserver import ApiServer, KubectlFailed
from realparts.helm import Helm
from testkit.loads.load_configs import WITH_EXECUTORS, executor_template

pytestmark = [pytest.mark.chart, pytest.mark.apiserver]

Object = dict[str, Any]
# Where good values place things.
ELSEWHERE = ("bellwether", "kafka", "pay", "pay-brokers", "strimzi-clusters", "monitoring")
SERVED = ("bellwether.dev/v1alpha1/LeadershipPolicy", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")


@pytest.fixture(scope="module")
def furnished(chartserver: ApiServer, definitions: None) -> ApiServer:
    """The API server with namespaces, and the definitions of Bellwether and of Prometheus' operator."""
    there = chartserver.kubectl("get", "namespaces", "-o", "name").split()
    for name in ELSEWHERE:
        if f"namespace/{name}" not in there:
            chartserver.create_namespace(name)
    return chartserver


def rendered(helm: Helm, chart: Path, values: Path, namespace: str) -> list[Object]:
    options = [f"--api-versions={one}" for one in SERVED]
    return helm.template(chart, values, *options, namespace=namespace)


def test_every_object_is_accepted(helm: Helm, chart: Path, good: Path, furnished: ApiServer, restricted: str):
    objects = rendered(helm, chart, good, restricted)
    for found in objects:
        if found["metadata"].get("name") == "herd-more":
            found["metadata"]["namespace"] = restricted
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    said = furnished.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-o", "name", "-f", "-", stdin=body
    )
    assert len(said.split()) == len(objects)


def test_every_pod_is_accepted_under_pod_security_restricted(
    helm: Helm, chart: Path, good: Path, furnished: ApiServer, restricted: str
):
    made = 0
    for found in rendered(helm, chart, good, restricted):
        template = found if found["kind"] == "Pod" else found.get("spec", {}).get("template")
        if isinstance(template, dict) and "spec" in template:
            create_pod(furnished, restricted, {"spec": template["spec"], "metadata": {"name": f"pod-{made}"}})
            made += 1
    assert made >= 3  # operator, test, uninstall
    found = furnished.kubectl("get", "pods", "-n", restricted, "-o", "name").split()
    assert len(found) == made


def test_a_pod_that_is_not_confined_is_refused_there(helm: Helm, chart: Path, furnished: ApiServer, restricted: str):
    (operator,) = [o for o in helm.template(chart) if o["kind"] == "Deployment"]
    spec = operator["spec"]["template"]["spec"]
    for loosen in (
        lambda s: s["containers"][0]["securityContext"].pop("capabilities"),
        lambda s: s["containers"][0]["securityContext"].pop("allowPrivilegeEscalation"),
        lambda s: s["securityContext"].pop("seccompProfile"),
        lambda s: s["securityContext"].pop("runAsNonRoot"),
    ):
        loose = copy.deepcopy(spec)
        loosen(loose)
        with pytest.raises(KubectlFailed, match="violates PodSecurity"):
            create_pod(furnished, restricted, {"spec": loose, "metadata": {"name": "loose"}})


def test_the_pods_that_spark_is_to_make_are_accepted_as_well(
    helm: Helm, chart: Path, furnished: ApiServer, restricted: str
):
    template = executor_template(helm.template(chart, WITH_EXECUTORS))
    template["spec"]["containers"][0]["image"] = "bellwether-spark"  # Spark puts it in
    create_pod(furnished, restricted, {"spec": template["spec"], "metadata": {"name": "executor"}})


def create_pod(server: ApiServer, namespace: str, pod: Object) -> Object:
    whole = {"apiVersion": "v1", "kind": "Pod", **pod}
    found: Object = json.loads(
        server.kubectl("create", "-n", namespace, "-f", "-", "-o", "json", stdin=json.dumps(whole))
    )
    return found
