"""A link to a Strimzi cluster follows what Strimzi says, and outlives what it takes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import PODS, SECRETS
from bellwether.adapters.kubernetes.kafka_cluster.strimzi_discovery import StrimziUnavailable
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import (
    CHECK_SECONDS,
    ClusterConnection,
    Connector,
    LeaseTimes,
    connection_error_reason,
)
from bellwether.core.model.broker_identity import Pod
from bellwether.core.reasons import Reason
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal
from bellwether.simulation.memory_world import ManualClock
from realparts.tls import Authority
from testkit.kubernetes import api_objects, strimzi_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.kubernetes.strimzi_objects import KAFKAS, REBALANCES, USERS, kafka
from testkit.messages import assert_wording
from testkit.simulation.operator_fixture import MemoryOperator

SHARED = {"bellwether.dev/policies-from": "default"}


def policy(**fields: Any) -> LeadershipPolicy:
    return LeadershipPolicy.read(api_objects.policy(kafka=api_objects.strimzi(**fields)))


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    """The same cluster in the policy's namespace, and in another that lends it."""
    made = MemoryApi()
    authority = Authority(tmp_path / "tls").path.read_text()
    for namespace in ("default", "lender"):
        strimzi_objects.put_cluster(made, authority, "hunter2", namespace, SHARED)
    return made


@pytest.fixture
def connector(api: MemoryApi, clock: ManualClock, connected: list[Connection]) -> Connector:
    assert not connected
    return Connector(api, clock, SignalCache(clock), LeaseTimes(10, 2.0), "operators", destinations=ANYWHERE)


def later(connector: Connector, link: ClusterConnection, clock: ManualClock, **fields: Any) -> ClusterConnection:
    clock.advance(CHECK_SECONDS)
    return connector.follow(link, policy(**fields))


def test_a_link_knows_its_cluster_and_its_pods(connector: Connector, api: MemoryApi, connected: list[Connection]):
    api.put(PODS, strimzi_objects.pod(2))
    strimzi = connector.link(policy()).world.strimzi
    assert strimzi is not None
    assert (strimzi.name, strimzi.user, strimzi.pods) == ("my-cluster", "bellwether", {2: Pod("my-cluster-brokers-2")})
    assert [one.security.username for one in connected] == ["bellwether"]


def test_a_pause_is_noticed_without_another_connection(
    connector: Connector, api: MemoryApi, clock: ManualClock, connected: list[Connection]
):
    link = connector.link(policy())
    api.put(KAFKAS, kafka(annotations={"strimzi.io/pause-reconciliation": "true"}))
    assert connector.follow(link, policy()).world.strimzi == link.world.strimzi, "not looked at yet"
    paused = later(connector, link, clock)
    assert paused.world.strimzi is not None
    assert paused.world.strimzi.paused
    assert paused.world.clusters is link.world.clusters
    api.put(KAFKAS, kafka())
    api.put(REBALANCES, strimzi_objects.rebalance("full", "Rebalancing"))
    moving = later(connector, paused, clock).world.strimzi
    assert moving is not None
    assert (moving.paused, moving.rebalancing) == (False, ("full",))
    assert len(connected) == 1


def test_a_settled_cluster_keeps_its_link(connector: Connector, clock: ManualClock):
    link = connector.link(policy())
    assert later(connector, link, clock) is link


def test_another_address_is_connected_to(
    connector: Connector, api: MemoryApi, clock: ManualClock, connected: list[Connection]
):
    link = connector.link(policy())
    api.put(KAFKAS, kafka(bootstrap={"tls": "elsewhere:9093"}))
    later(connector, link, clock)
    assert [one.bootstrap for one in connected] == [
        ("my-cluster-kafka-bootstrap.default.svc:9093",),
        ("elsewhere:9093",),
    ]


@pytest.mark.parametrize(
    ("taken", "reason", "words"),
    [
        pytest.param(
            (KAFKAS, "my-cluster"), Reason.STRIMZI_REFERENCE_INVALID, "Kafka my-cluster does not exist", id="cluster"
        ),
        pytest.param(
            (USERS, "bellwether"), Reason.STRIMZI_REFERENCE_INVALID, "KafkaUser bellwether does not exist", id="user"
        ),
        pytest.param(
            (SECRETS, "my-cluster-cluster-ca-cert"), Reason.CREDENTIALS_UNUSABLE, "cluster-ca-cert", id="authority"
        ),
    ],
)
def test_what_is_taken_away_is_said_and_the_connection_goes_on(
    connector: Connector, api: MemoryApi, clock: ManualClock, taken: Any, reason: Reason, words: str
):
    link = connector.link(policy(userName="bellwether"))
    body = api.get(taken[0], "default", taken[1])
    api.delete(taken[0], "default", taken[1])
    assert later(connector, link, clock, userName="bellwether") is link
    said = connector.former_credentials
    assert said is not None
    assert (said.reason, words in said.message) == (reason, True)
    api.put(taken[0], body)
    assert later(connector, link, clock, userName="bellwether") is link
    assert connector.former_credentials is None


def test_a_pause_is_noticed_while_the_credentials_cannot_be_read(
    connector: Connector, api: MemoryApi, clock: ManualClock
):
    link = connector.link(policy())
    api.delete(SECRETS, "default", "my-cluster-cluster-ca-cert")
    api.put(KAFKAS, kafka(annotations={"strimzi.io/pause-reconciliation": "true"}))
    api.put(REBALANCES, strimzi_objects.rebalance("full", "Rebalancing"))
    link = later(connector, link, clock)
    assert connector.former_credentials is not None
    assert link.world.strimzi is not None
    assert (link.world.strimzi.paused, link.world.strimzi.rebalancing) == (True, ("full",))
    api.put(KAFKAS, kafka())
    link = later(connector, link, clock)
    assert link.world.strimzi is not None
    assert not link.world.strimzi.paused, "and so is its end"


def test_what_was_lent_is_given_back_until_it_is_lent_again(connector: Connector, api: MemoryApi, clock: ManualClock):
    link = connector.link(policy(namespace="lender"))
    api.put(KAFKAS, kafka(namespace="lender"))
    clock.advance(CHECK_SECONDS)
    for _ in range(3):  # a turn is tried sooner than Secrets are read again
        with pytest.raises(StrimziUnavailable) as caught:
            connector.follow(link, policy(namespace="lender"))
        assert caught.value.reason is Reason.STRIMZI_REFERENCE_INVALID
        clock.advance(1)
    api.put(KAFKAS, kafka(namespace="lender", annotations=SHARED))
    assert connector.follow(link, policy(namespace="lender")) is link


def test_why_there_is_no_reconcile_is_said_in_the_finders_own_word(operator: MemoryOperator):
    loop = operator.make()
    operator.connector.trouble = StrimziUnavailable(Reason.STRIMZI_NOT_READY, "Kafka default/my-cluster has no address")
    operator.step(loop)
    assert_wording(operator.condition())
    operator.connector.trouble = None
    operator.step(loop)
    assert operator.condition()[:2] == ("True", "UpToDate")


def test_every_other_trouble_keeps_its_reason():
    assert connection_error_reason(Terminal("x")) is Reason.CLUSTER_UNREACHABLE
