"""What the operator writes to a real API: objects, status, events; nothing once it is settled (invariant 8)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, EVENTS, POLICIES, SECRETS, KubernetesClient
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.broker_health_objects import BrokerHealths
from bellwether.adapters.kubernetes.objects.event_recorder import DISTINCT, SERIES_SECONDS, EventWriter
from bellwether.adapters.kubernetes.objects.status_writer import StatusWriter
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import Terminal
from bellwether.simulation.memory_world import ManualClock

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("crds")]

CONDITION = {
    "type": "Healthy",
    "status": "False",
    "reason": "Unreachable",
    "message": "not reachable",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}


@pytest.fixture
def policy(api: KubernetesClient, namespace: str) -> Any:
    body = {
        "apiVersion": POLICIES.api_version,
        "kind": POLICIES.kind,
        "metadata": {"name": "main", "namespace": namespace},
        "spec": {"mode": "Observe", "kafka": {"bootstrapServers": ["kafka:9092"]}},
    }
    return api.create(POLICIES, namespace, body)


def versions(api: KubernetesClient, namespace: str) -> dict[str, str]:
    found = api.list(BROKER_HEALTHS, namespace)
    return {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in found}


def test_brokers_get_their_objects_once_and_lose_them_when_nothing_names_them(
    api: KubernetesClient, namespace: str, policy: Any
) -> None:
    keeper = BrokerHealths(api, SystemClock())
    made = keeper.ensure_broker_healths(policy, [3, 1, 2])
    before = versions(api, namespace)
    assert set(before) == {"main-1", "main-2", "main-3"}
    assert keeper.ensure_broker_healths(policy, [1, 2, 3]) == made
    assert versions(api, namespace) == before
    assert keeper.ensure_broker_healths(policy, [1, 3]).keys() == {1, 3}
    assert set(versions(api, namespace)) == {"main-1", "main-3"}
    owner = api.get(BROKER_HEALTHS, namespace, "main-1")["metadata"]["ownerReferences"][0]
    assert owner["uid"] == policy["metadata"]["uid"]


def test_object_that_person_made_is_adopted_and_keeps_override(
    api: KubernetesClient, namespace: str, policy: Any
) -> None:
    for broker in (1, 77):
        body = {
            "apiVersion": BROKER_HEALTHS.api_version,
            "kind": BROKER_HEALTHS.kind,
            "metadata": {"name": f"main-{broker}"},
            "spec": {
                "brokerId": broker,
                "policyRef": {"name": "main"},
                "override": {"state": "Demoted", "reason": "disk swap"},
            },
        }
        api.create(BROKER_HEALTHS, namespace, body)
    keeper = BrokerHealths(api, SystemClock())
    assert keeper.ensure_broker_healths(policy, [1]).keys() == {1}
    found = api.get(BROKER_HEALTHS, namespace, "main-1")
    assert found["spec"]["override"]["reason"] == "disk swap"
    assert found["metadata"]["labels"]["bellwether.dev/broker-id"] == "1"
    assert "main-77" in versions(api, namespace), "a person's object about an unknown broker is not ours to delete"


def test_the_same_status_is_written_once_also_after_a_restart(
    api: KubernetesClient, namespace: str, policy: Any
) -> None:
    BrokerHealths(api, SystemClock()).ensure_broker_healths(policy, [1])
    status = {"leaders": 3, "registered": True, "conditions": [CONDITION]}
    writer = StatusWriter(api)
    assert writer.write_broker_health(namespace, "main", 1, status)
    before = versions(api, namespace)
    assert not writer.write_broker_health(namespace, "main", 1, dict(status))
    assert not StatusWriter(api).write_broker_health(namespace, "main", 1, status)
    assert versions(api, namespace) == before
    assert writer.write_broker_health(namespace, "main", 1, {**status, "leaders": 2})


def test_a_field_that_is_no_longer_reported_goes(api: KubernetesClient, namespace: str, policy: Any) -> None:
    BrokerHealths(api, SystemClock()).ensure_broker_healths(policy, [1])
    writer = StatusWriter(api)
    writer.write_broker_health(namespace, "main", 1, {"leaders": 3, "rack": "a"})
    writer.write_broker_health(namespace, "main", 1, {"leaders": 3})
    assert "rack" not in api.get(BROKER_HEALTHS, namespace, "main-1")["status"]


def test_the_status_of_what_is_gone_is_nobodys_error(api: KubernetesClient, namespace: str) -> None:
    writer = StatusWriter(api)
    assert not writer.write_policy(namespace, "gone", {"conditions": []})
    assert not writer.write_broker_health(namespace, "gone", 1, {"leaders": 1})


def test_a_policys_conditions_are_written(api: KubernetesClient, namespace: str, policy: Any) -> None:
    condition = {**CONDITION, "type": "Ready", "reason": "UpToDate"}
    assert StatusWriter(api).write_policy(namespace, "main", {"conditions": [condition]})
    assert api.get(POLICIES, namespace, "main")["status"]["conditions"] == [condition]


def test_many_texts_of_one_reason_are_counted_in_one_event(api: KubernetesClient, namespace: str, policy: Any) -> None:
    clock = ManualClock()
    events = EventWriter(api, clock, "pod-1")
    for number in range(DISTINCT + 3):
        clock.advance(SERIES_SECONDS)
        assert events.post(policy, "OrderOverwritten", f"orders-{number}: another tool set the order")
    counted = [e for e in api.list(EVENTS, namespace) if e.get("series")]
    assert [(e["series"]["count"], e["note"].partition(":")[0]) for e in counted] == [(3, f"orders-{DISTINCT}")]


def test_secrets_are_read_into_private_files_and_never_printed(api: KubernetesClient, namespace: str) -> None:
    data = {"password": base64.b64encode(b"hunter2\n").decode()}
    api.create(SECRETS, namespace, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"}, "data": data})
    reader = SecretReader(api, namespace, destinations=ANYWHERE)
    assert reader.value("kafka", "password") == "hunter2"
    path = reader.open("kafka").file("password")
    assert path.read_bytes() == b"hunter2\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert reader.open("kafka").file("password") == path
    with pytest.raises(Terminal, match=r"has no key 'pasword'; its keys: password") as wrong:
        reader.value("kafka", "pasword")
    assert "hunter2" not in str(wrong.value)
    with pytest.raises(Terminal, match=f"secret {namespace}/kafak does not exist: create it with key 'password'"):
        reader.value("kafak", "password")
