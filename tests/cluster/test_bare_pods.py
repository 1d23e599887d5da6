"""The node itself: what pods may, what they reach, and what they do not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from node import addresses, lifecycle
from node.kubectl import Kubectl, KubectlFailed, eventually
from node.places import Places
from nodeparts.release import IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

CONFINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
ASK_THE_API = """
import json, os, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount"
url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
request = urllib.request.Request(
    f"{url}/apis/authentication.k8s.io/v1/selfsubjectreviews",
    data=b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}',
    headers={"Authorization": "Bearer " + open(f"{account}/token").read(), "Content-Type": "application/json"},
)
context = ssl.create_default_context(cafile=f"{account}/ca.crt")
with urllib.request.urlopen(request, context=context, timeout=10) as answer:
    print(json.load(answer)["status"]["userInfo"]["username"])
"""
LOOK_AROUND = """
import errno, os, socket, time
print(os.getuid())
try:
    open("/written", "w")
except OSError as refused:
    print(errno.errorcode[refused.errno])
print(socket.gethostbyname("kubernetes.default.svc.cluster.local"))
try:
    socket.create_connection(("192.0.2.1", 80), timeout=3)
    print("reached the world")
except OSError as refused:
    print(type(refused).__name__)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace under the strictest rules for pods, gone after the tests of this file."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pods", "labels": labels}}])
    # A pod that no one makes again needs its account at once, and a controller makes that.
    eventually(lambda: kubectl.get("serviceaccount", "default", "-n", "pods"), bool, 60, "no account")
    yield "pods"
    kubectl("delete", "namespace", "pods", "--wait", "--timeout=120s")


def pod(script: str, **changed: Any) -> Mapping[str, Any]:
    """A pod that runs a Python script as user 1000 on a read-only root."""
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["/opt/bellwether/bin/python", "-u", "-c", script],
        "securityContext": CONFINED,
    }
    user = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}, **changed}
    return {"securityContext": user, "terminationGracePeriodSeconds": 1, "containers": [container]}


def test_a_deployment_runs_as_a_plain_user_on_a_read_only_root_finds_services_and_has_no_way_out(
    kubectl: Kubectl, namespace: str
) -> None:
    labels = {"app": "quiet"}
    template = {"metadata": {"labels": labels}, "spec": pod(LOOK_AROUND)}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "quiet", "namespace": namespace}
    kubectl.apply([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}])
    kubectl("rollout", "status", "deployment/quiet", "-n", namespace, "--timeout=120s")
    said = eventually(
        lambda: kubectl("logs", "deployment/quiet", "-n", namespace).split("\n"),
        lambda seen: len(seen) > 4,
        60,
        "silent",
    )
    assert said[:3] == ["1000", "EROFS", addresses.API_SERVICE]
    assert said[3] in {"OSError", "TimeoutError"}


def test_a_job_calls_the_api_by_its_service_with_the_token_of_its_account(kubectl: Kubectl, namespace: str) -> None:
    metadata = {"name": "asks", "namespace": namespace}
    template = {"spec": {**pod(ASK_THE_API), "restartPolicy": "Never", "serviceAccountName": "asker"}}
    kubectl.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "asker", "namespace": namespace}},
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": metadata,
                "spec": {"backoffLimit": 0, "template": template},
            },
        ]
    )
    kubectl("wait", "job/asks", "-n", namespace, "--for=condition=Complete", "--timeout=120s")
    assert kubectl("logs", "job/asks", "-n", namespace).strip() == f"system:serviceaccount:{namespace}:asker"


def test_a_pod_that_would_be_root_is_refused_where_the_namespace_says_restricted(
    kubectl: Kubectl, namespace: str
) -> None:
    root = {"metadata": {"name": "root", "namespace": namespace}, "spec": pod("", runAsNonRoot=False, runAsUser=0)}
    with pytest.raises(KubectlFailed, match=r"violates PodSecurity .*runAsNonRoot"):
        kubectl.apply([{"apiVersion": "v1", "kind": "Pod", **root}])


def test_the_kubelet_comes_back_and_pods_live_through_it(kubectl: Kubectl, places: Places, namespace: str) -> None:
    kubectl.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "lives", "namespace": namespace},
                "spec": pod("import time; time.sleep(600)"),
            }
        ]
    )
    kubectl("wait", "pod/lives", "-n", namespace, "--for=condition=Ready", "--timeout=120s")
    before = kubectl.get("pod", "lives", "-n", namespace)["status"]["containerStatuses"][0]["containerID"]
    lifecycle.restart(places, "kubelet")
    eventually(lambda: kubectl("exec", "lives", "-n", namespace, "--", "true"), lambda _: True, 60, "no exec")
    after = kubectl.get("pod", "lives", "-n", namespace)["status"]["containerStatuses"][0]
    assert (after["containerID"], after["restartCount"]) == (before, 0)


def test_the_host_is_as_it_was_but_for_one_link(places: Places) -> None:
    def seen(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    links = [link["ifname"] for link in json.loads(seen("ip", "-json", "link", "show"))]
    assert [name for name in links if name.startswith(("bellwether", "pods", "veth"))] == [addresses.HOST_LINK]
    assert "KUBE-" not in seen("iptables-save")
    assert str(places.root) not in seen("mount")


def test_bringing_it_up_twice_changes_nothing(places: Places, kubectl: Kubectl) -> None:
    before = kubectl.get("node", addresses.NODE)["metadata"]["uid"]
    assert lifecycle.up() == places
    assert kubectl.get("node", addresses.NODE)["metadata"]["uid"] == before
