"""A policy's link: which cluster it may lead to, and what the Lease is called."""

from __future__ import annotations

import base64
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES, SECRETS
from bellwether.adapters.kubernetes.leases import POLICY_ANNOTATION
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers import cluster_connection
from bellwether.controllers.cluster_connection import Connector, LeaseTimes, PolicyRefused
from bellwether.core.reasons import Reason
from bellwether.ports.errors import Terminal
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryMover, MemoryReader, MemoryRoute
from bellwether.simulation.memory_world import START, ManualClock
from realparts.tls import Authority
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi

SASL = {"mechanism": "PLAIN", "username": "u", "passwordSecretName": "kafka-user"}


@pytest.fixture
def connector(monkeypatch: pytest.MonkeyPatch) -> Connector:
    """A linker whose every bootstrap leads to one cluster in memory."""
    cluster = MemoryCluster(cluster_id="cluster-a")
    monkeypatch.setattr(cluster_connection, "BrokerPool", lambda *_, **__: MemoryRoute(cluster))
    monkeypatch.setattr(cluster_connection, "KafkaReader", lambda route: MemoryReader(cluster, route))
    monkeypatch.setattr(cluster_connection, "KafkaMover", lambda route: MemoryMover(cluster, 2.0, route=route))
    api, clock = MemoryApi(), ManualClock()
    return Connector(api, clock, SignalCache(clock), LeaseTimes(10, 2.0), "operators")


def policy(cluster_id: str = "", **kafka: Any) -> LeadershipPolicy:
    body = api_objects.policy(kafka=api_objects.kafka(**kafka))
    return LeadershipPolicy.read({**body, "status": {"clusterId": cluster_id}} if cluster_id else body)


@pytest.mark.parametrize(
    "pinned", [pytest.param("", id="not pinned yet"), pytest.param("cluster-a", id="pinned to it")]
)
def test_the_cluster_that_answers_is_linked(connector: Connector, pinned: str):
    link = connector.link(policy(pinned))
    assert link.cluster_id == "cluster-a"
    assert link.lease.name == "bellwether-cluster-a"
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
        pytest.param("operator-b", "default/main", 11, False, id="the Lease stands still"),
        pytest.param("", "default/main", 1, False, id="the Lease was given up"),
        pytest.param("operator-b", "default/other", 1, False, id="another policy has the cluster"),
    ],
)
def test_a_policy_is_led_elsewhere_while_another_renews_its_lease(
    connector: Connector, holder: str, of: str, age: int, elsewhere: bool
):
    renewed = (START - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {
        "metadata": {"name": "bellwether-cluster-a", "namespace": "operators", "annotations": {POLICY_ANNOTATION: of}},
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
    told: list[tuple[Any, ...]] = []
    connector._certificate = lambda *what: told.append(what)
    connector.link(policy())
    assert told == [("default", "main", "authority", None), ("default", "main", "own", None)]
