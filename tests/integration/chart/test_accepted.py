"""Every object that the chart renders is accepted by a real API server, whose namespace refuses unconfined pods."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from realparts import gotools
from realparts.apiserver import ApiServer, KubectlFailed
from realparts.helm import Helm, pods
from testkit.loads.load_configs import WITH_EXECUTORS, executor_template

pytestmark = [pytest.mark.chart, pytest.mark.apiserver]

Object = dict[str, Any]
HOME = "bellwether"
# Where good values place things.
ELSEWHERE = ("kafka", "pay", "pay-brokers", "strimzi-clusters", "monitoring")
GOOD = sorted(Path(__file__).with_name("good").glob("*.yaml"))
KINDS = (
    "bellwether.dev/v1alpha1/LeadershipPolicy",
    "bellwether.dev/v1alpha1/SignalSource",
    # Where it is not served, the sidecars come by a webhook.
    *["admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"] * (gotools.KUBERNETES_MINOR >= 36),
)
SERVED = tuple(f"--api-versions={kind}" for kind in KINDS)


@pytest.fixture(scope="module")
def furnished(chartserver: ApiServer, definitions: None) -> ApiServer:
    """The API server with namespaces, of which HOME enforces ``restricted``, and the definitions of Bellwether and of
    Prometheus' operator.
    """
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    named = [{"name": HOME, "labels": labels}, *({"name": name} for name in ELSEWHERE)]
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata} for metadata in named]
    chartserver.kubectl("apply", "-f", "-", stdin=listed(namespaces))
    return chartserver


def listed(items: Sequence[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def accepted(server: ApiServer, items: Sequence[Object]) -> list[str]:
    """The names of the objects, none of which is kept. Raises KubectlFailed, with every refusal."""
    options = ("--server-side", "--force-conflicts", "--dry-run=server", "-o", "name")
    return server.kubectl("apply", *options, "-f", "-", stdin=listed(items)).split()


def pod(name: str, spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": HOME}, "spec": spec}


def test_every_object_is_accepted_and_every_pod_under_pod_security_restricted(
    helm: Helm, chart: Path, furnished: ApiServer
):
    given: dict[str, Object] = {}  # by their text: what several values make alike is asked for once
    for good in GOOD:
        objects = helm.template(chart, good, *SERVED)
        made = [pod(f"{good.stem}-{number}", spec) for number, (_, spec) in enumerate(pods(objects))]
        assert len(made) >= 3  # operator, test, uninstall
        given |= {json.dumps(one): one for one in (*objects, *made)}
    assert len(accepted(furnished, list(given.values()))) == len(given)


def test_a_pod_that_is_not_confined_is_refused_there(helm: Helm, chart: Path, furnished: ApiServer):
    (operator,) = [o for o in helm.template(chart) if o["kind"] == "Deployment"]
    loose = [copy.deepcopy(operator["spec"]["template"]["spec"]) for _ in range(4)]
    del loose[0]["containers"][0]["securityContext"]["capabilities"]
    del loose[1]["containers"][0]["securityContext"]["allowPrivilegeEscalation"]
    del loose[2]["securityContext"]["seccompProfile"]
    del loose[3]["securityContext"]["runAsNonRoot"]
    with pytest.raises(KubectlFailed) as refused:
        accepted(furnished, [pod(f"loose-{number}", spec) for number, spec in enumerate(loose)])
    for number in range(4):
        assert f'pods "loose-{number}" is forbidden: violates PodSecurity' in str(refused.value)


def test_pods_that_spark_is_to_make_are_accepted_as_well(helm: Helm, chart: Path, furnished: ApiServer):
    template = executor_template(helm.template(chart, WITH_EXECUTORS))
    template["spec"]["containers"][0]["image"] = "bellwether-spark"  # Spark puts it in
    assert accepted(furnished, [pod("executor", template["spec"])]) == ["pod/executor"]
