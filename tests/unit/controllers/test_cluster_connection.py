"""A policy's link: which cluster it may lead to, and what the Lease is called."""

from __future__ import annotations

import base64
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import EVENTS, LEASES, SECRETS
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.leases import POLICY_ANNOTATION
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import (
    CHECK_SECONDS,
    Connector,
    CredentialWatcher,
    LeaseTimes,
    PolicyRefused,
)
from bellwether.core.condition import Condition
from bellwether.core.reasons import Reason
from bellwether.core.reporting.requeue import Requeue
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient, Unauthenticated, Unauthorized
from bellwether.simulation.memory_world import START, ManualClock
from realparts.tls import Authority
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator

SASL = {"mechanism": "PLAIN", "username": "u", "passwordSecretName": "kafka-user"}


@pytest.fixture
def connector(connected: list[Connection], api: MemoryApi, clock: ManualClock) -> Connector:
    assert not connected
    return Connector(api, clock, SignalCache(clock), LeaseTimes(10, 2.0), "operators", destinations=ANYWHERE)


def policy(cluster_id: str = "", **kafka: Any) -> LeadershipPolicy:
    body = api_objects.policy(kafka=api_objects.kafka(**kafka))
    return LeadershipPolicy.read({**body, "status": {"clusterId": cluster_id}} if cluster_id else body)


@pytest.mark.parametrize(
    "pinned", [pytest.param("", id="not pinned yet"), pytest.param("cluster-a", id="pinned to it")]
)
def test_the_cluster_that_answers_is_linked(connector: Connector, pinned: str):
    link = connector.link(policy(pinned))
    assert link.cluster_id == "cluster-a"
    assert link.lease.name == object_names.cluster_lease("cluster-a")
    assert not link.lease.seconds_left(), "a link is no Lease yet"


def test_a_policy_stays_pinned_to_the_cluster_that_it_has_seen(connector: Connector):
    with pytest.raises(PolicyRefused) as refused:
        connector.link(policy("cluster-b"))
    assert refused.value.reason is Reason.CLUSTER_CHANGED
    for word in ("cluster-a", "cluster-b", "spec.kafka.bootstrapServers"):
        assert word in str(refused.value)


def test_a_former_batch_may_arrive_as_long_as_a_lease_and_a_request_last(connector: Connector):
    assert connector.grace_seconds(connector.link(policy())) == 12.0


def test_a_secret_that_is_not_there_is_named_and_not_shown(connector: Connector):
    with pytest.raises(Terminal, match="kafka-user"):
        connector.link(policy(tls={}, sasl=SASL))
    connector._api.put(SECRETS, {"metadata": {"name": "kafka-user", "namespace": "default"}, "data": {"other": "eA=="}})  # type: ignore[attr-defined]
    with pytest.raises(Terminal, match="password"):
        connector.link(policy(tls={}, sasl=SASL))


