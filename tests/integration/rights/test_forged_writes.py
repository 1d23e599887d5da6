"""What a stolen prober's token cannot write: everything but its own entries and its own Lease, whatever RBAC says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, KubernetesClient, Object, connect
from bellwether.adapters.kubernetes.leases import POLICY_ANNOTATION
from bellwether.adapters.kubernetes.objects.quarantine_orders import LeaseOrders
from bellwether.adapters.kubernetes.objects.signal_writer import SOURCE_ANNOTATION, TYPE_ANNOTATION
from bellwether.ports.errors import Terminal
from testkit.kubernetes.chart_accounts import OPERATOR
from testkit.kubernetes.forged_writes_fixture import RULES, SIDECARS, SINGLE, STRANGER, ZONE_A, ZONE_B, Stage, entry
from testkit.values.quarantine_inputs import ordered
from waiting import until

if TYPE_CHECKING:
    from realparts.auditing import AuditedApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.chart]

OUTSIDE = "ExternalReachability"
Forge = Callable[[Stage, KubernetesClient], Any]


@pytest.fixture(scope="module")
def stage(audited: AuditedApiServer) -> Iterator[Stage]:
    Stage(audited).accounts.remove()  # what was uninstalled must bind again when it is installed again
    made = Stage(audited)
    a, b = made.by(ZONE_A), made.by(ZONE_B)
    lease(made, b, "zone-b")
    lease(made, made.admin, "cluster", name="bellwether-cluster-x7f3", annotations={})
    LeaseOrders(made.admin, made.namespace, f"{made.namespace}/main", "the operator").keep({1: ordered()})
    for broker in (1, 2):
        made.apply(a, broker, entry(OUTSIDE, "zone-a"), manager="a")
        made.apply(b, broker, entry(OUTSIDE, "zone-b"), manager="b")
        made.apply(made.by(OPERATOR), broker, manager="op", leaders=4, verdict=VERDICT)
    until_bound(made, a)
    yield made
    made.accounts.remove()


VERDICT = {"state": "Healthy", "reason": "SignalsPassing", "message": "well", "since": "2026-01-01T00:00:00Z"}
SICK = {**VERDICT, "state": "Sick", "reason": "ExternallyUnreachable"}


def until_bound(stage: Stage, api: KubernetesClient) -> None:
    """An admission policy takes a moment to be enforced; that on the operator was written last, the others are by then.

    What could still be written is taken back.
    """
    until(lambda: refuses(lambda: stage.apply(api, 3, entry(OUTSIDE, "zone-b"), manager="early")))
    # Not by an apply of nothing: broker 3 has no other status, and null, which is left of it, is refused by the schema.
    merged(stage, stage.admin, {"status": {"signals": None}}, broker=3)
    override = {"spec": {"override": {"state": "Promoted", "reason": "x"}}}
    until(lambda: refuses(lambda: merged(stage, stage.by(OPERATOR), override, broker=3, sub="")))
    merged(stage, stage.admin, {"spec": {"override": None}}, broker=3, sub="")


def refuses(write: Callable[[], object]) -> bool:
    try:
        write()
    except Terminal:
        return True
    return False


def lease(
    stage: Stage,
    api: KubernetesClient,
    source: str,
    *,
    name: str = "",
    annotations: dict[str, str] | None = None,
    policy: str = "main",
    type_: str = OUTSIDE,
) -> Object:
    """Create a Lease as the prober of that source does."""
    said = {POLICY_ANNOTATION: f"{stage.namespace}/{policy}", TYPE_ANNOTATION: type_, SOURCE_ANNOTATION: source}
    metadata = {"name": name or object_names.prober_lease(policy, type_, source), "namespace": stage.namespace}
    body = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {**metadata, "annotations": said if annotations is None else annotations},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 10},
    }
    return api.create(LEASES, stage.namespace, body)


def renew(stage: Stage, api: KubernetesClient, name: str, **annotations: str) -> Object:
    """Take an existing Lease from its holder."""
    found = stage.admin.get(LEASES, stage.namespace, name)
    said = {**(found["metadata"].get("annotations") or {}), **annotations}
    found["metadata"]["annotations"], found["spec"]["holderIdentity"] = said, "thief"
    return api.replace(LEASES, stage.namespace, found)


def merged(stage: Stage, api: KubernetesClient, patch: Object, *, broker: int = 1, sub: str = "status") -> Object:
    return api.merge(BROKER_HEALTHS, stage.namespace, f"main-{broker}", patch, sub=sub)


def with_both(stage: Stage, reading: str) -> Object:
    """The whole list as it is, but for zone-b's reading."""
    found = stage.health(1)["status"]["signals"]
    changed = [{**e, "reading": reading} if e["source"] == "zone-b" else e for e in found]
    return {"status": {"signals": changed}}


