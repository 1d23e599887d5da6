"""What is added to a broker's pod, as an answer to the API server's question."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from bellwether.adapters.kubernetes.sidecar_injection import answer, read_sidecars
from bellwether.ports.errors import Terminal

STORAGE = {"name": "bellwether-storage", "image": "bellwether:1"}
ORDERS: dict[str, Any] = {"containers": [STORAGE], "imagePullSecrets": [{"name": "a"}]}


def patch_for(pod: dict[str, Any], **sidecars: Any) -> list[dict[str, Any]]:
    """The patch for a pod, where the account ``orders`` has sidecars."""
    review = {"kind": "AdmissionReview", "request": {"uid": "u-1", "object": {"spec": pod}}}
    found = read_sidecars(json.dumps({"orders": {**ORDERS, **sidecars}}))
    response = json.loads(answer(json.dumps(review).encode(), found))["response"]
    assert (response["uid"], response["allowed"]) == ("u-1", True)
    assert ("patch" in response) == ("patchType" in response)
    patch: list[dict[str, Any]] = json.loads(base64.b64decode(response.get("patch", "W10=")))
    return patch


def test_containers_and_pull_secrets_are_added_to_those_of_pod() -> None:
    added = {"op": "add", "path": "/spec/containers/-", "value": STORAGE}
    secrets = {"op": "add", "path": "/spec/imagePullSecrets", "value": [{"name": "b"}, {"name": "a"}]}
    pod = {"serviceAccountName": "orders", "imagePullSecrets": [{"name": "b"}]}
    assert patch_for(pod) == [added, secrets]


def test_pull_secret_that_pod_has_is_not_added_again() -> None:
    pod = {"serviceAccountName": "orders", "imagePullSecrets": [{"name": "a"}]}
    assert [one["path"] for one in patch_for(pod)] == ["/spec/containers/-"]


AGENT: dict[str, Any] = {
    "containers": [STORAGE, {"name": "bellwether-quarantine-agent", "securityContext": {"runAsUser": 1001}}],
    "quarantine": {"volume": "data", "toleratedSeconds": 750, "userOfPod": True},
}


def for_agent(container: dict[str, Any], pod: dict[str, Any] | None = None, **quarantine: Any) -> dict[str, Any]:
    """By path, what is added for a quarantine agent to a pod with an exporter and this broker."""
    broker = {"name": "kafka", "volumeMounts": [{"name": "data"}], **container}
    exporter = {"name": "exporter", "livenessProbe": {"periodSeconds": 10, "failureThreshold": 3}}
    spec = {"serviceAccountName": "orders", "containers": [exporter, broker], **(pod or {})}
    patch = patch_for(spec, **{**AGENT, "quarantine": {**AGENT["quarantine"], **quarantine}}, imagePullSecrets=[])
    return {one["path"]: one["value"] for one in patch}


def test_processes_are_shared_where_there_is_a_quarantine_agent() -> None:
    assert for_agent({})["/spec/shareProcessNamespace"] is True
    assert next(one["path"] for one in patch_for({"serviceAccountName": "orders"})) == "/spec/containers/-"


@pytest.mark.parametrize(
    ("probe", "threshold"),
    [
        pytest.param({"periodSeconds": 10, "failureThreshold": 3}, 75, id="ended after 30 s"),
        pytest.param({}, 75, id="the API server's defaults"),
        pytest.param({"periodSeconds": 20, "failureThreshold": 37}, 38, id="rounded up"),
        pytest.param({"periodSeconds": 10, "failureThreshold": 75}, None, id="tolerant enough"),
        pytest.param(None, None, id="no probe"),
    ],
)
def test_the_brokers_liveness_probe_tolerates_the_longest_hold(probe: dict[str, int] | None, threshold: int | None):
    found = for_agent({"livenessProbe": probe} if probe is not None else {})
    raised = {path: value for path, value in found.items() if "livenessProbe" in path}
    wanted = {"/spec/containers/1/livenessProbe/failureThreshold": threshold} if threshold else {}
    assert raised == wanted, "and not the exporter's"


@pytest.mark.parametrize(
    ("container", "pod", "known", "user"),
    [
        pytest.param({"securityContext": {"runAsUser": 1000}}, {}, False, 1000, id="the container states it"),
        pytest.param({}, {"securityContext": {"runAsUser": 1002}}, False, 1002, id="the pod states it"),
        pytest.param({"securityContext": {}}, {}, False, 1001, id="nothing states it"),
        pytest.param({"securityContext": {"runAsUser": 0}}, {}, False, 1001, id="root, which no sidecar may be"),
        pytest.param(
            {"securityContext": {"runAsUser": 0}},
            {"securityContext": {"runAsUser": 1002}},
            False,
            1001,
            id="root, whatever its pod is",
        ),
        pytest.param({"securityContext": {"runAsUser": 1000}}, {}, True, 1001, id="the values state it"),
    ],
)
def test_the_agent_is_of_the_brokers_user(container: dict[str, Any], pod: dict[str, Any], known: bool, user: int):
    agent = for_agent(container, pod, userOfPod=not known)["/spec/containers/-"]
    assert agent["securityContext"]["runAsUser"] == user


@pytest.mark.parametrize("known", [True, False])
def test_agent_is_of_brokers_group_to_see_its_listener(known: bool):
    stated = {"securityContext": {"runAsUser": 1000, "runAsGroup": 1000}}
    agent = for_agent(stated, {"securityContext": {"runAsGroup": 7}}, userOfPod=not known)["/spec/containers/-"]
    assert agent["securityContext"] == {"runAsUser": 1001 if known else 1000, "runAsGroup": 1000}
    agent = for_agent({}, {"containers": []})["/spec/containers/-"]
    assert agent["securityContext"] == {"runAsUser": 1001}, "the broker's container is not known"


@pytest.mark.parametrize("pod", [{"serviceAccountName": "pay"}, {}])
def test_a_pod_of_another_account_is_allowed_as_it_is(pod: dict[str, Any]) -> None:
    assert patch_for(pod) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"request": {"uid": "u"}}', b'{"request": {"object": []}}'])
def test_what_is_not_question_about_pod_is_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"AdmissionReview|Expecting value"):
        answer(body, {})


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("nonsense", "not JSON"),
        ('{"orders": {}}', "orders.containers"),
        (json.dumps({"orders": {**ORDERS, "containers": []}}), "orders.containers"),
        (json.dumps({"orders": {**ORDERS, "initContainers": []}}), "orders.initContainers"),
    ],
)
def test_sidecars_that_cannot_be_read_are_named_by_their_field(text: str, field: str) -> None:
    with pytest.raises(Terminal, match=f"--sidecars: {field}: .*: set it as the chart renders it"):
        read_sidecars(text)
