"""The main job from end to end by the chart's accounts alone: nothing is refused, and nothing is left unused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, CONFIG_MAPS, JOBS, PODS, SIGNAL_SOURCES
from realparts.auditing import AuditedApiServer
from testkit.kubernetes import api_objects
from testkit.kubernetes.chart_accounts import OPERATOR, SAMPLER
from testkit.kubernetes.service_accounts import (
    CREDENTIALS,
    REACHABILITY,
    REPLICATION,
    RULES,
    SIDECARS,
    Crew,
)
from testkit.loads.load_configs import options
from testkit.processes.sites import POLICY

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
RULE = {"name": "down", "query": "up", "threshold": "1"}
DETECTION = {
    "externalReachability": {"vantages": ["zone-a"]},
    "signalSources": [{"name": "prom"}],
}
PROMETHEUS = {
    "url": "https://127.0.0.1:1",
    "bearerTokenSecretName": CREDENTIALS,
    "caSecretName": CREDENTIALS,
    "rules": [RULE],
}
OF_A_BROKER = ("StorageLatency", "SelfReachability", "Quarantine")
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "it failed"}


def test_operator_probers_sampler_and_people_do_their_work_with_exactly_what_the_chart_gives_them(
    crew: Crew, breakable_kafka: KafkaCluster, tmp_path: Path
) -> None:
    site = crew.site
    site.topics()
    crew.site.api.create(
        SIGNAL_SOURCES, site.namespace, api_objects.source("prom", site.namespace, prometheus=PROMETHEUS)
    )
    policy = crew.policy(detection=DETECTION, quarantine={"mode": "Enabled"}, rebalance={})
    crew.healths(policy, 77)  # of a broker that is known no more
    crew.order_that_is_over(77)
    crew.operator(*options(tmp_path, str(tmp_path / "history")))
    site.until_reported()
    site.until(lambda: not crew.orders(), 30, "broker 77's order is deleted")
    site.until(lambda: not site.health(77) and not stands(crew, 77), 30, "broker 77's object is deleted")
    before = site.orders()
    start_probers(crew)
    site.until_restored(before)

    proxy = breakable_kafka.proxy
    assert proxy is not None
    proxy.cut("broker-2")
    site.until_demoted(2, before)
    proxy.mend("broker-2")
    site.until_restored(before)

    commands_of_people(crew, tmp_path)
    over_tls(crew)
    sample(crew, tmp_path)
    job_that_fails(crew)
    end_of_a_policy(crew)
    accounts = (OPERATOR, SAMPLER, REACHABILITY, REPLICATION, RULES, SIDECARS)
    assert {call for account in accounts for call in crew.calls(account) if call.code in (401, 403)} == set()
    end_of_a_namespace(crew)  # which takes nothing new

    assert not [call for account in accounts for call in crew.calls(account) if call.forbidden]
    unused = {(account, one.resource, one.verb) for account in accounts for one in crew.unused(account)}
    killed = {(OPERATOR, "pods", "get"), (OPERATOR, "nodes", "get")}
    assert unused <= killed, "an operator asks for them where another one was killed while it sent"


def stands(crew: Crew, broker: int) -> bool:
    return crew.site.api.find(BROKER_HEALTHS, crew.site.namespace, f"{POLICY}-{broker}") is not None


def start_probers(crew: Crew) -> None:
    """All kinds; each has written its word."""
    site = crew.site
    disk = crew.disk(1)
    listener = site.kafka.broker(1).external_listen.rpartition(":")[2]
    crew.prober(REACHABILITY, "reachability", "--vantage", "zone-a", policy=None)
    crew.prober(REPLICATION, "replication", policy=None)
    crew.prober(RULES, "prometheus", policy=None)
    crew.prober(SIDECARS, "storage", "--directory", str(disk), pod="kafka-1")
    crew.agent(1)
    crew.prober(SIDECARS, "self", "--directory", str(disk), "--port", listener, pod="kafka-1")
    for broker, kind in (
        *((b, "ExternalReachability") for b in (1, 2, 3)),
        *((1, kind) for kind in (*OF_A_BROKER, "ReplicationLag", "Prometheus")),
    ):
        site.until(lambda b=broker, k=kind: crew.entry(b, k), 60, f"{kind} speaks of broker {broker}")  # type: ignore[misc]
    site.until(lambda: source_ready(crew) == "False", 60, "the source's status is written", site.logs)
    site.change(detection={"signalSources": None})  # whose Prometheus does not answer, so no broker would be healthy
    site.until(lambda: [site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 60, "all are healthy", site.logs)


def source_ready(crew: Crew) -> str:
    found = crew.site.api.get(SIGNAL_SOURCES, crew.site.namespace, "prom")
    return str(found["status"]["conditions"][0]["status"])


def commands_of_people(crew: Crew, folder: Path) -> None:
    """Look, demote, release; and an account that may only look can do no more."""
    site, policy = crew.site, ("--policy", POLICY, "-n", crew.site.namespace)
    before = site.orders()
    viewer = crew.person("-view")
    looked = crew.ran(viewer, "explain", "1", *policy)
    assert looked.returncode == 0, looked.stderr
    tried = crew.ran(viewer, "demote", "1", *policy)
    assert tried.returncode == 1
    assert "lacks the verb 'patch' on brokerhealths" in " ".join(tried.stderr.split())
    on_call = crew.person("-edit")
    for command in (("demote", "1", "--reason", "disk swap"), ("release", "1")):
        done = crew.ran(on_call, *command, *policy)
        assert done.returncode == 0, done.stdout + done.stderr
    site.until_restored(before)


def sample(crew: Crew, folder: Path) -> None:
    """Every policy of the namespace, over the listener whose credentials are in a Secret."""
    kubeconfig, samples = crew.accounts.kubeconfig(SAMPLER), folder / "samples"
    where = ["-n", crew.site.namespace, "--period", "1", *options(folder, str(samples))]
    command = [sys.executable, "-m", "bellwether", "sample", "--log-format", "json", *where]
    sampler = crew.site.start("sampler", command, {"KUBECONFIG": str(kubeconfig)})
    crew.site.until(lambda: list(samples.rglob("*.parquet")), 60, "samples are written", crew.site.logs)
    sampler.stop()


def over_tls(crew: Crew) -> None:
    """Operator and probers go on over that listener."""
    site = crew.site
    listener = {"externalReachability": {"vantages": ["zone-a"], "listeners": ["SECURE"]}}
    crew.policy(kafka=crew.secured(), detection=listener)
    before = site.demote_and_wait(3, "its turn")
    site.lift_and_wait(3, before)


def job_that_fails(crew: Crew) -> None:
    """A load plan is asked for; the last messages of its pod are reported."""
    site, namespace = crew.site, crew.site.namespace
    command = "rebalance", "--wait", "0", "--policy", POLICY, "-n", namespace
    tried = crew.ran(crew.person(), *command)
    assert tried.returncode == 1
    assert "lacks the verb 'patch' on leaderrebalances" in " ".join(tried.stderr.split())
    asked = crew.ran(crew.person("-rebalance"), *command)
    assert asked.returncode == 3, asked.stdout + asked.stderr
    site.until(lambda: site.api.list(JOBS, namespace), 30, "there is a Job", site.status)
    (job,) = site.api.list(JOBS, namespace)
    container = {"name": "plan", "image": "bellwether:test"}
    metadata = {"name": "plan-1", "namespace": namespace, "labels": job["spec"]["template"]["metadata"]["labels"]}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    site.api.create(PODS, namespace, pod)
    ended = {"terminated": {"exitCode": 3, "reason": "Error", "message": "no samples of yesterday"}}
    state = {**container, "ready": False, "restartCount": 0, "imageID": "", "state": ended}
    site.api.merge(PODS, namespace, "plan-1", {"status": {"containerStatuses": [state]}}, sub="status")
    moment = "2026-01-01T00:00:00Z"
    target = {**FAILED, "type": "FailureTarget"}
    status = {"startTime": moment, "failed": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    site.api.merge(
        JOBS, namespace, job["metadata"]["name"], {"status": {**status, "conditions": [target, FAILED]}}, sub="status"
    )
    site.until(lambda: "no samples of yesterday" in str(site.rebalance()), 60, "the pod's words", site.rebalance)


def end_of_a_policy(crew: Crew) -> None:
    """It restores, and takes its record away."""
    site = crew.site
    before = site.demote_and_wait(1)
    site.delete()
    site.until(site.gone, 90, "the policy is gone")
    site.until_restored(before, 10)  # no process is left to do it; a broker may know a moment later
    assert site.record() is None


def end_of_a_namespace(crew: Crew) -> None:
    """Its undo record is exported next to the operator, under the next name where one is taken."""
    site = crew.site
    site.kubectl("delete", "bh", "--all")  # as Kubernetes' garbage collector does, which does not run here
    made = crew.policy(deletionPolicy="Abandon")
    site.until_reported()
    site.demote_and_wait(1)
    export = f"{object_names.export(POLICY, made['metadata']['uid'])}.{site.namespace}"
    taken = {"metadata": {"name": export, "namespace": crew.home}, "data": {"record.json": "of another tool"}}
    site.api.create(CONFIG_MAPS, crew.home, taken)
    crew.server.kubectl("delete", "namespace", site.namespace, "--wait=false")
    site.delete()
    site.until(site.gone, 60, "the policy is gone", site.logs)
    kept = site.api.get(CONFIG_MAPS, crew.home, f"{export}-2")
    assert json.loads(kept["data"]["record.json"])


@pytest.mark.parametrize("everywhere", [True, False], ids=["in all namespaces", "in one"])
def test_the_operator_may_come_before_the_definitions_with_rights(
    kafka: KafkaCluster, tmp_path: Path, everywhere: bool
) -> None:
    with AuditedApiServer(tmp_path / "bare") as server:
        crew = Crew(server, kafka, tmp_path / "crew", everywhere=everywhere)
        try:
            crew.site.topics({crew.site.topic: 6})
            crew.operator()
            crew.site.until(lambda: waits(crew), 60, "it waits for the definitions", crew.site.logs)
            server.apply(ROOT / "crds")
            crew.policy()
            crew.site.until_reported()
            assert not [call for call in crew.calls(OPERATOR) if call.forbidden]
            crew.site.delete()
            crew.site.until(crew.site.gone, 60, "the policy is gone")
        finally:
            crew.site.close()


def waits(crew: Crew) -> bool:
    return "definitions_missing" in crew.site.logs()


@pytest.mark.parametrize("gone", ["leadershippolicies", "brokerhealths"])
def test_an_operator_whose_definitions_are_removed_ends_and_waits_for_them_at_its_next_start(
    kafka: KafkaCluster, tmp_path: Path, gone: str
) -> None:
    with AuditedApiServer(tmp_path / "bare") as server:
        crew = Crew(server, kafka, tmp_path / "crew", everywhere=True)
        try:
            server.apply(ROOT / "crds")
            crew.site.topics({crew.site.topic: 6})
            operator = crew.operator()
            crew.policy()
            crew.site.until_reported()
            crew.site.delete()
            crew.site.until(crew.site.gone, 60, "the policy is gone")
            server.kubectl("delete", "crd", f"{gone}.bellwether.dev")
            crew.site.until(lambda: not operator.alive, 60, "it ends", crew.site.logs)
            crew.operator()
            crew.site.until(lambda: waits(crew), 60, "it waits for the definition", crew.site.logs)
            server.apply(ROOT / "crds")
            crew.policy()
            crew.site.until_reported()
            crew.site.demote(3, "its turn")
            crew.site.until_demoted(3, crew.site.orders())
            assert not [call for call in crew.calls(OPERATOR) if call.forbidden]
            crew.site.delete()
            crew.site.until(crew.site.gone, 60, "the policy is gone")
        finally:
            crew.site.close()
