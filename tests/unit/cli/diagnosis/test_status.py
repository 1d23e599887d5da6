"""What ``bellwether status`` shows at night, from the objects as the operator and the probers leave them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES, Object
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.cli.diagnosis import status as verb
from bellwether.cli.diagnosis.remedies import remedy, runbook
from bellwether.cli.main import main
from bellwether.controllers.reporting.status import broker_status, policy_status
from bellwether.core.condition import Condition
from bellwether.core.demotion.decisions import decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.refusals import Hold
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.detection import Detection, Reachability
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Reading, Signal
from bellwether.ports.errors import Terminal, Transient
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.values.builders import (
    CLUSTER_ID,
    after,
    cluster,
    decisions,
    move,
    override,
    partition,
    said,
    signal,
    snapshot,
    verdicts,
)

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)
SICK = verdicts(cluster(partition()), sick=[1])
NOW = after(125)
READINGS = {1: "Failing", 2: "Passing", 3: "Passing"}


def one_left() -> Report:
    """Broker 1 is demoted, broker 2 down, broker 3 leads everything and nothing is to spare."""
    left = [partition(index=i, replicas=(3, 1, 2), isr=(3, 1)) for i in range(60)]
    seen = cluster(*left, fenced=[2])
    held = Hold(left[0].key, "orders", Reason.NO_HEALTHY_ISR_MEMBER, "so it is")
    plan = Plan(holds=(held,), decisions=decisions(1))
    return said(replace(snapshot(seen), floors={"orders": 2}), ENFORCE, verdicts(seen, sick=[1], down=[2]), plan)


def lease(name: str, holder: str, seconds_ago: float, **labels: str) -> Object:
    moment = (NOW - timedelta(seconds=seconds_ago)).isoformat()
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "renewTime": moment}}


def cluster_lease(seconds_ago: float) -> Object:
    """The operator's Lease, in a namespace that is not the policy's."""
    found = lease(object_names.cluster_lease(CLUSTER_ID), "bellwether-7d9c_x", seconds_ago)
    found["metadata"]["namespace"] = "operators"
    return found


def prober_lease(source: str, seconds_ago: float, holder: str | None = None) -> Object:
    own = {object_names.PROBER_LABEL: "true", object_names.POLICY_LABEL: "main"}
    return lease(f"bellwether-prober-main-{source}", holder or f"uid-{source}", seconds_ago, **own)


class Site:
    """The API of a cluster; ``show`` sets it to what a report says."""

    def __init__(self) -> None:
        self.api = MemoryApi()

    def show(self, report: Report, *entries: Object) -> None:
        found = policy_status(report, 1, {}, None, operator="operators/bellwether-7d9c")
        self.api.put(POLICIES, {**api_objects.policy(mode="Enforce"), "status": found})
        for broker in report.brokers:
            body = api_objects.health(broker.broker)
            body["metadata"]["labels"] = {object_names.POLICY_LABEL: "main"}
            body["status"] = {**broker_status(broker, 1, {}, report.now), "signals": list(entries)}
            self.api.put(BROKER_HEALTHS, body)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site()
    made.api.serve_commands(monkeypatch)
    monkeypatch.setattr(verb.SystemClock, "now", lambda _: NOW)
    return made


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["status", *arguments])
    return result.exit_code, result.output


def test_a_quarantine_that_waits_says_for_which_broker(site: Site):
    seen = cluster(*(partition(index=i, replicas=(2, 1, 3)) for i in range(60)))
    site.show(said(snapshot(seen), ENFORCE, verdicts(seen, sick=[1]), Plan(decisions=decisions(1))))
    health = site.api.get(BROKER_HEALTHS, "default", api_objects.health(1)["metadata"]["name"])
    waits = {
        "type": "Quarantined",
        "status": "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "AnotherBrokerUnhealthy",
        "message": "broker 2 is Sick (ExternallyUnreachable): repair broker 2 first",
    }
    health["status"]["conditions"].append(waits)
    site.api.put(BROKER_HEALTHS, health)
    _, text = run()
    assert (
        "- AnotherBrokerUnhealthy (broker 1): broker 2 is Sick (ExternallyUnreachable): repair broker 2 first; do"
        " what the message says, or repair the broker that it names"
    ) in text


def test_the_whole_screen_of_one_broker_left(site: Site):
    site.show(one_left(), api_objects.entry("zone-1"), api_objects.entry("zone-2"))
    site.api.put(LEASES, prober_lease("zone-1", 2))
    site.api.put(LEASES, prober_lease("zone-2", 90))
    site.api.put(LEASES, cluster_lease(3))
    exit_status, text = run()
    assert exit_status == 0
    assert_wording(text)


def test_the_override_of_a_healthy_broker_is_shown_with_the_command_that_ends_it(site: Site):
    seen = snapshot(overrides=[override(3)])
    context = Context(seen, verdicts(seen.cluster), ENFORCE)
    site.show(said(seen, ENFORCE, context.verdicts, Plan(decisions=decide(context))))
    wanted = {"state": "Demoted", "by": "root", "reason": "kernel update", "until": "2026-01-01T08:00:00Z"}
    site.api.merge(BROKER_HEALTHS, "default", "main-3", {"spec": {"override": wanted}})
    assert (
        "- OverrideDemoted (broker 3): demoted by root until 2026-01-01 08:00:00Z: kernel update; it is healthy:"
        " `bellwether release 3 --policy main -n default` lets it lead\n"
    ) in run()[1]


class TestAMissingVantage:
    """Too few vantages report: broker 1 fails from the one that does."""

    POLICY = replace(ENFORCE, detection=Detection(external_reachability=Reachability(vantages=("zone-1", "zone-2"))))

    def shown(self, site: Site, *gone: Signal) -> str:
        seen = snapshot(None, *(signal(b, Reading(r), source="zone-1") for b, r in READINGS.items()), *gone)
        site.show(said(seen, self.POLICY, judge(seen, self.POLICY, {})))
        return run()[1]

    def test_the_broker_that_fails_by_the_rest_is_named_with_what_it_waits_for(self, site: Site):
        text = self.shown(site, *(signal(b, Reading.PASSING, source="zone-2", age_seconds=60.0) for b in (1, 2, 3)))
        assert (
            "  no broker can be judged: broker 1 cannot be reached from zone-1, no fresh report from zone-2, it will"
            " not be demoted until zone-2 reports (1 of 2 vantages have fresh evidence, 2 are needed)\n"
        ) in text
        assert [line.split()[:6] for line in text.splitlines() if line.startswith("1 ")] == [
            ["1", "Unknown", "NoEvidence", "(fails", "from", "zone-1)"]
        ]
        assert "- NoEvidence (policy, broker 1, broker 2, broker 3): start the prober of zone-2 (Ext" in text
        assert "request a load plan" not in text

    def test_a_vantage_that_never_reported_is_named_by_the_policy(self, site: Site):
        body = api_objects.policy(
            mode="Enforce", detection={"externalReachability": {"vantages": ["zone-1", "zone-2"]}}
        )
        self.shown(site)
        site.api.put(POLICIES, {**body, "status": site.api.get(POLICIES, "default", "main")["status"]})
        text = run()[1]
        assert "): start the prober of zone-2 (ExternalReachability): kubectl get deploy" in text
        assert "; if no prober is to have the name zone-2, correct spec.detection.externalReach" in text


def test_the_reason_of_ready_has_its_own_age_where_it_is_that_of_a_broker(site: Site):
    """Ready stays True since the beginning; broker 2 went down a minute ago."""
    seen = cluster(partition(), fenced=[2])
    judged = verdicts(seen, down=[2])
    judged[2] = replace(judged[2], since=after(65))
    site.show(said(snapshot(seen), ENFORCE, judged))
    lines = run()[1].splitlines()
    assert lines[0] == "Policy default/main: BrokerDown, since 2026-01-01 00:01:05Z (1 min ago)"
    assert "Mode: Enforce. Ready: True, since 2026-01-01 00:00:00Z (2 min 5 s ago)." in lines


def test_the_topics_that_are_hit_are_named_the_worst_first(site: Site):
    sizes = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}
    led = [partition(topic, index=i, replicas=(1, 2, 3)) for topic, size in sizes.items() for i in range(size)]
    lost = partition("z", leader=None, isr=(), replicas=(1,))
    seen = cluster(*led, lost, partition("untouched", replicas=(2, 3, 1), leader=2))
    site.show(said(snapshot(seen), ENFORCE, verdicts(seen, sick=[1])))
    _, text = run()
    table = text.split("\n\n")[2].splitlines()
    assert [line.split() for line in table[1:-1]] == [
        ["z", "1", "1", "0", "0", "0"],
        ["f", "6", "0", "6", "0", "0"],
        ["e", "5", "0", "5", "0", "0"],
        ["d", "4", "0", "4", "0", "0"],
        ["c", "3", "0", "3", "0", "0"],
    ]
    assert table[-1] == "and 2 more topics, none worse than these: -o json"
    _, found = run("-o", "json")
    affected = json.loads(found)["status"]["affectedTopics"]
    assert affected["total"] == 7
    assert [topic["topic"] for topic in affected["worst"]] == ["z", "f", "e", "d", "c", "b", "a"]


def test_a_suspended_policy_says_who_suspended_it_and_what_it_would_do(site: Site):
    suspended = replace(ENFORCE, suspend=True)
    site.show(said(policy=suspended, plan=Plan(moves=(move(),), decisions=decisions(1)), judged=SICK))
    owned = {"manager": "kubectl-patch", "time": (NOW - timedelta(minutes=3)).isoformat()}
    body = site.api.get(POLICIES, "default", "main")
    body["spec"]["suspend"] = True
    body["metadata"]["managedFields"] = [
        {"manager": "argocd", "time": NOW.isoformat(), "fieldsV1": {"f:spec": {"f:mode": {}}}},
        {**owned, "fieldsV1": {"f:spec": {"f:suspend": {}}}},
    ]
    site.api.put(POLICIES, body)
    _, text = run()
    assert "  suspended (spec.suspend): would demote broker 1, which leads 1 partition\n" in text
    assert "Mode: Suspended (set by kubectl-patch, which last wrote 3 min ago). Ready: True" in text
    assert "no (NotEnforcing)" in text
    assert "Would move: 1 partitions." in text
    assert "bellwether resume --policy main -n default" in text


def test_where_all_is_well_there_is_nothing_to_do(site: Site):
    site.show(said(policy=ENFORCE))
    assert run()[1].splitlines()[-1] == "Nothing to do."


def test_missing_source_is_a_problem_with_its_remedy(site: Site):
    report, text = said(policy=ENFORCE), "no SignalSource prom exists: create it"
    unusable = Condition("SourcesUsable", False, Reason.NO_EVIDENCE, text)
    site.show(replace(report, conditions=(*report.conditions, unusable)))
    assert f"- NoEvidence (SignalSources): {text}" in run()[1]


def test_a_policy_of_which_no_operator_has_said_anything(site: Site):
    site.api.put(POLICIES, api_objects.policy())
    assert run("--policy", "main")[1].startswith(
        "Policy default/main was never reconciled: check that an operator is running"
    )


def test_an_operator_that_no_longer_renews_its_lease_is_named(site: Site):
    site.show(said(policy=ENFORCE))
    site.api.put(LEASES, cluster_lease(120))
    lines = run()[1].splitlines()
    assert lines[0].startswith("Policy default/main: no operator is at work, since 2026-01-01 00:00:05Z (2 min ago)")
    assert "- no operator is at work: check the pod operators/bellwether-7d9c, its logs and its events" in lines
    assert "Nothing to do." not in lines


@pytest.mark.parametrize("seen", ["denied", "held by another prober"])
def test_what_is_not_known_of_leases_is_unknown(site: Site, seen: str):
    site.show(said(policy=ENFORCE), api_objects.entry("zone-1"))
    site.api.put(LEASES, prober_lease("zone-1", 2, holder="another"))
    if seen == "denied":
        for call in ("get", "list"):
            site.api.refuse(call, LEASES, Terminal("forbidden"))
    text = run()[1]
    assert "age unknown: zone-1." in text
    assert "the age of its Lease is unknown" in text


def test_the_reports_of_a_prober_that_has_ended_are_as_old_as_its_last_renewal(site: Site):
    site.show(said(policy=ENFORCE), api_objects.entry("zone-1"))
    released = prober_lease("zone-1", 90)
    released["spec"]["holderIdentity"] = ""
    site.api.put(LEASES, released)
    assert "from zone-1; oldest report 1 min 30 s ago; stale: zone-1." in run()[1]


def test_what_an_earlier_prober_reported_is_at_least_as_old_as_the_lease_of_its_successor(site: Site):
    site.show(said(policy=ENFORCE), api_objects.entry("zone-1"))
    taken = prober_lease("zone-1", 2, holder="another")
    taken["spec"]["acquireTime"] = prober_lease("zone-1", 60)["spec"]["renewTime"]
    site.api.put(LEASES, taken)
    assert "oldest report 1 min ago; stale: zone-1." in run()[1]


def test_a_source_is_as_fresh_as_its_last_report(site: Site):
    site.show(said(policy=ENFORCE), api_objects.entry("zone-1"))
    site.api.put(LEASES, prober_lease("zone-1", 2))
    first = next(iter(site.api.all(BROKER_HEALTHS)))
    first["status"]["signals"] = [api_objects.entry("zone-1", proberUID="an-earlier-one")]
    site.api.put(BROKER_HEALTHS, first)
    text = run()[1]
    assert "from zone-1; oldest report 2 s ago." in text
    assert "age unknown" not in text


def test_of_many_brokers_those_that_are_not_well_come_first(site: Site):
    seen = cluster(partition(), brokers=40)
    site.show(said(snapshot(seen), ENFORCE, verdicts(seen, sick=[39], down=[40])))
    lines = run()[1].splitlines()
    table = lines.index(next(line for line in lines if line.startswith("BROKER")))
    assert [line.split()[0] for line in lines[table + 1 : table + 4]] == ["39", "40", "1"]
    assert "and 10 more brokers, 0 of them not Healthy: kubectl get bh -n default" in lines


def test_programs_get_status_and_problems(site: Site):
    site.show(one_left(), api_objects.entry("zone-1"))
    site.api.put(LEASES, prober_lease("zone-1", 60))
    found: dict[str, Any] = json.loads(run("--policy", "main", "-o", "json")[1])
    assert (found["policy"], found["status"]["mode"]) == ("default/main", "Enforce")
    assert [b["broker"] for b in found["brokers"]] == [1, 2, 3]
    assert found["probers"][0].items() >= {"source": "zone-1", "brokers": 3, "stale": True}.items()
    assert found["problems"][0] == {
        "reason": "AtMinIsr",
        "about": ["policy"],
        "remedy": remedy("AtMinIsr"),
        "runbook": runbook("AtMinIsr"),
    }


def test_watching_shows_each_change_and_outlives_an_api_that_is_away(site: Site, monkeypatch: pytest.MonkeyPatch):
    site.show(said(policy=ENFORCE))
    rounds = iter(["away", "back", "gone"])

    def sleep(_: float) -> None:
        match next(rounds):
            case "away":
                site.api.refuse("get", POLICIES, Transient("no response within 3 s"))
            case "back":
                site.api.refuse("get", POLICIES, None)
                site.show(one_left())
            case _:
                site.api.refuse("get", POLICIES, Terminal("it is gone"))

    monkeypatch.setattr(verb, "time", SimpleNamespace(sleep=sleep))  # other threads of this process sleep, too
    exit_status, text = run("--watch")
    assert exit_status == 1
    states = [line for line in text.splitlines() if line.startswith(("Policy", "retrying", "Error"))]
    assert [state.split(",")[0] for state in states] == [
        "Policy default/main: UpToDate",
        "retrying: no response within 3 s",
        "Policy default/main: AtMinIsr",
        "Error: it is gone",
    ]


class TestBadInput:
    def test_another_namespace_names_where_policies_are(self, site: Site):
        site.show(said(policy=ENFORCE))
        exit_status, text = run("-n", "kafka")
        assert exit_status == 1
        assert text == ("Error: namespace kafka has no LeadershipPolicy: set --namespace; there are: default/main\n")

    def test_another_name_names_those_that_exist(self, site: Site):
        site.show(said(policy=ENFORCE))
        assert run("--policy", "nosuch") == (
            1,
            "Error: namespace default has no LeadershipPolicy nosuch; it has: main\n",
        )

    def test_of_several_one_must_be_named(self, site: Site):
        for name in ("orders", "payments"):
            site.api.put(POLICIES, api_objects.policy(name))
        exit_status, text = run()
        assert exit_status == 1
        assert "has several policies: set --policy to one of orders, payments" in text

    @pytest.mark.parametrize("error", [Terminal("cannot list leadershippolicies: forbidden"), Transient("away")])
    def test_no_permission_and_no_api_server_are_one_line(self, site: Site, error: Terminal | Transient):
        site.api.refuse("list", POLICIES, error)
        assert run() == (1, f"Error: {error}\n")

    def test_an_api_without_our_kinds_says_what_to_install(self, site: Site):
        site.api.refuse("list", POLICIES, NotFound("leadershippolicies default/* not found"))
        assert "check the context, or install the CRDs" in run()[1]

    def test_watching_prints_text(self):
        exit_status, text = run("--watch", "-o", "json")
        assert exit_status == 2
        assert "leave out --output" in text
