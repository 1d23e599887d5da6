"""Strimzi's real definitions accept what the tests and the documents show of Strimzi, field by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from realparts.apiserver import KubectlFailed
from testkit.kubernetes import strimzi_objects

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

ROOT = Path(__file__).parents[3]
NAMESPACE = "strimzi-shapes"
NAMESPACE_BODY = {"apiVersion": "v1", "kind": "Namespace"}
ACLS = [
    {"resource": {"type": "cluster"}, "operations": ["Alter", "DescribeConfigs"]},
    {"resource": {"type": "topic", "name": "*", "patternType": "literal"}, "operations": ["Describe"]},
]
BODIES = {
    "Kafka": strimzi_objects.kafka(
        namespace=NAMESPACE, certificates=["PEM"], annotations={"bellwether.dev/policies-from": "*"}
    ),
    "Kafka that is not ready": strimzi_objects.kafka(
        "creating", NAMESPACE, conditions=[strimzi_objects.not_ready("Creating", "soon")]
    ),
    "KafkaUser": strimzi_objects.kafka_user(namespace=NAMESPACE, acls=ACLS),
    "KafkaUser with a certificate": strimzi_objects.kafka_user("reader", "tls", namespace=NAMESPACE),
    "KafkaNodePool": strimzi_objects.pool("brokers", [1, 2, 3], NAMESPACE),
    "KafkaRebalance": strimzi_objects.rebalance("full", "Rebalancing", NAMESPACE),
}


@pytest.fixture(scope="module")
def server(strimzi_api: ApiServer) -> ApiServer:
    strimzi_api.create_namespace(NAMESPACE)
    return strimzi_api


def documented(document: str) -> list[dict[str, Any]]:
    """Every object in the YAML blocks of a document, those in lists included."""
    blocks = re.findall(r"^( *)```yaml\n(.*?)^ *```", (ROOT / "docs" / document).read_text(), re.DOTALL | re.MULTILINE)
    found = []
    for indent, block in blocks:
        text = re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)
        found += [body for body in yaml.safe_load_all(text) if isinstance(body, dict)]
    return found


def accept(server: ApiServer, body: dict[str, Any]) -> None:
    """Let the API server look at every field. Raises KubectlFailed."""
    server.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(body))


@pytest.mark.parametrize("what", list(BODIES))
def test_what_tests_take_for_strimzis_is_accepted_with_its_status(server: ApiServer, what: str) -> None:
    body = {"apiVersion": "kafka.strimzi.io/v1", "kind": what.split(maxsplit=1)[0], **BODIES[what]}
    text, kind = json.dumps(body), body["kind"]
    server.kubectl("create", "--validate=strict", "-f", "-", stdin=text)
    server.kubectl("replace", "--subresource=status", "--validate=strict", "-f", "-", stdin=text)
    found = json.loads(
        server.kubectl("get", f"{kind}.kafka.strimzi.io", body["metadata"]["name"], "-n", NAMESPACE, "-o", "json")
    )
    assert found["status"] == body["status"]


@pytest.mark.parametrize("document", ["strimzi.md", "security/kafka-acls.md"])
def test_what_the_documents_show_is_accepted(server: ApiServer, document: str) -> None:
    for namespace in ("kafka", "bellwether"):
        server.kubectl("apply", "-f", "-", stdin=json.dumps({**NAMESPACE_BODY, "metadata": {"name": namespace}}))
    shown = [body for body in documented(document) if "kind" in body]
    assert {body["kind"] for body in shown} >= {"KafkaUser"}
    for body in shown:
        accept(server, body)


def test_the_user_that_the_document_shows_may_do_all_that_is_needed_and_no_more() -> None:
    """One user for all parts has the union of what each part needs."""
    needed = {
        (acl["resource"]["type"], acl["resource"].get("name"), operation)
        for body in documented("security/kafka-acls.md")
        for acl in body["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    }
    (user,) = [body for body in documented("strimzi.md") if body.get("kind") == "KafkaUser"]
    granted = {
        (acl["resource"]["type"], acl["resource"].get("name"), operation)
        for acl in user["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    }
    # Alter implies Describe, and AlterConfigs DescribeConfigs.
    assert granted == needed - {("cluster", None, "Describe"), ("cluster", None, "DescribeConfigs")}


def test_strimzi_has_no_field_for_further_containers(server: ApiServer) -> None:
    body = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", **strimzi_objects.kafka("sidecars", NAMESPACE)}
    template = {"pod": {"volumes": [{"name": "more", "emptyDir": {}}]}}
    body["spec"]["kafka"]["template"] = template
    accept(server, body)
    template["pod"]["containers"] = [{"name": "bellwether-storage", "image": "bellwether"}]  # type: ignore[list-item]
    with pytest.raises(KubectlFailed, match=r'unknown field "spec\.kafka\.template\.pod\.containers"'):
        accept(server, body)


def test_policies_rules_on_strimzi_cluster_hold_on_api_server(server: ApiServer) -> None:
    policy = {
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "LeadershipPolicy",
        "metadata": {"name": "main", "namespace": NAMESPACE},
    }
    good = {"strimzi": {"clusterName": "my-cluster"}}
    accept(server, {**policy, "spec": {"mode": "Observe", "kafka": good}})
    for bad, field in (
        ({}, "spec.kafka.bootstrapServers"),
        ({**good, "bootstrapServers": ["kafka:9092"]}, "spec.kafka.bootstrapServers"),
        ({**good, "userSecretName": "u", "tls": {}}, "spec.kafka.strimzi"),
        ({"strimzi": {"clusterName": "c", "listener": "TLS"}}, "spec.kafka.strimzi.listener"),
    ):
        with pytest.raises(KubectlFailed, match=re.escape(field)):
            accept(server, {**policy, "spec": {"mode": "Observe", "kafka": bad}})