def replaced(stage: Stage, api: KubernetesClient) -> Object:
    whole = stage.health(1)
    whole["status"] = {**whole["status"], "verdict": SICK}
    return api._call("PUT", BROKER_HEALTHS, stage.namespace, "main-1", sub="status", body=whole)


def unchanged(stage: Stage, source: str) -> Object:
    return next(e for e in stage.health(1)["status"]["signals"] if e["source"] == source)


NAME_B = object_names.prober_lease("main", OUTSIDE, "zone-b")
FORGED: dict[str, tuple[str, Forge]] = {
    "another vantage's entry": ("write only", lambda s, a: s.apply(a, 3, entry(OUTSIDE, "zone-b"))),
    "another vantage's word, by force": (
        "write only",
        lambda s, a: s.apply(a, 1, entry(OUTSIDE, "zone-a"), entry(OUTSIDE, "zone-b", "Failing")),
    ),
    "another vantage's word, by merge": ("write only", lambda s, a: merged(s, a, with_both(s, "Failing"))),
    "the removal of all entries": ("write only", lambda s, a: merged(s, a, {"status": {"signals": []}})),
    "the removal of the whole status": ("operator's", lambda s, a: merged(s, a, {"status": None})),
    "a share in another's entry, unchanged": (
        "even unchanged",
        lambda s, a: s.apply(a, 1, unchanged(s, "zone-a"), unchanged(s, "zone-b")),
    ),
    "another kind of signal": ("write only", lambda s, a: s.apply(a, 1, entry("StorageLatency", "zone-a"))),
    "another source of its kind": ("write only", lambda s, a: s.apply(a, 1, entry(OUTSIDE, "zone-c"))),
    "an entry that lives by another's Lease": (
        "leaseName",
        lambda s, a: s.apply(a, 3, entry(OUTSIDE, "zone-a", lease=NAME_B)),
    ),
    "a verdict": ("operator's", lambda s, a: s.apply(a, 1, verdict=SICK)),
    "a verdict, by replacing the status": ("operator's", replaced),
    "a verdict where there is none": ("operator's", lambda s, a: s.apply(a, 3, verdict=SICK)),
    "a count of leaders": ("operator's", lambda s, a: merged(s, a, {"status": {"leaders": 0}})),
    "the removal of a verdict": ("operator's", lambda s, a: merged(s, a, {"status": {"verdict": None}})),
    "an override": (
        "no other part",
        lambda s, a: merged(s, a, {"spec": {"override": {"state": "Demoted", "reason": "x"}}}, sub=""),
    ),
    "labels": ("no other part", lambda s, a: merged(s, a, {"metadata": {"labels": {"a": "b"}}}, sub="")),
    "a BrokerHealth's end": ("no other part", lambda s, a: a.delete(BROKER_HEALTHS, s.namespace, "main-3")),
    "a BrokerHealth of its own": (
        "no other part",
        lambda s, a: a.apply(
            BROKER_HEALTHS, s.namespace, "main-9", {"spec": {"brokerId": 9, "policyRef": {"name": "main"}}}, "m"
        ),
    ),
    "another vantage's entry for another policy": (
        "write only",
        lambda s, a: other_policy(s, a, OUTSIDE, "zone-b"),
    ),
    "a Lease of no policy": (
        "may not write the Lease",
        lambda s, a: lease(s, a, "zone-a", name="bellwether-prober-x", annotations={}),
    ),
    "another prober's Lease": ("may not write the Lease", lambda s, a: renew(s, a, NAME_B)),
    "another prober's Lease, relabelled as its own": (
        "it is not the Lease of",
        lambda s, a: renew(s, a, NAME_B, **{SOURCE_ANNOTATION: "zone-a"}),
    ),
    "another prober's Lease before that one comes": (
        "may not write the Lease",
        lambda s, a: lease(s, a, "zone-c"),
    ),
    "its own words on another's name": (
        "it is not the Lease of",
        lambda s, a: lease(s, a, "zone-a", name=object_names.prober_lease("main", OUTSIDE, "zone-c")),
    ),
    "the Lease of the Kafka cluster": ("may not write the Lease", lambda s, a: renew(s, a, "bellwether-cluster-x7f3")),
    "an order to hold a broker": (
        "it is not the Lease of",
        lambda s, a: lease(s, a, "zone-a", name=object_names.quarantine_order(s.namespace, "main", 2)),
    ),
    "the renewal of an order to hold a broker": (
        "may not write the Lease",
        lambda s, a: renew(s, a, object_names.quarantine_order(s.namespace, "main", 1)),
    ),
    "a Lease of other software": ("may not write the Lease", lambda s, a: lease(s, a, "x", name="some-controller")),
}


