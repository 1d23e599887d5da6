"""Scenes that the person on call meets at night, and what is seen of each: table, status, alert and event.

In: a ``WatchedSite`` whose brokers are healthy. Out: text with times, ids and addresses replaced, so that it is the
same each time. Called by ``tests/integration/alerts/test_scenes.py``, which compares it with what was recorded.
"""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bellwether.core.signals import Reading
from bellwether_load.store.filesystems import Store
from realparts import kubernetes_binaries
from testkit.alerts.monitored_site import ZONES, WatchedSite
from testkit.kubernetes.api_objects import LOADS
from testkit.processes import person_shell
from testkit.processes.plan_jobs import complete, waiting_job
from testkit.processes.sites import POLICY
from testkit.simulation.rebalance_fixture import Planner

Step = Callable[[WatchedSite], None]


def nothing(_: WatchedSite) -> None:
    """No step."""


@dataclass(frozen=True)
class Scene:
    """What is so, the alert that fires and the reason of the event; ``begin`` brings it about, ``end`` undoes it.

    ``later`` is what happens once the alert has fired. ``policy`` is the one whose status is read.
    """

    name: str
    alert: str
    event: str
    begin: Step
    end: Step
    later: Step = nothing
    policy: str = POLICY
    shows: str = "What to do:"
    """What the status shows once the scene is complete."""


def cut(*brokers: int) -> Step:
    """The external listeners of brokers cannot be reached."""

    def step(watched: WatchedSite) -> None:
        assert watched.site.kafka.proxy is not None
        for broker in brokers:
            watched.site.kafka.proxy.cut(f"broker-{broker}")

    return step


def mend(watched: WatchedSite) -> None:
    """All brokers run and can be reached."""
    watched.site.kafka.mend()


def change(**spec: Any) -> Step:
    """The policy's spec is changed."""
    return lambda watched: watched.site.change(**spec)


def another(name: str, **spec: Any) -> Step:
    """Another policy is made."""
    return lambda watched: (watched.site.policy(name, **spec), None)[1]


def delete(name: str) -> Step:
    """Another policy is deleted."""

    def step(watched: WatchedSite) -> None:
        watched.site.delete(name=name)
        watched.site.until(lambda: watched.site.gone(name), 60, f"{name} is gone")

    return step


def one_left(watched: WatchedSite) -> None:
    """Broker 1 is demoted, broker 2 freezes and is fenced, broker 3 leads everything."""
    site = watched.site
    cut(1)(watched)
    site.until(lambda: site.led_by(1) == 0, 60, "broker 1 leads nothing", site.partitions)
    site.kafka.broker(2).pause()
    site.until(lambda: site.ready()[0] == "AtMinIsr", 60, "one more loss stops writes", site.ready)
    site.until(lambda: site.led_by(3) == len(site.partitions()), 60, "broker 3 leads everything", site.partitions)


def without_secret(watched: WatchedSite) -> None:
    """A policy names a Secret that does not exist."""
    known = watched.site.kafka.security
    assert known is not None
    sasl = {"mechanism": "SCRAM-SHA-512", "username": known.username, "passwordSecretName": "kafka-user"}
    secured = {"sasl": sasl, "tls": {"caSecretName": "kafka-ca"}}
    watched.site.policy("payments", kafka={"bootstrapServers": known.bootstrap.split(","), **secured})


def waves(watched: WatchedSite) -> None:
    """Broker 1 gets its leaders back in waves, and one vantage does not reach it any more."""
    site = watched.site
    site.change(promotion={"waves": {"steps": [50, 100], "pauseSeconds": 120, "skipUpToLeaders": 0}})
    site.demote(1, "its disk is replaced")
    site.until(lambda: site.led_by(1) == 0, 60, "broker 1 leads nothing", site.partitions)
    watched.processes[ZONES[1]].stop(30)
    voice = site.voice(ZONES[1])
    voice.calls_well(1, 2, 3)
    site.lift(1)
    site.until(lambda: site.led_by(1) == 2, 60, "half of its leaders are back", site.partitions)
    voice.says(1, Reading.FAILING)
    site.until(lambda: site.verdict(1)[0] == "Suspect", 60, "the next wave waits", lambda: site.verdict(1))


def no_waves(watched: WatchedSite) -> None:
    """All leaders return at once, and the prober runs again."""
    watched.site.change(promotion={"waves": {"skipUpToLeaders": 1000, "pauseSeconds": 60, "steps": [10, 50, 100]}})
    watched.site.silence()
    watched.prober("reachability", ZONES[1], "--vantage", ZONES[1])


def plan(watched: WatchedSite) -> None:
    """A plan is made and proposed."""
    site = watched.site
    site.change(rebalance={"validSeconds": 60})
    site.kubectl("annotate", "lr", LOADS, "--overwrite", f"bellwether.dev/rebalance={site.directory.name}")
    complete(site, waiting_job(site), planner_of(watched))


def planner_of(watched: WatchedSite) -> Planner:
    """A planner on the operator's store."""
    store = Store.open(f"{watched.store}/{watched.site.namespace}/{POLICY}")
    return Planner(store, policy=(watched.site.namespace, POLICY))


def expired(watched: WatchedSite) -> None:
    """The plan is not approved within its time."""
    site = watched.site
    site.until(lambda: site.rebalance()["state"] == "Idle", 90, "the plan has expired", site.rebalance)


