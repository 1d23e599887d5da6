"""The definitions on a real API server: what it accepts, refuses, fills in, merges and shows."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    LEADER_REBALANCES,
    POLICIES,
    SIGNAL_SOURCES,
    KubernetesClient,
    Resource,
    connect,
)
from bellwether.adapters.kubernetes.api_client import KINDS as RESOURCES
from bellwether.adapters.kubernetes.objects.signal_sources import report
from bellwether.adapters.kubernetes.objects.status_writer import StatusWriter
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leader_rebalance import APPROVE_ANNOTATION, LeaderRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.schema.crd_manifests import KINDS
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.api.v1alpha1.status.signal_entries import read_entries
from bellwether.api.v1alpha1.status.status_conditions import UNREAD, UNSEEN
from bellwether.controllers.reporting.status import rebalance_status
from bellwether.core.reasons import Reason
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.rebalance import RunState
from realparts.apiserver import ApiServer
from testkit.kubernetes import api_objects, bad_objects
from testkit.values.rebalances import plan_figures, rebalance

pytestmark = pytest.mark.apiserver

ROOT = Path(__file__).parents[3]
NAMESPACE = "crds"


@pytest.fixture(scope="module")
def server(apiserver: ApiServer) -> ApiServer:
    """The session's API server with the definitions of ``crds/`` and a namespace of this module's own."""
    apiserver.apply(*(ROOT / "crds" / f"{kind.plural}.yaml" for kind in KINDS))
    apiserver.create_namespace(NAMESPACE)
    return apiserver


def here(body: api_objects.Body, name: str = "") -> api_objects.Body:
    placed = copy.deepcopy(body)
    placed["metadata"]["namespace"] = NAMESPACE
    if name:
        placed["metadata"]["name"] = name
    return placed


@pytest.fixture(scope="module")
def api(server: ApiServer) -> KubernetesClient:
    """A client of that API server."""
    return connect(server.kubeconfig)


def create(api: KubernetesClient, body: api_objects.Body) -> None:
    (resource,) = (one for one in RESOURCES if one.kind == body["kind"])
    api.create(resource, NAMESPACE, here(body))


Try = Callable[[api_objects.Body], tuple[api_objects.Body, str]]


@pytest.fixture(scope="module")
def attempt(server: ApiServer, dry_run: Callable[[str, str, str], tuple[Any, str]]) -> Try:
    """Try to create it: the object as the server has it, or the refusal."""
    plurals = {kind.name: kind.plural for kind in KINDS}
    return lambda body: dry_run(NAMESPACE, plurals[body["kind"]], json.dumps(here(body)))


def apply_status(api: KubernetesClient, name: str, status: dict[str, Any], manager: str) -> None:
    """Server-side apply of a status, as one field manager, without taking anything from another one."""
    api.apply(BROKER_HEALTHS, NAMESPACE, name, {"status": status}, manager, "status", force=False)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.short)
def test_a_definition_is_established_and_all_of_its_schema_accepted(api: KubernetesClient, kind: Any):
    served = Resource("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "", "")
    conditions = api.get(served, "", f"{kind.plural}.bellwether.dev")["status"]["conditions"]
    states = {condition["type"]: condition["status"] for condition in conditions}
    assert states["Established"] == "True"
    assert states["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in states


def test_the_smallest_policy_gets_every_default_of_the_core(attempt: Try):
    created, _ = attempt(api_objects.policy("smallest"))
    given = LeadershipPolicy.read(here(api_objects.policy("smallest")))
    assert LeadershipPolicy.read(created).policy() == given.policy()
    wanted = given.spec.body()
    for empty in ("bootstrapServers", "vantages"):
        del wanted["detection"]["externalReachability"][empty]
    del wanted["detection"]["signalSources"]
    assert created["spec"] == wanted


BAD = {
    f"{name} in {body['kind']}": (body, field)
    for objects in (
        bad_objects.BAD_POLICIES,
        bad_objects.BAD_SOURCES,
        bad_objects.BAD_REBALANCES,
        bad_objects.BAD_HEALTHS,
    )
    for name, (body, field) in objects.items()
}


@pytest.mark.parametrize(("body", "field"), BAD.values(), ids=BAD)
def test_a_bad_object_is_refused_and_the_field_named(attempt: Try, body: api_objects.Body, field: str):
    assert field in attempt(body)[1]


@pytest.mark.parametrize(("body", "field"), bad_objects.UNKNOWN_FIELDS.values(), ids=bad_objects.UNKNOWN_FIELDS)
def test_an_unknown_field_is_refused_under_strict_validation(attempt: Try, body: api_objects.Body, field: str):
    assert re.search(f'unknown field ".*{field}"', attempt(body)[1])


@pytest.mark.parametrize(
    ("server_name", "accepted"),
    [
        ("kafka:1", True),
        ("[2001:db8::1]:9092", True),
        ("k_1.example:65535", True),
        ("kafka:0", False),
        (":9092", False),
    ],
)
def test_both_sides_judge_an_address_alike(attempt: Try, server_name: str, accepted: bool):
    body = api_objects.policy(kafka={"bootstrapServers": [server_name]})
    created, refusal = attempt(body)
    assert LeadershipPolicy.read(created) if accepted else "host:port" in refusal


def test_the_examples_are_accepted(attempt: Try):
    paths = sorted((ROOT / "examples" / "policies").glob("*.yaml"))
    bodies = [body for path in paths for body in yaml.safe_load_all(path.read_text())]
    assert {body["kind"] for body in bodies} == {kind.name for kind in KINDS}
    assert [refusal for body in bodies if (refusal := attempt(body)[1])] == []


def test_a_broker_health_stays_with_its_broker_and_policy(api: KubernetesClient):
    create(api, api_objects.health(7, name="fixed-7"))
    for patch, field in (({"brokerId": 8}, "spec.brokerId"), ({"policyRef": {"name": "other"}}, "spec.policyRef")):
        with pytest.raises(Terminal, match=rf"{field}.*is immutable"):
            api.merge(BROKER_HEALTHS, NAMESPACE, "fixed-7", {"spec": patch})


def test_an_override_is_patched_in_and_taken_away(api: KubernetesClient):
    create(api, api_objects.health(6, name="held-6"))
    patch = {"spec": {"override": {"state": "Demoted", "reason": "disk"}}}
    override = BrokerHealth.read(api.merge(BROKER_HEALTHS, NAMESPACE, "held-6", patch)).override_()
    assert override is not None
    assert (override.state, override.reason) == ("Demoted", "disk")
    left = api.merge(BROKER_HEALTHS, NAMESPACE, "held-6", {"spec": {"override": None}})
    assert BrokerHealth.read(left).override_() is None


def test_two_probers_and_the_operator_write_one_status_without_treading_on_each_other(api: KubernetesClient):
    create(api, api_objects.health(5, name="shared-5"))
    verdict = {"state": "Sick", "reason": "ExternallyUnreachable", "since": "2026-01-02T03:04:05Z"}
    west, east = api_objects.entry("west"), api_objects.entry("east", reading="Passing")
    apply_status(api, "shared-5", {"signals": [west]}, "prober-west")
    apply_status(api, "shared-5", {"signals": [east]}, "prober-east")
    apply_status(api, "shared-5", {"verdict": verdict, "leaders": 3}, "operator")
    apply_status(api, "shared-5", {"signals": [{**west, "reading": "Passing", "sequence": 8}]}, "prober-west")
    apply_status(api, "shared-5", {"verdict": verdict, "leaders": 0}, "operator")
    found = api.get(BROKER_HEALTHS, NAMESPACE, "shared-5")["status"]
    good, bad = read_entries(found["signals"])
    assert {(entry.source, entry.sequence, entry.reading) for entry in good} == {
        ("west", 8, "Passing"),
        ("east", 7, "Passing"),
    }
    assert not bad
    assert found["leaders"] == 0
    with pytest.raises(Transient, match="prober-west"):
        apply_status(api, "shared-5", {"signals": [api_objects.entry("west")]}, "prober-east")
    apply_status(api, "shared-5", {}, "prober-west")
    left = api.get(BROKER_HEALTHS, NAMESPACE, "shared-5")["status"]
    assert [entry["source"] for entry in left["signals"]] == ["east"]
    assert left["verdict"]["state"] == "Sick"


def test_a_status_is_written_apart_from_the_spec(api: KubernetesClient):
    create(api, {**api_objects.health(4, name="apart-4"), "status": {"leaders": 9}})
    assert "status" not in api.get(BROKER_HEALTHS, NAMESPACE, "apart-4")
    apply_status(api, "apart-4", {"leaders": 9}, "operator")
    assert api.get(BROKER_HEALTHS, NAMESPACE, "apart-4")["metadata"]["generation"] == 1


def test_a_status_has_its_bounds(api: KubernetesClient):
    create(api, api_objects.health(3, name="bound-3"))
    many = [api_objects.entry(f"v{n}") for n in range(65)]
    with pytest.raises(Terminal, match=r"signals: Too many"):
        apply_status(api, "bound-3", {"signals": many}, "prober")
    # An API server of 1.30 answers 500, as if it were its own fault.
    with pytest.raises((Terminal, Transient), match="source"):
        apply_status(api, "bound-3", {"signals": [api_objects.without(api_objects.entry(), "source")]}, "prober")


def test_kubectl_get_answers_who_is_sick_why_since_when_and_who_leads(server: ApiServer, api: KubernetesClient):
    create(api, api_objects.policy("oncall"))
    create(api, api_objects.health(2, name="oncall-2", override={"state": "Demoted", "reason": "disk"}))
    demoted = {
        "type": "Demoted",
        "status": "True",
        "reason": "OverrideDemoted",
        "message": "disk",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    verdict = {"state": "Sick", "reason": "StorageSlow", "since": "2026-01-02T03:04:05Z", "message": "80 ms"}
    apply_status(api, "oncall-2", {"verdict": verdict, "leaders": 17, "conditions": [demoted]}, "operator")
    ready = {**demoted, "type": "Ready", "reason": "LeadersMoving"}
    counts = {"sick": 1, "down": 3, "unknown": 4, "demoted": 2}
    status = {"conditions": [ready], "mode": "Suspended", "brokers": counts, "partitionsAtRisk": {"total": 60}}
    api.merge(POLICIES, NAMESPACE, "oncall", {"status": status}, "status")

    policies = [line.split() for line in server.kubectl("get", "lp", "oncall", "-n", NAMESPACE).splitlines()]
    head = "NAME MODE READY REASON SICK DOWN UNKNOWN DEMOTED AT-RISK CLUSTER AGE"
    assert policies[0] == head.split()
    assert policies[1][:9] == ["oncall", "Suspended", "True", "LeadersMoving", "1", "3", "4", "2", "60"]
    brokers = [line.split() for line in server.kubectl("get", "bh", "oncall-2", "-n", NAMESPACE).splitlines()]
    assert brokers[0] == ["NAME", "BROKER", "VERDICT", "REASON", "SINCE", "LEADERS", "DEMOTED", "WHY", "OVERRIDE"]
    assert brokers[1][:4] == ["oncall-2", "2", "Sick", "StorageSlow"]
    assert brokers[1][5:] == ["17", "True", "OverrideDemoted", "Demoted"]
    assert "80 ms" in server.kubectl("get", "bh", "oncall-2", "-n", NAMESPACE, "-o", "wide")
    both = server.kubectl("get", "lp,bh", "-n", NAMESPACE)
    assert "leadershippolicy.bellwether.dev/oncall" in both
    assert both.count("brokerhealth.bellwether.dev/") >= 1
    assert server.kubectl("get", "bellwether", "-n", NAMESPACE).count("bellwether.dev/") == both.count(
        "bellwether.dev/"
    )


def test_kubectl_explains_every_part(server: ApiServer):
    explained = server.kubectl("explain", "leadershippolicy.spec.demotion.maxBrokers")
    assert "rounded down" in " ".join(explained.split())
    assert "manual decision on the broker" in server.kubectl("explain", "brokerhealth.spec.override")


def test_source_without_a_prober_says_so_until_one_reports(server: ApiServer, api: KubernetesClient):
    create(api, api_objects.prometheus(query="up"))
    found = SignalSource.read(api.get(SIGNAL_SOURCES, NAMESPACE, "prom"))
    shown = server.kubectl("get", "ss", "prom", "-n", NAMESPACE).split()
    assert {"Unknown", "NoProber", "http://prometheus:9090"} <= set(shown)
    for problem, status in (("rule flush: Prometheus refuses the query", "False"), ("", "True")):
        report(api, found, problem, SystemClock(), "a prober uses it")
        found = SignalSource.read(api.get(SIGNAL_SOURCES, NAMESPACE, "prom"))
        (ready,) = found.status.conditions
        assert (ready.status, ready.message) == (status, problem or "a prober uses it")


def test_a_policy_that_no_operator_has_seen_says_so(server: ApiServer, api: KubernetesClient):
    create(api, api_objects.policy("unseen"))
    shown = api.get(POLICIES, NAMESPACE, "unseen")
    assert shown["status"]["conditions"] == [UNSEEN]
    assert LeadershipPolicy.read(shown).status.conditions == ()
    assert {"Unknown", "NoOperator"} <= set(server.kubectl("get", "lp", "unseen", "-n", NAMESPACE).split())
    written = {"conditions": [{**UNSEEN, "status": "True", "reason": "UpToDate"}], "clusterId": "c1uster"}
    StatusWriter(api).write_policy(NAMESPACE, "unseen", written)
    assert api.get(POLICIES, NAMESPACE, "unseen")["status"] == written


def test_a_rebalance_stays_with_its_policy_and_shows_its_plan(server: ApiServer, api: KubernetesClient):
    create(api, api_objects.rebalance("orders"))
    shown = api.get(LEADER_REBALANCES, NAMESPACE, "orders")
    assert shown["status"]["conditions"] == [UNREAD]
    assert LeaderRebalance.read(shown).spec == LeaderRebalance.read(api_objects.rebalance()).spec
    with pytest.raises(Terminal, match=r"spec\.policy.*is immutable"):
        api.merge(LEADER_REBALANCES, NAMESPACE, "orders", {"spec": {"policy": "other"}})
    server.kubectl("annotate", "lr", "orders", "-n", NAMESPACE, f"{APPROVE_ANNOTATION}=0123456789abcdef")
    found = LeaderRebalance.read(api.get(LEADER_REBALANCES, NAMESPACE, "orders"))
    assert found.metadata.annotations[APPROVE_ANNOTATION] == "0123456789abcdef"
    run = rebalance(RunState.PROPOSED, Reason.PLAN_PROPOSED, "a plan waits", digest="0123456789abcdef")
    figures = run.model_copy(update={"plan": plan_figures()})
    StatusWriter(api).write_rebalance(NAMESPACE, "orders", rebalance_status(found, figures, SystemClock().now()))
    head, row = server.kubectl("get", "lr", "orders", "-n", NAMESPACE).splitlines()
    assert head.split() == ["NAME", "POLICY", "READY", "STATE", "PLAN", "MOVES", "BEFORE", "AFTER", "LOSS", "AGE"]
    assert row.split()[:-1] == ["orders", "main", "True", "Proposed", "0123456789abcdef", "7", "200", "100"]


def test_the_former_field_of_a_policy_is_dropped(server: ApiServer, api: KubernetesClient):
    create(api, api_objects.policy("former", rebalance={"store": "default"}))
    assert "rebalance" not in api.get(POLICIES, NAMESPACE, "former")["spec"]
    assert "rebalance" not in server.kubectl("explain", "leadershippolicy.spec")