@pytest.mark.parametrize(
    ("holder", "of", "age", "elsewhere"),
    [
        pytest.param("operator-b", "default/main", 1, True, id="another process renews the policy's Lease"),
        pytest.param("operator-b", "default/main", 11, False, id="the Lease is not renewed"),
        pytest.param("", "default/main", 1, False, id="the Lease was given up"),
        pytest.param("operator-b", "default/other", 1, False, id="another policy has the cluster"),
    ],
)
def test_a_policy_is_led_elsewhere_while_another_renews_its_lease(
    connector: Connector, holder: str, of: str, age: int, elsewhere: bool
):
    renewed = (START - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    name = object_names.cluster_lease("cluster-a")
    lease = {
        "metadata": {"name": name, "namespace": "operators", "annotations": {POLICY_ANNOTATION: of}},
        "spec": {"holderIdentity": holder, "renewTime": renewed},
    }
    connector._api.put(LEASES, lease)  # type: ignore[attr-defined]
    assert connector.led_elsewhere(policy("cluster-a")) is elsewhere


def test_a_policy_that_has_seen_no_cluster_or_has_no_lease_is_led_nowhere(connector: Connector):
    assert not connector.led_elsewhere(policy())
    assert not connector.led_elsewhere(policy("cluster-a"))
    connector._api.away = True  # type: ignore[attr-defined]
    assert not connector.led_elsewhere(policy("cluster-a"))


def test_a_renewed_link_keeps_its_lease_and_its_record(connector: Connector):
    link = connector.link(policy())
    renewed = connector.renew(link, policy())
    assert (renewed.lease, renewed.records, renewed.cluster_id) == (link.lease, link.records, link.cluster_id)
    assert renewed.world.clusters is not link.world.clusters


def test_connection_files_share_one_directory_and_end_with_the_policy(
    connector: Connector, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    content = base64.b64encode(Authority(tmp_path / "tls").path.read_bytes()).decode()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
    (tmp_path / "files").mkdir()
    authority = {"metadata": {"name": "ca", "namespace": "default"}, "data": {"ca.crt": content}}
    connector._api.put(SECRETS, authority)  # type: ignore[attr-defined]
    found = policy(tls={"caSecretName": "ca"})
    link = connector.link(found)
    connector.renew(link, found)
    assert len(list((tmp_path / "files").glob("bellwether-*/*"))) == 1
    connector.close()
    assert list((tmp_path / "files").iterdir()) == []


def test_the_end_of_a_policys_certificates_is_observed(connector: Connector, tmp_path: Path):
    noted: list[tuple[Any, ...]] = []
    connector._certificate = lambda *what: noted.append(what)
    connector.link(policy())
    assert noted == [("default", "main", "authority", None), ("default", "main", "own", None)]


PACE = Requeue()
POLICY = LeadershipPolicy.read(
    api_objects.policy(
        kafka=api_objects.kafka(tls={"caSecretName": "ca"}, sasl={**api_objects.SASL, "username": "bellwether"})
    )
)


@pytest.fixture
def secrets_api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi()
    put(made, "ca", **{"ca.crt": Authority(tmp_path / "tls").path.read_bytes()})
    put(made, "kafka-user", password=b"hunter2")
    return made


@pytest.fixture
def followed(secrets_api: MemoryApi, clock: ManualClock) -> CredentialWatcher:
    secrets = SecretReader(secrets_api, "default", destinations=ANYWHERE)
    return CredentialWatcher(lambda policy: connection(policy.spec.kafka, secrets), clock)


def put(api: MemoryApi, name: str, **data: bytes) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    api.put(SECRETS, {"metadata": {"name": name, "namespace": "default"}, "data": encoded})


def changed(followed: CredentialWatcher, clock: ManualClock) -> Connection | None:
    clock.advance(CHECK_SECONDS)
    return followed.changed(POLICY)


def test_a_renewed_password_makes_another_connection(
    followed: CredentialWatcher, secrets_api: MemoryApi, clock: ManualClock
):
    first = followed.now(POLICY)
    put(secrets_api, "kafka-user", password=b"renewed")
    second = changed(followed, clock)
    assert second is not None
    assert (first.security.password, second.security.password) == ("hunter2", "renewed")


def test_a_renewed_authority_makes_another_connection(
    followed: CredentialWatcher, secrets_api: MemoryApi, clock: ManualClock, tmp_path: Path
):
    first = followed.now(POLICY)
    put(secrets_api, "ca", **{"ca.crt": Authority(tmp_path / "new").path.read_bytes()})
    second = changed(followed, clock)
    assert second is not None
    assert first.security.ca_file != second.security.ca_file
    assert Path(first.security.ca_file).exists(), "work that uses it may finish"


def test_the_same_secrets_make_no_other_connection(
    followed: CredentialWatcher, secrets_api: MemoryApi, clock: ManualClock
):
    followed.now(POLICY)
    put(secrets_api, "kafka-user", password=b"hunter2")
    assert changed(followed, clock) is None


def test_secrets_are_not_read_at_every_reconcile(
    followed: CredentialWatcher, secrets_api: MemoryApi, clock: ManualClock
):
    followed.now(POLICY)
    put(secrets_api, "kafka-user", password=b"renewed")
    clock.advance(CHECK_SECONDS - 0.1)
    assert followed.changed(POLICY) is None
    clock.advance(0.1)
    assert followed.changed(POLICY) is not None


def test_what_cannot_be_used_is_said_and_the_former_connection_stays(
    followed: CredentialWatcher, secrets_api: MemoryApi, clock: ManualClock
):
    followed.now(POLICY)
    assert followed.condition is None
    put(secrets_api, "ca", **{"ca.crt": b"hunter2"})
    assert changed(followed, clock) is None
    said = followed.condition
    assert said is not None
    assert (said.type, said.status, said.reason) == ("CredentialsCurrent", False, Reason.CREDENTIALS_UNUSABLE)
    assert_wording(said.message)
    assert "hunter2" not in said.message


def test_a_repaired_secret_is_followed_again(followed: CredentialWatcher, secrets_api: MemoryApi, clock: ManualClock):
    before = followed.now(POLICY)
    put(secrets_api, "kafka-user", other=b"x")
    assert changed(followed, clock) is None
    put(secrets_api, "kafka-user", password=b"renewed")
    after = changed(followed, clock)
    assert after is not None
    assert after != before
    assert followed.condition is None


def test_an_api_that_is_away_says_nothing_about_secrets(
    followed: CredentialWatcher, secrets_api: MemoryApi, clock: ManualClock
):
    followed.now(POLICY)
    secrets_api.away = True
    assert changed(followed, clock) is None
    assert followed.condition is None


def test_a_link_follows_its_secrets_and_keeps_its_lease_and_its_record(
    secrets_api: MemoryApi, clock: ManualClock, connected: list[Connection]
):
    connector = Connector(
        secrets_api, clock, SignalCache(clock), LeaseTimes(10, 2.0), "operators", destinations=ANYWHERE
    )
    link = connector.link(POLICY)
    assert connector.follow(link, POLICY) is link
    put(secrets_api, "kafka-user", password=b"renewed")
    clock.advance(CHECK_SECONDS)
    after = connector.follow(link, POLICY)
    assert (after.lease, after.records, after.cluster_id) == (link.lease, link.records, link.cluster_id)
    assert after.world.clusters is not link.world.clusters
    assert [one.security.password for one in connected] == ["hunter2", "renewed"]
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
    assert [operator.step(loop) for _ in range(3)] == [5, 5, 5], "without a refusal there is no wait"


def test_that_former_credentials_are_in_use_is_said_and_stops_nothing(operator: MemoryOperator):
    loop = operator.make()
    why = "the connection uses the earlier credentials, because the new ones cannot be used: no secret default/ca"
    operator.step(loop)
    operator.connector.former_credentials = Condition("CredentialsCurrent", False, Reason.CREDENTIALS_UNUSABLE, why)
    operator.step(loop, times=2)
    assert operator.condition("CredentialsCurrent") == ("False", "CredentialsUnusable", why)
    assert operator.condition()[:2] == ("True", "UpToDate")
    noted = [e["note"] for e in operator.api.all(EVENTS) if e["reason"] == "CredentialsUnusable"]
    assert noted == [why], "once"
    operator.connector.former_credentials = None
    operator.step(loop)
    assert "CredentialsCurrent" not in {c["type"] for c in operator.body()["status"]["conditions"]}


def test_a_transient_trouble_is_no_matter_of_credentials(operator: MemoryOperator):
    loop = operator.make()
    operator.connector.trouble = Transient("the token endpoint does not answer in time")
    operator.step(loop)
    assert operator.condition()[1] == "ClusterUnreachable"