def other_policy(stage: Stage, account: KubernetesClient, type_: str, source: str) -> Any:
    body = {"status": {"signals": [entry(type_, source, policy="other")]}}
    return account.apply(BROKER_HEALTHS, stage.namespace, "other-1", body, "m", sub="status")


def test_a_vantages_token_writes_its_own_entries_for_every_policy(stage: Stage) -> None:
    other_policy(stage, stage.by(ZONE_A), OUTSIDE, "zone-a")
    assert (stage.health(1, "other").get("status") or {})["signals"][0]["source"] == "zone-a"


def test_a_sidecars_token_writes_for_its_own_policy_only(stage: Stage) -> None:
    with pytest.raises(Terminal, match="write only these entries"):
        other_policy(stage, stage.by(SIDECARS, "kafka-1"), "StorageLatency", "broker-1")


@pytest.mark.parametrize("what", FORGED)
def test_a_vantages_token_cannot_write(stage: Stage, what: str) -> None:
    words, forge = FORGED[what]
    before = [stage.health(broker) for broker in (1, 2, 3)]
    with pytest.raises(Terminal, match=words) as refused:
        forge(stage, stage.by(ZONE_A))
    assert "rejected by the admission policy bw-bellwether-" in str(refused.value)
    assert [stage.health(broker) for broker in (1, 2, 3)] == before


SIDEWAYS: dict[str, tuple[str, int, Object]] = {
    "another broker's disk": ("kafka-1", 2, entry("StorageLatency", "broker-2")),
    "its own disk's word on another broker": ("kafka-1", 2, entry("StorageLatency", "broker-1")),
    "another broker's word on its own": ("kafka-1", 1, entry("StorageLatency", "broker-2")),
    "a broker whose id only ends alike": ("kafka-11", 1, entry("StorageLatency", "broker-1")),
    "a vantage's entry": ("kafka-1", 1, entry(OUTSIDE, "broker-1")),
    "anything from outside a pod": ("", 1, entry("StorageLatency", "broker-1")),
    "anything from a pod without a number": ("kafka", 1, entry("StorageLatency", "broker-kafka")),
    "the broker of its number, where ids begin elsewhere": ("kafka-broker-1", 1, entry("StorageLatency", "broker-1")),
    "a broker of another set's numbers": ("kafka-broker-0", 3, entry("StorageLatency", "broker-3")),
    "a broker by a number with a zero in front": ("kafka-01", 1, entry("StorageLatency", "broker-1")),
}