SCENES = (
    Scene("01-one-demoted-one-frozen-one-left", "BellwetherPartitionsAtRisk", "AtMinIsr", one_left, mend),
    Scene(
        "02-a-blind-policy",
        "BellwetherPolicyBlind",
        "NoEvidence",
        change(detection={"externalReachability": {"vantages": ["eu-1", "eu-2"]}}),
        change(detection={"externalReachability": {"vantages": list(ZONES)}}),
    ),
    Scene(
        "03-an-unknown-rack",
        "BellwetherPlacementUnsuitable",
        "PlacementUnsuitable",
        change(placement={"racks": ["eu-west-9z"]}),
        change(placement=None),
    ),
    Scene(
        "04-two-policies-for-one-cluster",
        "BellwetherClusterClaimed",
        "ClusterClaimed",
        another("payments"),
        delete("payments"),
        policy="payments",
    ),
    Scene(
        "05-a-missing-secret",
        "BellwetherReconcileFailing",
        "CredentialsUnusable",
        without_secret,
        delete("payments"),
        policy="payments",
    ),
    Scene(
        "06-the-api-server-is-away",
        "BellwetherKubernetesWritesFailing",
        "",
        lambda watched: watched.site.server.stop_apiserver(),
        lambda watched: watched.site.server.start_apiserver(),
        shows="(exit status ",
    ),
    Scene(
        "07-the-operator-is-down",
        "BellwetherOperatorDown",
        "",
        lambda watched: watched.processes["operator"].kill(),
        lambda watched: (watched.operator(), None)[1],
        shows="no operator",
    ),
    Scene("08-half-of-the-brokers-are-cut-off", "BellwetherSystemicCause", "SystemicCause", cut(1, 2), mend),
    Scene(
        "09-a-forgotten-suspension",
        "BellwetherPolicyNotEnforcing",
        "NotEnforcing",
        change(suspend=True),
        change(suspend=False),
    ),
    Scene("10-a-wave-that-waits", "BellwetherReplicaOrdersNotRestored", "VantagesDisagree", waves, no_waves),
    Scene(
        "11-a-plan-that-expired",
        "BellwetherRebalancePending",
        "PlanExpired",
        plan,
        change(rebalance=None),
        later=expired,
    ),
)


def seen(watched: WatchedSite, scene: Scene, alert: str) -> str:
    """What is seen of a scene now; ``alert`` is what the alert said when it fired."""
    site = watched.site
    where = ["-n", site.namespace]
    table = _run(watched, [str(kubernetes_binaries.kubectl()), "get", "lp", *where])
    status = _run(watched, [sys.executable, "-m", "bellwether", "status", "--policy", scene.policy, *where])
    event = _event(watched, scene.event) if scene.event else "none: no process can write one\n"
    parts = (
        f"$ kubectl get lp -n kafka\n{_table(table)}",
        f"$ bellwether status --policy {scene.policy} -n kafka\n{status}",
        f"alert: {alert}",
        f"event: {event}",
    )
    return _always_the_same(watched, "\n".join(parts))


def alert_text(watched: WatchedSite, scene: Scene) -> str:
    """Name, severity and texts of the alert of a scene; empty while it does not fire for the scene's policy."""
    for one in watched.prometheus.alerts():
        labels, said = one["labels"], one["annotations"]
        about = labels.get("policy", scene.policy)
        if (labels["alertname"], one["state"], about) == (scene.alert, "firing", scene.policy):
            lines = (said["summary"], said["description"], said["runbook_url"])
            return "\n  ".join((f"{scene.alert}, {labels['severity']}", *lines)) + "\n"
    return ""


def _event(watched: WatchedSite, reason: str) -> str:
    found = json.loads(watched.site.kubectl("get", "events", "--field-selector", f"reason={reason}", "-o", "json"))
    latest = max(found["items"], key=_last_seen, default=None)
    if latest is None:
        return "not yet\n"
    # Several brokers get it at once: the first of them.
    same = (one["involvedObject"] for one in found["items"] if one["message"] == latest["message"])
    about = min(same, key=lambda one: str(one["name"]))
    return f"{latest['type']} {reason} on {about['kind']} {about['name']}\n  {latest['message']}\n"


def _last_seen(event: dict[str, Any]) -> str:
    """What was seen again within minutes is one event, whose series has the time of the last one."""
    return str((event.get("series") or {}).get("lastObservedTime") or event["eventTime"])


def _run(watched: WatchedSite, command: list[str]) -> str:
    site = watched.site
    done = person_shell.run(command, person_shell.environment(site.server, site.directory))
    status = f"(exit status {done.status})\n" if done.status else ""
    return f"{done.printed}{done.errors}{status}"


def _table(text: str) -> str:
    """The table without the age of the objects."""
    return re.sub(r" +(?:AGE|\d+[smh]\w*)$", "", text, flags=re.MULTILINE)


def _always_the_same(watched: WatchedSite, text: str) -> str:
    site = watched.site
    words = {
        site.namespace: "kafka",
        site.topic: "orders",
        site.kafka.cluster_id: "CLUSTER-ID",
        socket.gethostname(): "bellwether-operator",
    }
    for word, instead in words.items():
        text = text.replace(word, instead)
    for pattern, instead in _VARYING:
        text = re.sub(pattern, instead, text)
    return text


_VARYING = (
    (r"[0-9a-f]{8}-[0-9a-f-]{27}", "UUID"),
    (r"\b[0-9a-f]{32}\b", "DIGEST"),
    (r"127\.0\.0\.1:\d+", "HOST:PORT"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*(?:Z|\+00:00)?", "TIME"),
    (r"\b\d+ (?:d|h|min)(?: \d+ (?:h|min|s))?\b", "N s"),
    (r"\b\d+(?:\.\d+)? m?s\b", "N s"),
    (r"\b\d+(?:\.\d+)? ?%", "N%"),
    (r" \(assumed\)", ""),
    (r"(?<=\S) {2,}", "  "),
)
