"""Secrets that change while a policy is worked on: followed, said when they cannot be, and nothing is lost by it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import EVENTS, SECRETS
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers import cluster_connection
from bellwether.controllers.cluster_connection import CHECK_SECONDS, Connector, CredentialWatcher, LeaseTimes
from bellwether.core.condition import Condition
from bellwether.core.reasons import Reason
from bellwether.core.reporting.requeue import Requeue
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient, Unauthenticated, Unauthorized
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryMover, MemoryReader, MemoryRoute
from bellwether.simulation.memory_world import ManualClock
from realparts.tls import Authority
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator

PACE = Requeue()
POLICY = LeadershipPolicy.read(
    api_objects.policy(
        kafka=api_objects.kafka(tls={"caSecretName": "ca"}, sasl={**api_objects.SASL, "username": "bellwether"})
    )
)


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi()
    put(made, "ca", **{"ca.crt": Authority(tmp_path / "tls").path.read_bytes()})
    put(made, "kafka-user", password=b"hunter2")
    return made


@pytest.fixture
def followed(api: MemoryApi, clock: ManualClock) -> CredentialWatcher:
    secrets = SecretReader(api, "default")
    return CredentialWatcher(lambda policy: connection(policy.spec.kafka, secrets), clock)


def put(api: MemoryApi, name: str, **data: bytes) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    api.put(SECRETS, {"metadata": {"name": name, "namespace": "default"}, "data": encoded})


def changed(followed: CredentialWatcher, clock: ManualClock) -> Connection | None:
    clock.advance(CHECK_SECONDS)
    return followed.changed(POLICY)


def test_a_renewed_password_makes_another_connection(followed: CredentialWatcher, api: MemoryApi, clock: ManualClock):
    first = followed.now(POLICY)
    put(api, "kafka-user", password=b"renewed")
    second = changed(followed, clock)
    assert second is not None
    assert (first.security.password, second.security.password) == ("hunter2", "renewed")


def test_a_renewed_authority_makes_another_connection(
    followed: CredentialWatcher, api: MemoryApi, clock: ManualClock, tmp_path: Path
):
    first = followed.now(POLICY)
    put(api, "ca", **{"ca.crt": Authority(tmp_path / "new").path.read_bytes()})
    second = changed(followed, clock)
    assert second is not None
    assert first.security.ca_file != second.security.ca_file
    assert Path(first.security.ca_file).exists(), "whoever is at work with it may finish"


def test_the_same_secrets_make_no_other_connection(followed: CredentialWatcher, api: MemoryApi, clock: ManualClock):
    followed.now(POLICY)
    put(api, "kafka-user", password=b"hunter2")
    assert changed(followed, clock) is None


def test_secrets_are_not_read_at_every_reconcile(followed: CredentialWatcher, api: MemoryApi, clock: ManualClock):
    followed.now(POLICY)
    put(api, "kafka-user", password=b"renewed")
    clock.advance(CHECK_SECONDS - 0.1)
    assert followed.changed(POLICY) is None
    clock.advance(0.1)
    assert followed.changed(POLICY) is not None


def test_what_cannot_be_used_is_said_and_the_former_connection_stays(
    followed: CredentialWatcher, api: MemoryApi, clock: ManualClock
):
    followed.now(POLICY)
    assert followed.condition is None
    put(api, "ca", **{"ca.crt": b"hunter2"})
    assert changed(followed, clock) is None
    said = followed.condition
    assert said is not None
    assert (said.type, said.status, said.reason) == ("CredentialsCurrent", False, Reason.CREDENTIALS_UNUSABLE)
    assert_wording(said.message)
    assert "hunter2" not in said.message


def test_a_repaired_secret_is_followed_again(followed: CredentialWatcher, api: MemoryApi, clock: ManualClock):
    before = followed.now(POLICY)
    put(api, "kafka-user", other=b"x")
    assert changed(followed, clock) is None
    put(api, "kafka-user", password=b"renewed")
    after = changed(followed, clock)
    assert after is not None
    assert after != before
    assert followed.condition is None


def test_an_api_that_is_away_says_nothing_about_secrets(
    followed: CredentialWatcher, api: MemoryApi, clock: ManualClock
):
    followed.now(POLICY)
    api.away = True
    assert changed(followed, clock) is None
    assert followed.condition is None


def test_a_link_follows_its_secrets_and_keeps_its_lease_and_its_record(
    api: MemoryApi, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    cluster = MemoryCluster(cluster_id="cluster-a")
    made: list[Connection] = []

    def nodes(connection: Connection, *_: Any) -> MemoryRoute:
        made.append(connection)
        return MemoryRoute(cluster)

    monkeypatch.setattr(cluster_connection, "BrokerPool", nodes)
    monkeypatch.setattr(cluster_connection, "KafkaReader", lambda route: MemoryReader(cluster, route))
    monkeypatch.setattr(cluster_connection, "KafkaMover", lambda route: MemoryMover(cluster, 2.0, route=route))
    connector = Connector(api, clock, SignalCache(clock), LeaseTimes(10, 2.0), "operators")
    link = connector.link(POLICY)
    assert connector.follow(link, POLICY) is link
    put(api, "kafka-user", password=b"renewed")
    clock.advance(CHECK_SECONDS)
    after = connector.follow(link, POLICY)
    assert (after.lease, after.records, after.cluster_id) == (link.lease, link.records, link.cluster_id)
    assert after.world.clusters is not link.world.clusters
    assert [one.security.password for one in made] == ["hunter2", "renewed"]
    connector.close()


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        pytest.param(Unauthenticated("user 'u' is refused"), "CredentialsUnusable", id="who we are is not believed"),
        pytest.param(Unauthorized("grant Alter on Cluster"), "AclMissing", id="what we ask is not allowed"),
    ],
)
def test_what_a_person_must_grant_or_renew_has_a_reason_of_its_own(
    operator: MemoryOperator, trouble: Terminal, reason: str
):
    loop = operator.make()
    operator.connector.trouble = trouble
    assert operator.step(loop) == PACE.retry_seconds
    assert operator.condition() == ("False", reason, str(trouble))
    assert operator.condition("Connected")[:2] == ("False" if reason == "CredentialsUnusable" else "Unknown", reason)
    operator.connector.trouble = None
    operator.step(loop)
    assert operator.condition()[:2] == ("True", "UpToDate")


def test_who_is_refused_again_and_again_asks_ever_less_often_and_at_once_again_when_it_was_let_in(
    operator: MemoryOperator,
):
    loop = operator.make()
    operator.connector.trouble = Unauthenticated("user 'u' is refused")
    assert [operator.step(loop) for _ in range(5)] == [5, 10, 20, 30, 30]
    operator.connector.trouble = Unauthorized("grant Alter on Cluster")
    assert operator.step(loop) == 5, "another trouble"
    operator.connector.trouble = None
    operator.step(loop)
    operator.connector.trouble = Transient("no answer")
    loop.release()
    assert [operator.step(loop) for _ in range(3)] == [5, 5, 5], "whom nobody refuses need not wait"


def test_that_former_credentials_are_in_use_is_said_and_stops_nothing(operator: MemoryOperator):
    loop = operator.make()
    why = "the connection uses the earlier credentials, because the new ones cannot be used: no secret default/ca"
    operator.step(loop)
    operator.connector.former_credentials = Condition("CredentialsCurrent", False, Reason.CREDENTIALS_UNUSABLE, why)
    operator.step(loop, times=2)
    assert operator.condition("CredentialsCurrent") == ("False", "CredentialsUnusable", why)
    assert operator.condition()[:2] == ("True", "UpToDate")
    told = [e["note"] for e in operator.api.all(EVENTS) if e["reason"] == "CredentialsUnusable"]
    assert told == [why], "once"
    operator.connector.former_credentials = None
    operator.step(loop)
    assert "CredentialsCurrent" not in {c["type"] for c in operator.body()["status"]["conditions"]}


def test_a_transient_trouble_is_no_matter_of_credentials(operator: MemoryOperator):
    loop = operator.make()
    operator.connector.trouble = Transient("the token endpoint does not answer in time")
    operator.step(loop)
    assert operator.condition()[1] == "ClusterUnreachable"
