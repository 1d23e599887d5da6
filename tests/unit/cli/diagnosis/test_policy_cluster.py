"""``bellwether doctor --policy``: the policy's cluster, with its addresses and Secrets, and what its record says."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, PODS, POLICIES, SECRETS, Object
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.cli.diagnosis import policy_cluster
from bellwether.cli.kubernetes_target import Target
from bellwether.cli.main import main
from bellwether.controllers.reporting.status import broker_status, policy_status
from bellwether.core.doctor.unhealthy_leaders import JudgedBrokers, UnhealthyBroker
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.model.undo_record import Cause
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.kafka_connection import Connection, Mechanism
from bellwether.ports.errors import Terminal
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.values.builders import CLUSTER_ID, cluster, decisions, demoted, partition, record, said, snapshot, verdicts
from testkit.values.security_settings import PLAINTEXT

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
    made.serve_commands(monkeypatch)
    return made


def doctor(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["doctor", *arguments])
    return found.exit_code, " ".join(found.output.split())


def test_addresses_and_credentials_are_those_of_the_policy(api: MemoryApi) -> None:
    with policy_cluster.policy_cluster(Target("main"), ()) as found:
        security = found.connection.security
        assert (found.connection.bootstrap, security.mechanism) == ((CLOSED,), Mechanism.PLAIN)
        assert (security.username, security.password) == ("anna", "opensesame")
        assert found.cluster_id == "cluster-a"


def test_other_addresses_may_lead_to_the_same_cluster_only(api: MemoryApi) -> None:
    with policy_cluster.policy_cluster(Target("main"), ("localhost:9092",)) as found:
        assert found.connection.bootstrap == ("localhost:9092",)
        found.check("cluster-a")
        with pytest.raises(Terminal, match="lead to Kafka cluster cluster-b, and the policy is pinned to cluster-a"):
            found.check("cluster-b")


def test_the_brokers_that_the_policy_has_demoted_are_named(api: MemoryApi) -> None:
    records = ConfigMapRecords(api, "default", "main")
    taken = records.take_over("cluster-a")
    records.save(replace(taken, demoted={1: demoted(1)}))
    with policy_cluster.policy_cluster(Target("main"), ()) as found:
        assert_wording(found.notes[:1])


def test_a_cluster_that_cannot_be_reached_is_named_without_its_password(api: MemoryApi) -> None:
    code, output = doctor("--policy", "main")
    assert code == 1
    assert f"no broker answered: {CLOSED}" in output
    assert "opensesame" not in output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--policy", "main"), 2, "--command-config requires --bootstrap HOST:PORT, or bootstrap.servers in the file"),
        ((), 2, "bootstrap.servers in the file of --command-config, without --policy"),
    ],
)
def test_what_is_wrong_is_said_with_what_exists(
    api: MemoryApi, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=SSL\n")
    found = doctor(*arguments, "--command-config", str(tmp_path / "client.properties"))
    assert (found[0], said in found[1]) == (code, True), found[1]


def test_a_missing_secret_is_named(api: MemoryApi) -> None:
    api.delete(SECRETS, "default", "kafka")
    code, output = doctor("--policy", "main")
    assert code == 1
    assert_wording(output)


ENFORCE = Policy(name="main", mode=Mode.ENFORCE)
LED = cluster(*(partition(index=i, replicas=(1, 2, 3)) for i in range(4)))


def judged(api: MemoryApi, report: Report) -> None:
    """The policy and its brokers as the operator leaves them after a reconcile."""
    body = api.get(POLICIES, "default", "main")
    api.put(POLICIES, body | {"status": policy_status(report, 1, {}, None, operator="default/operator-1")})
    for broker in report.brokers:
        health = api_objects.health(broker.broker)
        health["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
        api.put(BROKER_HEALTHS, health | {"status": broker_status(broker, 1, {}, report.now)})


def brokers_judged(api: MemoryApi) -> JudgedBrokers:
    with policy_cluster.policy_cluster(Target("main"), ()) as found:
        assert found.judged is not None
        return found.judged


def unhealthy(api: MemoryApi) -> tuple[tuple[UnhealthyBroker, ...] | None, str]:
    with policy_cluster.policy_cluster(Target("main"), ()) as found:
        return found.judged.unhealthy if found.judged is not None else None, "; ".join(found.notes)


def test_a_sick_broker_comes_with_why_it_still_leads_and_what_to_do(api: MemoryApi) -> None:
    suspended = replace(ENFORCE, suspend=True)
    judged(api, said(snapshot(LED), suspended, verdicts(LED, sick=[1]), Plan(decisions=decisions(1))))
    brokers, _ = unhealthy(api)
    assert brokers is not None
    [sick] = brokers
    assert (sick.broker, sick.state, sick.reason) == (1, "Sick", "ExternallyUnreachable")
    assert sick.kept.startswith("NotEnforcing: ")
    verdict, policy = sick.remediations
    assert_wording(verdict.checks, policy.action)


def test_a_broker_that_the_cap_keeps_leading_can_be_demoted_by_hand(api: MemoryApi) -> None:
    hold = BrokerHold(1, Reason.CAP_REACHED, "2 of 3 brokers are demoted")
    plan = Plan(decisions=replace(decisions(), held=(hold,)))
    judged(api, said(snapshot(LED), ENFORCE, verdicts(LED, sick=[1]), plan))
    brokers, _ = unhealthy(api)
    assert brokers is not None
    assert_wording(brokers[0].kept)
    assert brokers[0].by_hand is not None
    assert_wording(brokers[0].by_hand.commands)


def test_a_healthy_broker_that_an_override_keeps_from_leading_comes_with_who_set_it_and_what_ends_it(
    api: MemoryApi,
) -> None:
    undo = record(None, demoted(3, Cause.OVERRIDE))
    judged(api, said(snapshot(LED, undo=undo), ENFORCE, verdicts(LED, sick=[2]), Plan(decisions=decisions(3))))
    assert brokers_judged(api).idle == {}, "without its override it is not known who wants that"
    health = api.get(BROKER_HEALTHS, "default", api_objects.health(3)["metadata"]["name"])
    override = {"state": "Demoted", "reason": "kernel update, OPS-412", "by": "anna", "until": "2026-01-01T08:00:00Z"}
    api.put(BROKER_HEALTHS, health | {"spec": health["spec"] | {"override": override}})
    (idle,) = brokers_judged(api).idle.values()
    assert_wording(idle.action, idle.commands)


def test_a_slow_broker_that_acks_all_waits_for_comes_with_why_it_is_not_held(api: MemoryApi) -> None:
    slow = {b: replace(v, slow=Reason.STORAGE_SLOW if b == 2 else None) for b, v in verdicts(LED, sick=[2]).items()}
    judged(api, said(snapshot(LED), ENFORCE, slow, Plan(decisions=decisions(2))))
    (found,) = brokers_judged(api).slow
    assert (found.broker, found.reason, found.not_held) == (
        2,
        "StorageSlow",
        "quarantine is off (spec.quarantine.mode)",
    )
    assert_wording(found.remediations[1].commands)


def test_a_cluster_of_healthy_brokers_has_none_that_is_unhealthy(api: MemoryApi) -> None:
    judged(api, said(snapshot(LED), ENFORCE, verdicts(LED), Plan()))
    assert unhealthy(api) == ((), "")


def test_missing_or_old_verdicts_are_not_taken_as_good(api: MemoryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unhealthy(api) == (
        None,
        "policy default/main judges no broker: whether clients reach the leaders is unknown",
    )
    judged(api, said(snapshot(LED), ENFORCE, verdicts(LED, unknown=[2]), Plan()))
    renewed = {"holderIdentity": "operator-1", "renewTime": "2026-01-01T00:00:00+00:00"}
    lease = {"metadata": {"name": object_names.cluster_lease(CLUSTER_ID), "namespace": "default"}, "spec": renewed}
    api.put(LEASES, lease)
    monkeypatch.setattr(policy_cluster.SystemClock, "now", lambda _: datetime(2026, 1, 2, tzinfo=UTC))
    brokers, notes = unhealthy(api)
    assert brokers == ()
    assert_wording(notes)


def test_verdicts_that_may_not_be_read_are_said_to_be_missing(api: MemoryApi) -> None:
    api.refuse("list", BROKER_HEALTHS, Terminal("brokerhealths is forbidden: add the permission list"))
    assert unhealthy(api) == (
        None,
        "the verdicts of policy default/main cannot be read: brokerhealths is forbidden: add the permission list",
    )


def agent_pod(broker: int, probe: dict[str, int] | None, namespace: str = "default") -> Object:
    """A broker's pod with a quarantine agent."""
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    kafka = {"name": "kafka", **mounts, **({"livenessProbe": probe} if probe is not None else {})}
    exporter = {"name": "exporter", "livenessProbe": {"periodSeconds": 10, "failureThreshold": 3}}
    prober = {"name": "bellwether-storage", **mounts}
    agent = {"name": "bellwether-quarantine-agent", "args": ["quarantine-agent", "--policy=main"]}
    return {
        "metadata": {"name": f"kafka-{broker}", "namespace": namespace},
        "spec": {"containers": [exporter, kafka, prober, agent]},
    }


