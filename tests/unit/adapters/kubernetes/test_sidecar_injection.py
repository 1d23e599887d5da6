"""What is added to a broker's pod, as an answer to the API server's question."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from bellwether.adapters.kubernetes.sidecar_injection import answer, read_sidecars
from bellwether.ports.errors import Terminal

STORAGE = {"name": "bellwether-storage", "image": "bellwether:1"}
ORDERS: dict[str, Any] = {"containers": [STORAGE], "imagePullSecrets": [{"name": "a"}], "shareProcessNamespace": False}


def patch_for(pod: dict[str, Any], **sidecars: Any) -> list[dict[str, Any]]:
    """The patch for a pod, where the account ``orders`` has sidecars."""
    review = {"kind": "AdmissionReview", "request": {"uid": "u-1", "object": {"spec": pod}}}
    found = read_sidecars(json.dumps({"orders": {**ORDERS, **sidecars}}))
    response = json.loads(answer(json.dumps(review).encode(), found))["response"]
    assert (response["uid"], response["allowed"]) == ("u-1", True)
    assert ("patch" in response) == ("patchType" in response)
    patch: list[dict[str, Any]] = json.loads(base64.b64decode(response.get("patch", "W10=")))
    return patch


def test_containers_and_pull_secrets_are_added_to_those_of_the_pod() -> None:
    added = {"op": "add", "path": "/spec/containers/-", "value": STORAGE}
    secrets = {"op": "add", "path": "/spec/imagePullSecrets", "value": [{"name": "b"}, {"name": "a"}]}
    pod = {"serviceAccountName": "orders", "imagePullSecrets": [{"name": "b"}]}
    assert patch_for(pod) == [added, secrets]


def test_a_pull_secret_that_the_pod_has_is_not_added_again() -> None:
    pod = {"serviceAccountName": "orders", "imagePullSecrets": [{"name": "a"}]}
    assert [one["path"] for one in patch_for(pod)] == ["/spec/containers/-"]


def test_processes_are_shared_where_the_sidecars_need_it() -> None:
    shared = {"op": "add", "path": "/spec/shareProcessNamespace", "value": True}
    assert shared in patch_for({"serviceAccountName": "orders"}, shareProcessNamespace=True)
    assert shared not in patch_for({"serviceAccountName": "orders"})


@pytest.mark.parametrize("pod", [{"serviceAccountName": "pay"}, {}])
def test_a_pod_of_another_account_is_allowed_as_it_is(pod: dict[str, Any]) -> None:
    assert patch_for(pod) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"request": {"uid": "u"}}', b'{"request": {"object": []}}'])
def test_what_is_not_a_question_about_a_pod_is_an_error(body: bytes) -> None:
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
