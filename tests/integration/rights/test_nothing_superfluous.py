"""Each verb that the chart gives is taken away once: something that a user would see fails, the log names the verb and
where it is granted, and what failed comes right by itself once it is granted again.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    CONFIG_MAPS,
    JOBS,
    LEADER_REBALANCES,
    PODS,
    SIGNAL_SOURCES,
)
from bellwether.adapters.kubernetes.permissions import OPERATOR as TABLE
from bellwether.adapters.kubernetes.permissions import Only, Where
from bellwether.core.signals import Reading
from testkit.kubernetes import api_objects
from testkit.kubernetes.api_objects import LOADS
from testkit.kubernetes.chart_accounts import OPERATOR
from testkit.kubernetes.missing_permissions import Key, Lack, needs
from testkit.kubernetes.service_accounts import Crew
from testkit.loads.load_configs import options
from testkit.processes.sites import POLICY, condition

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.slow]

BROKER = 1


# What people do


def begin(crew: Crew, **spec: Any) -> None:
    crew.site.topics({crew.site.topic: 6})
    crew.policy(**spec)
    crew.operator()


def settle(crew: Crew) -> None:
    begin(crew)
    crew.site.until_reported()
    crew.site.until(lambda: judged(crew), 30, "it is judged", crew.site.logs)


def begin_and_suspend(crew: Crew) -> None:
    begin(crew)
    crew.site.until(lambda: crew.site.ready()[0], 60, "it is reported", crew.site.logs)
    crew.site.change(suspend=True)


def begin_and_demote(crew: Crew) -> None:
    begin(crew)
    crew.site.until(lambda: judged(crew), 60, "it is judged", crew.site.logs)
    demote(crew)


def demote(crew: Crew) -> None:
    crew.site.demote(BROKER, "its disk is being exchanged")


def hear_of_a_sick_broker(crew: Crew) -> None:
    voice = crew.site.voice("zone-a")
    begin(crew, detection={"externalReachability": {"vantages": ["zone-a"]}})
    crew.site.until(lambda: judged(crew), 60, "it is judged", crew.site.logs)
    for broker in (1, 2, 3):
        voice.says(broker, Reading.FAILING if broker == BROKER else Reading.PASSING)


def begin_beside_a_stray(crew: Crew) -> None:
    crew.site.topics({crew.site.topic: 6})
    crew.healths(crew.policy(), 77)
    crew.operator()


def begin_beside_an_order(crew: Crew) -> None:
    crew.site.topics({crew.site.topic: 6})
    crew.order_that_is_over(77)
    crew.policy(quarantine={"mode": "Enabled"})
    crew.operator()


def begin_with_quarantine(crew: Crew) -> None:
    begin(crew, quarantine={"mode": "Enabled"})


def begin_with_a_source(crew: Crew) -> None:
    begin(crew, detection={"signalSources": [{"name": "prom"}]})


def begin_and_add_a_source(crew: Crew) -> None:
    begin_with_a_source(crew)
    crew.site.until_reported()
    source = api_objects.source("prom", crew.site.namespace, plugin={"type": "Wear"})
    crew.site.api.create(SIGNAL_SOURCES, crew.site.namespace, source)


def begin_with_a_rebalance(crew: Crew) -> None:
    begin(crew, rebalance={})


def begin_and_add_a_rebalance_of_none(crew: Crew) -> None:
    begin(crew)
    crew.site.until_reported()
    body = api_objects.rebalance(policy="other")
    body["metadata"]["namespace"] = crew.site.namespace
    crew.site.api.create(LEADER_REBALANCES, crew.site.namespace, body)


def rebalance_judged(crew: Crew) -> bool:
    return "state" in crew.site.rebalance()


def rebalance_unused(crew: Crew) -> bool:
    return condition(crew.site.rebalance(), "Ready").get("reason") == "RebalanceUnused"


def source_found(crew: Crew) -> bool:
    return all(one["type"] != "SourcesUsable" for one in crew.site.status().get("conditions", ()))


def begin_over_tls(crew: Crew) -> None:
    begin(crew, kafka=crew.secured())


def settle_with_a_history(crew: Crew) -> None:
    uri = str(crew.directory / "history")
    crew.site.topics({crew.site.topic: 6})
    crew.policy(rebalance={})
    crew.operator(*options(crew.directory, uri))
    crew.site.until_reported()


def ask_for_a_plan(crew: Crew) -> None:
    crew.site.kubectl("annotate", "lr", LOADS, "bellwether.dev/rebalance=now")


def demote_when_the_lease_has_ended(crew: Crew) -> None:
    time.sleep(LEASE_SECONDS + 2)
    demote(crew)


def ask_and_fail(crew: Crew) -> None:
    ask_for_a_plan(crew)
    site, namespace = crew.site, crew.site.namespace
    site.until(lambda: site.api.list(JOBS, namespace), 30, "there is a Job", site.logs)
    (job,) = site.api.list(JOBS, namespace)
    metadata = {"name": "plan-1", "namespace": namespace, "labels": job["spec"]["template"]["metadata"]["labels"]}
    spec = {"containers": [{"name": "plan", "image": "bellwether:test"}]}
    site.api.create(PODS, namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    ended = {"terminated": {"exitCode": 3, "reason": "Error", "message": "no samples of yesterday"}}
    state = {**spec["containers"][0], "ready": False, "restartCount": 0, "imageID": "", "state": ended}
    site.api.merge(PODS, namespace, "plan-1", {"status": {"containerStatuses": [state]}}, "status")
    status = {"startTime": MOMENT, "failed": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    conditions = [{"type": t, "status": "True", "reason": "Deadline", "message": "late"} for t in ENDS]
    site.api.merge(JOBS, namespace, job["metadata"]["name"], {"status": {**status, "conditions": conditions}}, "status")


def ask_fail_and_wait(crew: Crew) -> None:
    ask_and_fail(crew)
    crew.site.until(lambda: plan_failed(crew), 60, "it is seen to have failed", crew.site.logs)


LEASE_SECONDS = 10
MOMENT = "2026-01-01T00:00:00Z"
ENDS = ("FailureTarget", "Failed")


def settle_and_demote(crew: Crew) -> None:
    settle(crew)
    demote(crew)
    crew.site.until(lambda: led_away(crew), 60, "it is demoted", crew.site.logs)


def settle_and_demote_once(crew: Crew) -> None:
    settle(crew)
    before = crew.site.orders()
    demote(crew)
    crew.site.until(lambda: led_away(crew), 60, "it is demoted", crew.site.logs)
    crew.site.lift(BROKER)
    crew.site.until_restored(before)


def delete(crew: Crew) -> None:
    crew.site.delete()


def abandon_in_an_ending_namespace(crew: Crew) -> None:
    settle_and_demote(crew)
    crew.site.change(deletionPolicy="Abandon")


def occupy_the_refuge(crew: Crew) -> None:
    abandon_in_an_ending_namespace(crew)
    taken = {"metadata": {"name": refuge(crew), "namespace": crew.home}, "data": {"record.json": "another tool's"}}
    crew.site.api.create(CONFIG_MAPS, crew.home, taken)


def end_the_namespace(crew: Crew) -> None:
    crew.server.kubectl("delete", "namespace", crew.site.namespace, "--wait=false")
    crew.site.delete()


def refuge(crew: Crew) -> str:
    uid = crew.site.policy_now()["metadata"]["uid"]
    return f"{object_names.export(POLICY, uid)}.{crew.site.namespace}"


# What they see of it


def reported(crew: Crew) -> bool:
    return crew.site.settled()


def judged(crew: Crew) -> bool:
    return bool(crew.site.health(BROKER).get("verdict"))


def tidy(crew: Crew) -> bool:
    return crew.site.api.find(BROKER_HEALTHS, crew.site.namespace, f"{POLICY}-77") is None


def without_orders(crew: Crew) -> bool:
    return not crew.orders()


def suspended(crew: Crew) -> bool:
    return crew.site.status().get("mode") == "Suspended"


def led_away(crew: Crew) -> bool:
    return crew.site.led_by(BROKER) == 0


def posted(crew: Crew) -> bool:
    return "its disk is being exchanged" in crew.site.kubectl("get", "events", "-o", "jsonpath={.items[*].message}")


def counted(crew: Crew) -> bool:
    # Of the demotion, which only what is done without the verb repeats; moves repeat themselves, sooner or later.
    path = r'jsonpath={range .items[*]}{.series.count} {.message}{"\n"}{end}'
    noted = crew.site.kubectl("get", "events", "-o", path).splitlines()
    return any(line[:1].isdigit() and "its disk is being exchanged" in line for line in noted)


def planning(crew: Crew) -> bool:
    return bool(crew.site.api.list(JOBS, crew.site.namespace))


def plan_failed(crew: Crew) -> bool:
    return crew.site.rebalance().get("state") == "Failed"


def explained(crew: Crew) -> bool:
    return "no samples of yesterday" in str(crew.site.rebalance())


def alone(crew: Crew) -> bool:
    said = condition(crew.site.status(), "SoleInstallation")
    return reported(crew) and not said


def gone(crew: Crew) -> bool:
    return crew.site.gone()


def forgotten(crew: Crew) -> bool:
    return crew.site.record() is None and crew.site.gone()


def kept(crew: Crew) -> bool:
    found = crew.site.api.list(CONFIG_MAPS, crew.home)
    texts = [(one.get("data") or {}).get("record.json", "") for one in found]
    return any(text.startswith("{") for text in texts)


LP, BH, CM, LE = "leadershippolicies", "brokerhealths", "configmaps", "leases"
LR = "leaderrebalances"
P, H = Where.POLICIES, Where.LEASES
LACKS: dict[Key, Lack] = {
    (P, LP, "get"): Lack(reported, begin),
    (P, LP, "list"): Lack(reported, begin),
    (P, LP, "watch"): Lack(suspended, begin_and_suspend),
    (P, LP, "patch"): Lack(reported, begin),
    (P, f"{LP}/status", "patch"): Lack(reported, begin),
    (P, BH, "get"): Lack(judged, begin),
    (P, BH, "list"): Lack(reported, begin),
    (P, BH, "watch"): Lack(led_away, begin_and_demote),
    (P, BH, "create"): Lack(judged, begin),
    (P, BH, "patch"): Lack(judged, begin),
    (P, BH, "delete"): Lack(tidy, begin_beside_a_stray),
    (P, f"{BH}/status", "patch"): Lack(judged, begin),
    (P, "signalsources", "list"): Lack(reported, begin_with_a_source),
    (P, "signalsources", "watch"): Lack(source_found, begin_and_add_a_source),
    (P, LR, "list"): Lack(reported, begin),
    (P, LR, "watch"): Lack(rebalance_unused, begin_and_add_a_rebalance_of_none),
    (P, f"{LR}/status", "patch"): Lack(rebalance_judged, begin_with_a_rebalance),
    (P, CM, "get"): Lack(led_away, demote, settle),
    (P, CM, "list"): Lack(reported, begin),
    (P, CM, "create"): Lack(reported, begin),
    (P, CM, "update"): Lack(led_away, demote, settle),
    (P, CM, "patch"): Lack(gone, delete, settle),
    (P, CM, "delete"): Lack(forgotten, delete, settle, recovers=False),
    (P, LE, "list"): Lack(led_away, hear_of_a_sick_broker),
    (P, LE, "watch"): Lack(led_away, hear_of_a_sick_broker),
    (P, "events", "create"): Lack(posted, demote, settle, recovers=False),
    (P, "events", "patch"): Lack(counted, demote, settle_and_demote_once, recovers=False),
    (P, "secrets", "get"): Lack(reported, begin_over_tls),
    (P, "jobs", "create"): Lack(planning, ask_for_a_plan, settle_with_a_history, recovers=False),
    (P, "jobs", "get"): Lack(explained, ask_and_fail, settle_with_a_history, recovers=False),
    (P, "pods", "list"): Lack(explained, ask_fail_and_wait, settle_with_a_history, recovers=False),
    (H, LE, "get"): Lack(reported, begin),
    (H, LE, "list"): Lack(reported, begin_with_quarantine),
    (H, LE, "delete"): Lack(without_orders, begin_beside_an_order),
    (H, LE, "create"): Lack(reported, begin),
    (H, LE, "update"): Lack(led_away, demote_when_the_lease_has_ended, settle),
    (H, "namespaces", "get"): Lack(alone, begin),
    (H, CM, "create"): Lack(kept, end_the_namespace, abandon_in_an_ending_namespace),
    (H, CM, "get"): Lack(kept, end_the_namespace, occupy_the_refuge),
}


def test_every_verb_of_the_operator_is_taken_away_here() -> None:
    assert set(LACKS) == set(
        needs(need for need in TABLE if need.only not in (Only.STRIMZI, Only.KILLED, Only.EVERYWHERE))
    )


@pytest.mark.parametrize("key", LACKS, ids=[f"{verb} {resource} ({where.name})" for where, resource, verb in LACKS])
def test_the_operator_needs(crew: Crew, key: Key) -> None:
    LACKS[key].shown(crew, OPERATOR, key, needs(TABLE)[key])


def test_at_its_start_it_says_which_permissions_are_missing(crew: Crew) -> None:
    with crew.accounts.without(OPERATOR, "events.k8s.io", "events", "create", crew.site.namespace):
        settle(crew)
    text = crew.site.processes[0].log.read_text()
    assert "'create' on events in API group events.k8s.io (Kubernetes events): grant it in a Role" in text
    assert text.count("permission_missing") == 1
