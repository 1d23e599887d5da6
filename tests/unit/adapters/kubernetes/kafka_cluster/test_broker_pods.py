"""Brokers' pods as the API shows them: whose they are, ready or not, and what is wrong with looking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import PODS
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import DEFAULT_CONTAINER, LOOK_SECONDS, PodWatch, Wanted
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.broker_identity import UNMATCHED, Hosts, Pod
from bellwether.ports.errors import Terminal, Transient
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.kubernetes.broker_pods import pod
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording

KAFKA = Wanted("default", (("app", "kafka"),))
HEADLESS = "kafka-headless.default.svc.cluster.local"
HOSTS = {b: (f"kafka-{b}.{HEADLESS}",) for b in (0, 1, 2)}


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
        pytest.param({}, None, id="no policy asks"),
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


def looked(bodies: list[dict[str, Any]], hosts: Hosts, wanted: Wanted = KAFKA) -> tuple[Mapping[int, Pod] | None, str]:
    """The pods by broker, and the problem."""
    api = MemoryApi()
    for body in bodies:
        api.put(PODS, body)
    watch = PodWatch(api, ManualClock())
    watch.want(wanted)
    watch.look()
    return watch.by_broker(hosts), watch.problem


@pytest.mark.parametrize(
    ("body", "found"),
    [
        pytest.param(pod(1), Pod("kafka-1"), id="ready"),
        pytest.param(pod(1, ready=False), Pod("kafka-1", ready=False), id="not ready"),
        pytest.param(pod(1, sidecar_ready=False), Pod("kafka-1"), id="its sidecar is not ready"),
        pytest.param(named_container(pod(1, sidecar_ready=False)), Pod("kafka-1", ready=False), id="by annotation"),
        pytest.param(renamed(pod(1, sidecar_ready=False)), Pod("kafka-1", ready=False), id="the first container"),
        pytest.param(pod(1, leaving=True), Pod("kafka-1", leaving=True), id="terminating"),
        pytest.param(
            {"metadata": {"name": "kafka-1", "namespace": "default", "labels": {"app": "kafka"}}},
            Pod("kafka-1", ready=False),
            id="without a status yet",
        ),
        pytest.param(pod(1, phase="Failed"), None, id="evicted, and its successor not made yet"),
    ],
)
def test_a_pod_as_the_api_shows_it(body: dict[str, Any], found: Pod | None):
    assert looked([pod(0), body], HOSTS)[0] == {0: Pod("kafka-0"), **({1: found} if found else {})}


def test_pods_of_two_pools_are_brokers_that_advertise_their_hosts():
    hosts = {
        **{n: (f"controller-{n}.controller-headless.default.svc",) for n in (0, 1)},
        **{100 + n: (f"kafka-{n}.{HEADLESS}",) for n in (0, 1)},
    }
    found, problem = looked([pod(n, name) for n in (0, 1) for name in ("kafka", "controller")], hosts)
    assert found is not None
    assert {b: one.name for b, one in found.items()} == {
        0: "controller-0",
        1: "controller-1",
        100: "kafka-0",
        101: "kafka-1",
    }
    assert problem == ""


def test_address_of_a_pod_that_is_advertised_is_proof():
    body = pod(0)
    body["status"]["podIPs"] = [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}]
    assert looked([body], {7: ("10.0.0.7",), 8: ()})[0] == {7: Pod("kafka-0")}


@pytest.mark.parametrize("label", ["bellwether.dev/broker-id", "brokerId"])
def test_label_with_the_node_id_is_proof(label: str):
    assert looked([pod(0, labels={"app": "kafka", label: "7"})], {7: (), 8: ()})[0] == {7: Pod("kafka-0")}


@pytest.mark.parametrize("value", ["1234567890a", "²", "١", "", "0" * 62 + "1"])
def test_label_naming_no_other_broker_leaves_pod_to_its_host(value: str):
    assert looked([pod(1, labels={"app": "kafka", "brokerId": value})], HOSTS)[0] == {1: Pod("kafka-1")}


def test_index_of_a_pod_is_no_node_id():
    found, problem = looked([pod(0, labels={"app": "kafka", "apps.kubernetes.io/pod-index": "7"})], {7: (), 8: ()})
    assert found == {7: UNMATCHED, 8: UNMATCHED}
    assert_wording(problem)


def test_first_broker_id_is_a_statement():
    wanted = Wanted("default", KAFKA.labels, 100)
    assert looked([pod(0), pod(2)], {100: (), 101: (), 102: ()}, wanted)[0] == {
        100: Pod("kafka-0"),
        102: Pod("kafka-2"),
    }


def test_first_broker_id_that_a_host_contradicts_is_a_conflict():
    found, problem = looked([pod(1)], {1: (), 101: (f"kafka-1.{HEADLESS}",)}, Wanted("default", KAFKA.labels, 0))
    assert found == {1: UNMATCHED, 101: UNMATCHED}
    assert_wording(problem)


def test_numbers_count_while_each_broker_has_exactly_one_pod():
    api = MemoryApi()
    for number in (0, 1, 2):
        api.put(PODS, pod(number))
    clock = ManualClock()
    watch = PodWatch(api, clock)
    watch.want(KAFKA)
    hosts: dict[int, tuple[str, ...]] = {0: (), 1: (), 2: ()}
    watch.look()
    assert watch.by_broker(hosts) == {b: Pod(f"kafka-{b}") for b in (0, 1, 2)}
    api.objects.pop(("pods", "default", "kafka-1"))
    clock.advance(LOOK_SECONDS)
    watch.look()
    assert watch.by_broker(hosts) == {b: Pod(f"kafka-{b}") for b in (0, 2)}
    assert watch.by_broker({**hosts, 3: ()}) == dict.fromkeys(range(4), UNMATCHED), "nothing is settled now"


def test_pods_that_claim_one_broker_are_nobodys():
    labels = {"app": "kafka", "brokerId": "1"}
    found, problem = looked([pod(0, labels=labels), pod(1, labels=labels)], {1: (), 2: ()})
    assert found == {1: UNMATCHED, 2: UNMATCHED}
    assert_wording(problem)


def test_only_pods_with_the_labels_are_seen(watch: PodWatch):
    watch.look()
    assert watch.by_broker(HOSTS) == {b: Pod(f"kafka-{b}") for b in (0, 1, 2)}
    assert watch.problem == ""


def test_they_are_looked_at_every_few_seconds(api: MemoryApi, watch: PodWatch):
    watch.look()
    api.put(PODS, pod(1, leaving=True))
    watch.look()
    assert watch.by_broker(HOSTS) == {b: Pod(f"kafka-{b}") for b in (0, 1, 2)}
    watch._clock.advance(LOOK_SECONDS)  # type: ignore[attr-defined]
    watch.look()
    seen = watch.by_broker(HOSTS)
    assert seen is not None
    assert seen[1].leaving


def test_what_was_seen_last_counts_while_the_api_is_away(api: MemoryApi, watch: PodWatch):
    seen = watch.look()
    api.refuse("list", PODS, Transient("away"))
    watch._clock.advance(LOOK_SECONDS)  # type: ignore[attr-defined]
    assert watch.look() == seen
    assert_wording(watch.problem)
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
    watch.look()
    assert watch.by_broker(HOSTS) == dict.fromkeys(HOSTS, UNMATCHED)
    assert_wording(watch.problem)


def test_other_requests_do_not_see_former_result(watch: PodWatch):
    watch.look()
    watch.want(None)
    assert (watch.look(), watch.by_broker(HOSTS), watch.source, watch.problem) == (None, None, None, "")
