"""What is read out of Strimzi's objects, however much of them is absent."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.kafka_cluster import strimzi_parsing as shapes
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.strimzi import Listener
from testkit.kubernetes import strimzi_objects


def test_listener_has_spec_settings_and_published_status():
    plain, tls, external = shapes.listeners(strimzi_objects.kafka(certificates=["PEM"]))
    assert plain == Listener(name="plain", port=9092, bootstrap=("my-cluster-kafka-bootstrap.default.svc:9092",))
    assert tls == Listener(
        name="tls",
        port=9093,
        tls=True,
        authentication="scram-sha-512",
        bootstrap=("my-cluster-kafka-bootstrap.default.svc:9093",),
        certificates=("PEM",),
    )
    assert (external.type, external.internal, external.advertised_as) == ("loadbalancer", False, "EXTERNAL-9094")


def test_several_addresses_are_split():
    one = strimzi_objects.listener("nodes", 9094, "nodeport")
    body = strimzi_objects.kafka(listeners=[one], bootstrap={"nodes": "node-a:31000, node-b:31000,"})
    assert shapes.listeners(body)[0].bootstrap == ("node-a:31000", "node-b:31000")


def test_listener_that_shows_certificate_of_its_own_is_known():
    own = {"configuration": {"brokerCertChainAndKey": {"secretName": "s", "certificate": "c", "key": "k"}}}
    body = strimzi_objects.kafka(
        listeners=[strimzi_objects.listener("tls", 9093, **own), strimzi_objects.listener("b", 9094)]
    )
    assert [one.own_certificate for one in shapes.listeners(body)] == [True, False]


def test_an_older_status_calls_the_name_a_type():
    body = strimzi_objects.kafka(listeners=[strimzi_objects.listener("tls", 9093)])
    body["status"]["listeners"] = [{"type": "tls", "bootstrapServers": "a:9093"}]
    assert shapes.listeners(body)[0].bootstrap == ("a:9093",)


@pytest.mark.parametrize("body", [{"metadata": {"name": "x"}}, {"metadata": {"name": "x"}, "spec": {}, "status": {}}])
def test_nothing_yet_is_no_listener(body: dict[str, Any]):
    assert shapes.listeners(body) == ()
    assert not shapes.paused(body)
    assert shapes.not_ready_message(body) == ""


def test_a_listener_that_is_not_published_has_no_address():
    (found,) = shapes.listeners(strimzi_objects.kafka(listeners=[strimzi_objects.listener("tls", 9093)], bootstrap={}))
    assert found.bootstrap == ()


def test_user_is_known_by_status_and_before_that_by_name():
    made = shapes.user(strimzi_objects.kafka_user("reader", "tls"))
    assert (made.authentication, made.username, made.secret) == ("tls", "CN=reader", "reader")
    waiting = shapes.user(strimzi_objects.kafka_user("reader", "tls", ready=False))
    assert (waiting.username, waiting.secret, waiting.cluster) == ("reader", "", "my-cluster")


@pytest.mark.parametrize(
    ("said", "namespace", "admitted"),
    [
        pytest.param(None, "default", True, id="its own always"),
        pytest.param(None, "ops", False, id="no other by default"),
        pytest.param("ops", "ops", True, id="the one that is named"),
        pytest.param("platform, ops", "ops", True, id="one of several"),
        pytest.param("ops2", "ops", False, id="not one that begins alike"),
        pytest.param("*", "ops", True, id="all"),
        pytest.param("", "ops", False, id="names none"),
    ],
)
def test_another_namespace_is_admitted_only_where_the_cluster_says_so(said: str | None, namespace: str, admitted: bool):
    annotations = {} if said is None else {shapes.SHARING_ANNOTATION: said}
    assert shapes.admits(strimzi_objects.kafka(annotations=annotations), namespace) is admitted


@pytest.mark.parametrize(("said", "paused"), [("true", True), ("True", True), ("false", False), ("", False)])
def test_a_pause_is_an_annotation_that_says_true(said: str, paused: bool):
    assert shapes.paused(strimzi_objects.kafka(annotations={shapes.PAUSE_ANNOTATION: said})) is paused


@pytest.mark.parametrize(
    ("state", "running"),
    [
        ("New", False),
        ("PendingProposal", False),
        ("ProposalReady", False),
        ("Rebalancing", True),
        ("Ready", False),
        ("NotReady", False),
        ("Stopped", False),
        ("ReconciliationPaused", False),
    ],
)
def test_of_all_states_of_a_rebalance_one_moves_anything(state: str, running: bool):
    assert shapes.rebalancing([strimzi_objects.rebalance("full", state)]) == (("full",) if running else ())


def test_pods_are_numbered_by_their_name_and_only_brokers_count():
    bodies = [strimzi_objects.pod(12, ready=False), strimzi_objects.pod(3), strimzi_objects.pod(5, leads=False)]
    assert shapes.pods(bodies) == {3: Pod("my-cluster-brokers-3"), 12: Pod("my-cluster-brokers-12", ready=False)}


def test_a_foreign_pod_with_our_label_is_ignored():
    stray = strimzi_objects.pod(3)
    stray["metadata"]["name"] = "debug-shell"
    assert shapes.pods([stray]) == {}


def test_the_error_of_strimzi_is_passed_on_unchanged():
    body = strimzi_objects.kafka(conditions=[strimzi_objects.not_ready("InvalidResource", "no such version")])
    assert shapes.not_ready_message(body) == "InvalidResource: no such version"
