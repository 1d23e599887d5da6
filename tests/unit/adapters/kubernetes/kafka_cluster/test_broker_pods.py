"""Brokers' pods as the API shows them: whose they are, ready or not, and what is amiss with looking."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import PODS
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import (
    DEFAULT_CONTAINER,
    LOOK_SECONDS,
    PodWatch,
    Wanted,
    by_broker,
)
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.strimzi import Pod
from bellwether.ports.errors import Terminal, Transient
from bellwether.testing.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.kubernetes.broker_pods import pod
from testkit.kubernetes.memory_api import MemoryApi

KAFKA = Wanted("default", (("app", "kafka"),))


def wanted(**spec: Any) -> Wanted | None:
    return Wanted.of(LeadershipPolicy.read(api_objects.policy(**spec)))


def named_container(body: dict[str, Any]) -> dict[str, Any]:
    """A pod whose annotation names the first container as its main one."""
    body["metadata"]["annotations"] = {DEFAULT_CONTAINER: "sidecar"}
    return body


def renamed(body: dict[str, Any]) -> dict[str, Any]:
    """A pod without a container of the usual name."""
    for one in (body["spec"]["containers"][1], body["status"]["containerStatuses"][1]):
        one["name"] = "exporter"
    return body


@pytest.fixture
def api() -> MemoryApi:
    made = MemoryApi()
    for number in (0, 1, 2):
        made.put(PODS, pod(number))
    made.put(PODS, pod(0, "zookeeper", labels={"app": "zookeeper"}))
    return made


@pytest.fixture
def watch(api: MemoryApi) -> PodWatch:
    made = PodWatch(api, ManualClock())
    made.want(KAFKA)
    return made


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({}, None, id="nobody asks"),
        pytest.param({"maintenance": {}}, None, id="nothing is asked"),
        pytest.param({"maintenance": {"pods": {"selector": "app=kafka"}}}, KAFKA, id="by labels"),
        pytest.param(
            {"maintenance": {"pods": {"selector": "b/role=broker,app=kafka", "firstBrokerId": 100}}},
            Wanted("default", (("app", "kafka"), ("b/role", "broker")), 100),
            id="by several, numbered from elsewhere",
        ),
        pytest.param(
            {
                "maintenance": {"pods": {}},
                "kafka": api_objects.strimzi()["spec"]["kafka"]
                if False
                else {"strimzi": {"clusterName": "one", "namespace": "kafka"}},
            },
            Wanted("kafka", (("strimzi.io/broker-role", "true"), ("strimzi.io/cluster", "one"))),
            id="Strimzi's",
        ),
    ],
)
def test_what_a_policy_asks_for(spec: dict[str, Any], found: Wanted | None):
    assert wanted(**spec) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param(pod(1), Pod("kafka-1"), id="ready"),
        pytest.param(pod(1, ready=False), Pod("kafka-1", ready=False), id="not ready"),
        pytest.param(pod(1, sidecar_ready=False), Pod("kafka-1"), id="its sidecar is not ready"),
        pytest.param(named_container(pod(1, sidecar_ready=False)), Pod("kafka-1", ready=False), id="by annotation"),
        pytest.param(renamed(pod(1, sidecar_ready=False)), Pod("kafka-1", ready=False), id="the first container"),
        pytest.param(pod(1, leaving=True), Pod("kafka-1", leaving=True), id="terminating"),
        pytest.param({"metadata": {"name": "kafka-1"}}, Pod("kafka-1", ready=False), id="nothing said of it yet"),
        pytest.param(pod(1, phase="Failed"), None, id="evicted, and its successor not made yet"),
        pytest.param({"metadata": {"name": "kafka"}}, None, id="without a number"),
    ],
)
def test_a_pod_as_the_api_shows_it(body: dict[str, Any], found: Pod | None):
    assert by_broker([body]) == (({1: found} if found else {}), ())


def test_numbers_may_begin_elsewhere():
    assert by_broker([pod(0), pod(2)], 100)[0] == {100: Pod("kafka-0"), 102: Pod("kafka-2")}


def test_pods_that_share_a_number_are_nobodys():
    found, twice = by_broker([pod(0), pod(0, "controller"), pod(1)])
    assert (found, twice) == ({1: Pod("kafka-1")}, ("controller-0", "kafka-0"))


def test_only_pods_with_the_labels_are_seen(watch: PodWatch):
    assert watch.look() == {b: Pod(f"kafka-{b}") for b in (0, 1, 2)}
    assert watch.problem == ""


def test_they_are_looked_at_every_few_seconds(api: MemoryApi, watch: PodWatch):
    watch.look()
    api.put(PODS, pod(1, leaving=True))
    assert watch.look() == {b: Pod(f"kafka-{b}") for b in (0, 1, 2)}
    watch._clock.advance(LOOK_SECONDS)  # type: ignore[attr-defined]
    seen = watch.look()
    assert seen is not None
    assert seen[1].leaving


def test_what_was_seen_last_counts_while_the_api_is_away(api: MemoryApi, watch: PodWatch):
    seen = watch.look()
    api.refuse("list", PODS, Transient("away"))
    watch._clock.advance(LOOK_SECONDS)  # type: ignore[attr-defined]
    assert watch.look() == seen
    assert watch.problem == "pods cannot be listed: away"
    api.refuse("list", PODS, None)
    watch._clock.advance(LOOK_SECONDS)  # type: ignore[attr-defined]
    watch.look()
    assert watch.problem == ""


def test_who_may_not_list_pods_sees_none_and_says_so(api: MemoryApi, watch: PodWatch):
    api.refuse("list", PODS, Terminal("lacks the verb 'list' on pods"))
    assert watch.look() is None
    assert "lacks the verb" in watch.problem


def test_labels_that_no_pod_has_are_named(watch: PodWatch):
    watch.want(Wanted("default", (("app", "kafak"),)))
    assert watch.look() == {}
    assert "no pod in namespace default has the labels app=kafak" in watch.problem


def test_labels_of_too_many_pods_are_named(api: MemoryApi, watch: PodWatch):
    api.put(PODS, pod(0, "controller"))
    assert 0 not in (watch.look() or {})
    assert "controller-0, kafka-0 have the same number" in watch.problem


def test_who_asks_for_something_else_does_not_see_what_was_there(watch: PodWatch):
    watch.look()
    watch.want(None)
    assert (watch.look(), watch.problem) == (None, "")
