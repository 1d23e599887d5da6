"""A sidecar that does not work, next to a container that does: what the node makes of their pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from node.kubectl import Kubectl, eventually
from nodeparts.release import IMAGE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

NAMESPACE = "broken-sidecars"
CONFINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
USER = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
CRASHES = ["probe", "storage", "--no-such-option"]


@pytest.fixture(scope="module")
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of its own, gone after the tests of this file."""
    kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    eventually(lambda: kubectl.get("serviceaccount", "default", "-n", NAMESPACE), bool, 60, "no account")
    yield NAMESPACE
    kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=120s")


def container(name: str, image: str = IMAGE, **more: Any) -> Mapping[str, Any]:
    """A confined container of an image that is on the node, or is not."""
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", "securityContext": CONFINED, **more}


def create(kubectl: Kubectl, name: str, sidecar: Mapping[str, Any], **more: Any) -> None:
    """A pod of a broker that works, which a sleeping process takes the place of, and a sidecar."""
    broker = container("broker", command=["/opt/bellwether/bin/python", "-c", "import time; time.sleep(600)"])
    listed = {"containers": [broker, sidecar], **more}
    spec = {"securityContext": USER, "terminationGracePeriodSeconds": 1, **listed}
    metadata = {"name": name, "namespace": NAMESPACE}
    kubectl.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])


def status(kubectl: Kubectl, name: str, of: str) -> Mapping[str, Any]:
    """The status of a container of a pod."""
    found = kubectl.get("pod", name, "-n", NAMESPACE)["status"]
    return next(one for one in found.get("containerStatuses", []) if one["name"] == of)


@pytest.mark.usefixtures("namespace")
def test_a_pod_stays_ready_while_its_supervised_sidecar_crashes(kubectl: Kubectl) -> None:
    create(kubectl, "supervised", container("sidecar", args=["supervise", "--", *CRASHES]))

    def log() -> str:
        return kubectl("logs", "supervised", "-n", NAMESPACE, "-c", "sidecar")

    eventually(log, lambda text: text.count("ended with status 2") >= 3, 120, "it does not crash")
    assert kubectl.ready("pod", "supervised", "-n", NAMESPACE)
    assert status(kubectl, "supervised", "sidecar")["restartCount"] == 0


@pytest.mark.usefixtures("namespace")
def test_a_pod_is_not_ready_while_a_sidecar_that_is_not_supervised_crashes(kubectl: Kubectl) -> None:
    create(kubectl, "alone", container("sidecar", args=CRASHES))
    eventually(lambda: status(kubectl, "alone", "sidecar")["restartCount"], lambda times: times >= 2, 120, "no crash")
    eventually(lambda: kubectl.ready("pod", "alone", "-n", NAMESPACE), lambda ready: not ready, 60, "it is ready")


@pytest.mark.usefixtures("namespace")
def test_a_broker_runs_and_its_pod_is_not_ready_where_the_image_of_a_sidecar_cannot_be_pulled(kubectl: Kubectl) -> None:
    create(kubectl, "unpulled", container("sidecar", image="registry.invalid/bellwether:none"))
    running = eventually(
        lambda: status(kubectl, "unpulled", "broker")["state"], lambda state: "running" in state, 120, "it does not run"
    )
    assert running
    waiting = eventually(
        lambda: status(kubectl, "unpulled", "sidecar")["state"],
        lambda state: state.get("waiting", {}).get("reason") in {"ErrImagePull", "ImagePullBackOff"},
        120,
        "it is pulled",
    )
    assert waiting
    assert not kubectl.ready("pod", "unpulled", "-n", NAMESPACE)


@pytest.mark.usefixtures("namespace")
def test_a_broker_does_not_start_where_that_image_is_of_a_restartable_init_container(kubectl: Kubectl) -> None:
    first = container("first", image="registry.invalid/bellwether:none", restartPolicy="Always")
    create(kubectl, "init", container("sidecar", args=["supervise", "--", *CRASHES]), initContainers=[first])

    def reason() -> str:
        found = kubectl.get("pod", "init", "-n", NAMESPACE)["status"]["initContainerStatuses"][0]
        return str(found["state"].get("waiting", {}).get("reason", ""))

    eventually(reason, lambda why: why in {"ErrImagePull", "ImagePullBackOff"}, 120, "it is pulled")
    assert "waiting" in status(kubectl, "init", "broker")["state"]
