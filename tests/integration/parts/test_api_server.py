"""The starter's API server is a real one: definitions, rights, tokens, and a restart that keeps what was written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from realparts.apiserver import ApiServer, KubectlFailed
from waiting import done, until

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]


def definition() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}, "required": ["size"]}
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Bell", "plural": "bells", "singular": "bell"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bells.parts.example.com"},
        "spec": {"group": "parts.example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def bell(namespace: str, size: int) -> str:
    metadata = {"name": "one", "namespace": namespace}
    return json.dumps(
        {"apiVersion": "parts.example.com/v1", "kind": "Bell", "metadata": metadata, "spec": {"size": size}}
    )


def in_time(server: ApiServer, *arguments: str, kubeconfig: Path | None = None) -> str:
    """What kubectl prints once it can: grants and definitions come into force a moment after they are written."""
    return until(lambda: server.kubectl(*arguments, kubeconfig=kubeconfig), so=done, ignoring=(KubectlFailed,))


@pytest.fixture
def with_bells(apiserver: ApiServer, tmp_path: Path) -> ApiServer:
    (tmp_path / "bells.json").write_text(json.dumps(definition()))
    apiserver.apply(tmp_path)
    return apiserver


def test_a_definition_is_served_and_its_schema_holds_and_a_restart_keeps_both(with_bells: ApiServer) -> None:
    namespace = with_bells.create_namespace("bells-and-schemas")
    with pytest.raises(KubectlFailed, match=r"spec\.size"):
        with_bells.kubectl("apply", "--server-side", "-f", "-", stdin=bell(namespace, 0))
    with_bells.kubectl("apply", "--server-side", "-f", "-", stdin=bell(namespace, 3))
    with_bells.restart()
    assert in_time(with_bells, "get", "bells", "one", "-n", namespace, "-o", "jsonpath={.spec.size}") == "3"


def test_anyone_can_be_given_a_kubeconfig_that_has_no_right_until_it_is_granted(apiserver: ApiServer) -> None:
    eve = apiserver.kubeconfig_for("eve", ["auditors"])
    with pytest.raises(KubectlFailed, match="Forbidden"):
        apiserver.kubectl("get", "namespaces", kubeconfig=eve)
    apiserver.kubectl("create", "clusterrole", "reader", "--verb=list", "--resource=namespaces")
    apiserver.kubectl("create", "clusterrolebinding", "readers", "--clusterrole=reader", "--group=auditors")
    # The server decides by what its own watch has told it.
    assert "default" in in_time(apiserver, "get", "namespaces", kubeconfig=eve)


def test_a_service_account_gets_a_token_of_its_own(apiserver: ApiServer) -> None:
    namespace = apiserver.create_namespace("accounts")
    apiserver.kubectl("create", "serviceaccount", "prober", "-n", namespace)
    prober = apiserver.service_account_kubeconfig(namespace, "prober")
    assert f"system:serviceaccount:{namespace}:prober" in apiserver.kubectl("auth", "whoami", kubeconfig=prober)


def test_it_says_its_real_version(apiserver: ApiServer) -> None:
    assert json.loads(apiserver.kubectl("version", "-o", "json"))["serverVersion"]["major"] == "1"


def test_static_tokens_name_their_users_and_nothing_is_left_running(tmp_path: Path) -> None:
    with ApiServer(tmp_path, users={"bob": ["on-call"]}) as server:
        assert "on-call" in server.kubectl("auth", "whoami", kubeconfig=server.kubeconfig_for("bob"))
        server.pause_apiserver()
        server.resume_apiserver()
        pids = [process.pid for process in server.processes()]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
