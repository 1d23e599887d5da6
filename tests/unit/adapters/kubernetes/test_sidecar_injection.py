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
    assert not response.get("warnings") or sidecars.get("foundInPod")
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


SELF: dict[str, Any] = {"name": "bellwether-self", "args": ["self", "--port=9094"]}
EXTERNAL = {"name": "tcp-external", "containerPort": 9099}


def strimzi_pod(*ports: dict[str, Any], mounts: tuple[str, ...] = ("data-0", "data-1")) -> dict[str, Any]:
    """A pod of Strimzi's with these data volumes, and ports next to those that each has."""
    inside = [{"name": f"tcp-{name}", "containerPort": 9090} for name in ("ctrlplane", "replication", "clientstls")]
    volumes = [{"name": one, "mountPath": f"/var/lib/kafka/{one}"} for one in mounts]
    others = [{"name": "ready-files", "mountPath": "/var/opt/kafka"}]
    broker = {"name": "kafka", "ports": [*inside, *ports], "volumeMounts": [*others, *volumes]}
    return {"serviceAccountName": "orders", "containers": [{"name": "exporter"}, broker]}


@pytest.mark.parametrize(
    ("ports", "find", "found"),
    [
        pytest.param([EXTERNAL, {**EXTERNAL, "name": "tcp-second"}], True, ["--port=9099"], id="external"),
        pytest.param([{**EXTERNAL, "name": "tcp-second"}], True, [], id="a name that may be internal"),
        pytest.param([], True, [], id="none"),
        pytest.param([EXTERNAL], False, [], id="a port that is configured"),
    ],
)
def test_volumes_and_port_are_found_in_a_strimzi_pod(ports: list[dict[str, Any]], find: bool, found: list[str]) -> None:
    patch = patch_for(strimzi_pod(*ports), containers=[STORAGE, SELF], imagePullSecrets=[], foundInPod={"port": find})
    directories = [f"--directory={one}=/var/lib/kafka/{one}" for one in ("data-0", "data-1")]
    storage, own = (one["value"] for one in patch)
    assert storage["args"] == directories
    assert own["args"] == ["self", "--port=9094", *directories, *found]
    assert [one["name"] for one in storage["volumeMounts"] if "readOnly" not in one] == ["data-0", "data-1"]
    assert [one["mountPath"] for one in own["volumeMounts"] if one["readOnly"]] == [
        "/var/lib/kafka/data-0",
        "/var/lib/kafka/data-1",
    ]


@pytest.mark.parametrize("mounts", [(), ("other",)], ids=["no volume", "volumes of another directory"])
def test_a_pod_without_known_volumes_gets_no_sidecar(mounts: tuple[str, ...]) -> None:
    assert patch_for(strimzi_pod(mounts=mounts), foundInPod={"port": True}) == []
    review = {"request": {"uid": "u", "object": {"spec": strimzi_pod(mounts=mounts)}}}
    found = read_sidecars(json.dumps({"orders": {**ORDERS, "foundInPod": {"port": True}}}))
    (warning,) = json.loads(answer(json.dumps(review).encode(), found))["response"]["warnings"]
    assert "list sidecars.dataVolumes" in warning
    assert patch_for({"serviceAccountName": "orders", "containers": []}, foundInPod={"port": True}) == []


def test_the_agents_broker_is_the_one_whose_volumes_were_found() -> None:
    quarantine = {"volume": "", "toleratedSeconds": 750, "userOfPod": True}
    patch = patch_for(strimzi_pod(), containers=AGENT["containers"], quarantine=quarantine, foundInPod={"port": True})
    assert {one["path"] for one in patch} >= {"/spec/shareProcessNamespace"}
    pod = strimzi_pod()
    pod["containers"][1]["securityContext"] = {"runAsUser": 7}
    patch = patch_for(pod, containers=AGENT["containers"], quarantine=quarantine, foundInPod={"port": True})
    assert next(one["value"]["securityContext"] for one in patch if "agent" in str(one)) == {"runAsUser": 7}


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