def lacks(api: MemoryApi) -> tuple[str, ...]:
    """What quarantine lacks."""
    with policy_cluster.policy_cluster(Target("main"), ()) as found:
        assert found.quarantine is not None
        return found.quarantine.missing


def quarantine_on(api: MemoryApi, **entries: list[Object]) -> None:
    """Enable quarantine; the entries of brokers 1 to 3, by ``b1`` to ``b3``."""
    body = api.get(POLICIES, "default", "main")
    api.put(POLICIES, body | {"spec": body["spec"] | {"quarantine": {"mode": "Enabled"}}})
    for broker in (1, 2, 3):
        health = api_objects.health(broker) | {"status": {"signals": entries.get(f"b{broker}", [])}}
        health["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
        api.put(BROKER_HEALTHS, health)


def reports(broker: int, type_: str, reading: str = "Passing", message: str = "ready") -> Object:
    return api_objects.entry(f"broker-{broker}", type=type_, reading=reading, message=message)


def test_quarantine_that_is_off_says_how_to_enable_it(api: MemoryApi) -> None:
    assert_wording(lacks(api))


def test_what_quarantine_lacks_is_listed_by_broker_with_the_remedy(api: MemoryApi) -> None:
    cannot = "no permission to signal the broker's process: it runs as user 1000, the agent as user 1001: set x"
    quarantine_on(
        api,
        b1=[reports(1, "StorageLatency"), reports(1, "Quarantine")],
        b2=[reports(2, "StorageLatency"), reports(2, "Quarantine", "Unknown", cannot)],
        b3=[reports(3, "StorageLatency", "Unknown", "the prober cannot measure")],
    )
    api.put(PODS, agent_pod(1, {"periodSeconds": 10, "failureThreshold": 3}))
    api.put(PODS, agent_pod(2, {"periodSeconds": 10, "failureThreshold": 75}))
    api.put(PODS, agent_pod(3, None))
    unable, unmeasured, absent, impatient = lacks(api)
    assert_wording(unmeasured, unable, absent, impatient)


def test_where_nothing_is_missing_for_quarantine_nothing_is_listed(api: MemoryApi) -> None:
    both = {f"b{b}": [reports(b, "StorageLatency"), reports(b, "Quarantine")] for b in (1, 2, 3)}
    quarantine_on(api, **both)
    api.put(PODS, agent_pod(1, {"periodSeconds": 10, "failureThreshold": 75}))
    assert lacks(api) == ()
    assert unchecked(api) == []


def unchecked(api: MemoryApi) -> list[str]:
    """What the doctor says that it did not check of liveness probes."""
    with policy_cluster.policy_cluster(Target("main"), ()) as found:
        return [note for note in found.notes if note.startswith("liveness probes were not checked")]


def of_strimzi(api: MemoryApi, namespace: str | None) -> None:
    """The policy's cluster is one of Strimzi, in another namespace where one is named."""
    strimzi = {"clusterName": "kafka", **({"namespace": namespace} if namespace else {})}
    body = api.get(POLICIES, "default", "main")
    api.put(POLICIES, body | {"spec": body["spec"] | {"kafka": {"strimzi": strimzi}}})


@pytest.fixture
def unconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy's connection is not looked for."""
    monkeypatch.setattr(policy_cluster, "connection", lambda *_: Connection((CLOSED,), PLAINTEXT))


@pytest.mark.usefixtures("unconnected")
def test_pods_are_looked_for_in_the_namespace_of_the_strimzi_cluster(api: MemoryApi) -> None:
    short = {"periodSeconds": 10, "failureThreshold": 3}
    quarantine_on(api, **{f"b{b}": [reports(b, "StorageLatency"), reports(b, "Quarantine")] for b in (1, 2, 3)})
    of_strimzi(api, "brokers")
    api.put(PODS, agent_pod(1, None))
    assert_wording(unchecked(api))
    api.put(PODS, agent_pod(2, short, "brokers"))
    assert unchecked(api) == []
    (impatient,) = lacks(api)
    assert_wording(impatient)


@pytest.mark.usefixtures("unconnected")
def test_pods_that_may_not_be_listed_are_said_not_to_be_checked_with_what_to_grant(api: MemoryApi) -> None:
    quarantine_on(api)
    of_strimzi(api, None)
    api.refuse("list", PODS, Terminal("pods is forbidden"))
    assert_wording(unchecked(api))


def test_a_policy_without_quarantine_needs_no_pods(api: MemoryApi) -> None:
    api.refuse("list", PODS, Terminal("pods is forbidden"))
    assert unchecked(api) == []


@pytest.mark.parametrize(
    ("given", "watched"),
    [({}, ("EXTERNAL",)), ({"listeners": ["A", "B"]}, ("A", "B")), ({"enabled": False}, ())],
    ids=["the default", "several", "off"],
)
def test_the_listeners_are_those_that_the_policy_watches(
    api: MemoryApi, given: dict[str, object], watched: tuple[str, ...]
) -> None:
    policy = api.get(POLICIES, "default", "main")
    policy["spec"]["detection"] = {"externalReachability": given}
    api.put(POLICIES, policy)
    with policy_cluster.policy_cluster(Target("main"), ()) as found:
        assert found.listeners == watched