@pytest.mark.parametrize("what", SIDEWAYS)
def test_a_sidecars_token_which_all_brokers_share_cannot_write(stage: Stage, what: str) -> None:
    pod, broker, forged = SIDEWAYS[what]
    with pytest.raises(Terminal, match=r"write only these entries: main/StorageLatency/@pod.* its pod's name"):
        stage.apply(stage.by(SIDECARS, pod), broker, forged)


def test_where_pods_numbers_are_no_ids_an_administrator_says_which_the_first_has(stage: Stage) -> None:
    offset = stage.by(SIDECARS, "kafka-broker-1")
    stage.apply(offset, 3, entry("StorageLatency", "broker-3"), manager="offset")
    lease(stage, offset, "broker-3", type_="StorageLatency")
    with pytest.raises(
        Terminal, match=r"@pod is broker-3 by its pod's name kafka-broker-1: if .* set .*firstBrokerIds"
    ):
        lease(stage, offset, "broker-1", type_="StorageLatency")
    merged(stage, stage.admin, {"status": {"signals": None}}, broker=3)


def test_an_account_of_one_broker_reports_of_it_whatever_its_pod_is_called(stage: Stage) -> None:
    single = stage.by(SINGLE, "broker-us-east1-7d9c5b6f8-x2x47")
    stage.apply(single, 3, entry("SelfReachability", "broker-3"), manager="single")
    with pytest.raises(Terminal, match="write only these entries"):
        stage.apply(single, 1, entry("SelfReachability", "broker-1"), manager="single")
    with pytest.raises(Terminal, match="write only these entries"):
        stage.apply(stage.by(SINGLE), 3, entry("SelfReachability", "broker-3", "Failing"), manager="elsewhere")
    merged(stage, stage.admin, {"status": {"signals": None}}, broker=3)


def test_a_quarantine_agents_token_orders_no_hold_of_any_broker(stage: Stage) -> None:
    agent = stage.by(SIDECARS, "kafka-1")
    for broker in (1, 2):
        name = object_names.quarantine_order(stage.namespace, "main", broker)
        with pytest.raises(Terminal, match="may not write the Lease"):
            lease(stage, agent, f"broker-{broker}", name=name, type_="Quarantine")
    with pytest.raises(Terminal, match="may not write the Lease"):
        renew(stage, agent, object_names.quarantine_order(stage.namespace, "main", 1))


def test_a_sidecar_writes_of_its_own_broker_from_several_disks(stage: Stage) -> None:
    mine = stage.by(SIDECARS, "kafka-2")
    for source in ("broker-2", "broker-2-data1"):
        stage.apply(mine, 2, entry("StorageLatency", source), manager=source)
        lease(stage, mine, source, type_="StorageLatency")
    stage.apply(mine, 2, entry("SelfReachability", "broker-2", "Failing"), manager="self")
    assert stage.signals(2)["SelfReachability", "broker-2"] == "Failing"
    for source, name in (("broker-3", ""), ("@pod", "bellwether-prober-main-storagelatency-0123456789abcdef")):
        with pytest.raises(Terminal, match="may not write the Lease"):
            lease(stage, mine, source, type_="StorageLatency", name=name)


def test_a_prober_writes_changes_and_removes_its_own_entries_and_renews_its_own_lease(stage: Stage) -> None:
    a = stage.by(ZONE_A)
    before = stage.signals(2)
    stage.apply(a, 2, entry(OUTSIDE, "zone-a", "Failing"), manager="a")
    assert stage.signals(2) == {**before, (OUTSIDE, "zone-a"): "Failing"}
    stage.apply(a, 2, manager="a")
    assert (OUTSIDE, "zone-a") not in stage.signals(2)
    stage.apply(a, 2, entry(OUTSIDE, "zone-a"), manager="a")
    assert stage.signals(2) == before
    made = lease(stage, a, "zone-a")
    a.replace(LEASES, stage.namespace, {**made, "spec": {**made["spec"], "leaseDurationSeconds": 11}})


