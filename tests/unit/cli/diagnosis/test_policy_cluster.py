"""``bellwether doctor --policy``: the policy's cluster, with its addresses and Secrets, and what its record says."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes.api_client import POLICIES, SECRETS
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.cli.diagnosis import policy_cluster
from bellwether.cli.main import main
from bellwether.kafka_connection import Mechanism
from bellwether.ports.errors import Terminal
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.values.builders import demoted

CLOSED = "127.0.0.1:1"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    made = MemoryApi()
    sasl = {"mechanism": "PLAIN", "username": "anna", "passwordSecretName": "kafka", "allowPlaintext": True}
    body = api_objects.policy(kafka=api_objects.kafka(bootstrapServers=[CLOSED], sasl=sasl))
    made.put(POLICIES, body | {"status": {"clusterId": "cluster-a"}})
    password = base64.b64encode(b"opensesame").decode()
    made.put(
        SECRETS,
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "kafka", "namespace": "default"},
            "data": {"password": password},
        },
    )
    monkeypatch.setattr(policy_cluster, "connect", lambda **_: made)
    return made


def doctor(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["doctor", *arguments])
    return found.exit_code, " ".join(found.output.split())


def test_addresses_and_credentials_are_those_of_the_policy(api: MemoryApi) -> None:
    with policy_cluster.policy_cluster("default", "main", ()) as found:
        security = found.connection.security
        assert (found.connection.bootstrap, security.mechanism) == ((CLOSED,), Mechanism.PLAIN)
        assert (security.username, security.password) == ("anna", "opensesame")
        assert (found.cluster_id, found.notes) == ("cluster-a", ())


def test_other_addresses_may_lead_to_the_same_cluster_only(api: MemoryApi) -> None:
    with policy_cluster.policy_cluster("default", "main", ("localhost:9092",)) as found:
        assert found.connection.bootstrap == ("localhost:9092",)
        found.check("cluster-a")
        with pytest.raises(Terminal, match="lead to Kafka cluster cluster-b, and the policy is pinned to cluster-a"):
            found.check("cluster-b")


def test_the_brokers_that_the_policy_has_demoted_are_named(api: MemoryApi) -> None:
    records = ConfigMapRecords(api, "default", "main")
    taken = records.take_over("cluster-a")
    records.save(replace(taken, demoted={1: demoted(1)}))
    with policy_cluster.policy_cluster("default", "main", ()) as found:
        assert found.notes == (f"demoted by policy default/main: broker 1 ({demoted(1).reason})",)


def test_a_cluster_that_cannot_be_reached_is_named_without_its_password(api: MemoryApi) -> None:
    code, output = doctor("--policy", "main")
    assert code == 4
    assert f"no broker answered: {CLOSED}" in output
    assert "opensesame" not in output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--policy", "mian"), 4, "namespace default has no LeadershipPolicy mian; it has: main"),
        (("--policy", "main", "--namespace", "other"), 4, "it has none: set --namespace; there are: default/main"),
        (("--policy", "main", "--tls"), 2, "--tls cannot be used with --policy"),
        ((), 2, "or '--policy NAME'"),
    ],
)
def test_what_is_wrong_is_said_with_what_exists(
    api: MemoryApi, arguments: tuple[str, ...], code: int, said: str
) -> None:
    found = doctor(*arguments)
    assert (found[0], said in found[1]) == (code, True), found[1]


def test_a_missing_secret_is_named(api: MemoryApi) -> None:
    api.delete(SECRETS, "default", "kafka")
    code, output = doctor("--policy", "main")
    assert (code, "secret default/kafka does not exist" in output) == (4, True), output