def test_a_prober_of_many_sources_writes_any_of_them_under_its_one_lease(stage: Stage) -> None:
    rules = stage.by(RULES)
    lease(stage, rules, "rules", type_="Prometheus")
    for rule in ("FlushTime", "disk.latency"):
        stage.apply(rules, 3, entry("Prometheus", rule), manager=rule)
    assert ("Prometheus", "disk.latency") in stage.signals(3)
    with pytest.raises(Terminal, match=r"write only these entries: \*/Prometheus"):
        stage.apply(rules, 3, entry("ReplicationLag", "FlushTime"))


def test_an_account_without_a_grant_gets_the_remedy(stage: Stage) -> None:
    stranger = stage.by(STRANGER)
    with pytest.raises(Terminal, match=r"add it to probers or sidecars\.accounts in the chart values"):
        stage.apply(stranger, 1, entry(OUTSIDE, "zone-a"))
    with pytest.raises(Terminal, match="no prober in the chart values has this account"):
        renew(stage, stranger, NAME_B)
    # GitOps writes overrides, other software its own Leases.
    merged(stage, stranger, {"spec": {"override": {"state": "Demoted", "reason": "disk swap"}}}, sub="")
    merged(stage, stranger, {"spec": {"override": None}}, sub="")
    lease(stage, stranger, "x", name="my-controller", annotations={})


def test_people_are_not_bound(stage: Stage, audited: AuditedApiServer) -> None:
    ann = audited.kubeconfig_for("ann", ("system:masters",))
    patch = json.dumps({"status": {"leaders": 5}})
    audited.kubectl(
        "patch", "bh", "main-2", "-n", stage.namespace, "--subresource=status", "--type=merge", "-p", patch,
        kubeconfig=ann,
    )  # fmt: skip
    assert stage.health(2)["status"]["leaders"] == 5
    connect(ann).merge(BROKER_HEALTHS, stage.namespace, "main-2", {"status": {"leaders": 4}}, sub="status")


BEYOND: dict[str, tuple[str, Forge]] = {
    "an override": (
        "spec.override is set by users",
        lambda s, a: merged(s, a, {"spec": {"override": {"state": "Demoted", "reason": "x"}}}, sub=""),
    ),
    "a prober's entry": ("only removes entries", lambda s, a: s.apply(a, 3, entry(OUTSIDE, "zone-a"))),
    "a prober's word": ("only removes entries", lambda s, a: merged(s, a, with_both(s, "Failing"))),
    "the Lease of another controller": ("only leases of its own", lambda s, a: lease(s, a, "x", name="kube-scheduler")),
}


@pytest.mark.parametrize("what", BEYOND)
def test_the_operators_token_cannot_write(stage: Stage, what: str) -> None:
    words, forge = BEYOND[what]
    with pytest.raises(Terminal, match=words):
        forge(stage, stage.by(OPERATOR))


def test_the_operator_touches_no_config_map_but_its_own(stage: Stage, audited: AuditedApiServer) -> None:
    audited.kubectl("create", "configmap", "theirs", "-n", stage.namespace)
    operator = stage.accounts.kubeconfig(OPERATOR)
    for verb in (["create", "configmap", "another"], ["delete", "configmap", "theirs"]):
        with pytest.raises(RuntimeError, match="only configmaps of its own"):
            audited.kubectl(*verb, "-n", stage.namespace, kubeconfig=operator)


def test_the_operator_collects_the_entries_of_probers_that_are_gone(stage: Stage) -> None:
    stage.apply(stage.by(ZONE_A), 3, entry(OUTSIDE, "zone-a"), manager="a")
    kept = [e for e in stage.health(3)["status"]["signals"] if e["source"] != "zone-a"]
    merged(stage, stage.by(OPERATOR), {"status": {"signals": kept}}, broker=3)
    assert (OUTSIDE, "zone-a") not in stage.signals(3)
