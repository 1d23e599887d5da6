"""What ``bellwether explain`` tells a person at night, from the objects as the operator leaves them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES
from bellwether.cli.diagnosis import explain as verb
from bellwether.cli.main import main
from bellwether.controllers.reporting.status import broker_status
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.planning.plan import Plan
from bellwether.core.reporting.report import report
from bellwether.core.settings.detection import Detection, Reachability
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Harm, Reading
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, decisions, demoted, partition, record, signal, snapshot

POLICY = Policy(
    name="main", mode=Mode.ENFORCE, detection=Detection(external_reachability=Reachability(vantages=("a", "b", "c")))
)


HARM = Harm(6.2, 0.98, after(-6))


def judged_status() -> dict[str, object]:
    """Broker 1 as the operator leaves it: cut off, demoted for the second time, one vantage of three silent."""
    said = [
        replace(signal(1, Reading.FAILING, source="a", since=after(-5)), message="connection refused", harm=HARM),
        replace(signal(1, Reading.FAILING, source="b", since=after(-4)), message="connection refused", harm=HARM),
        replace(signal(1, Reading.PASSING, source="c", age_seconds=60.0), message="kafka-1:9094 answers"),
    ]
    seen = snapshot(cluster(partition(replicas=(2, 1, 3))), *said, undo=record(None, demoted(1)))
    seen = replace(seen, flaps={1: FlapCounter(2, after(0))})
    judged = Context(seen, judge(seen, POLICY, {}), POLICY)
    made = report(judged, Plan(decisions=decisions(1)), ExecutionResult())
    return broker_status(made.brokers[0], 0, {}, after(0))


def suffering_status() -> dict[str, object]:
    """Broker 1 with two vantages of three failing, whose probes have lost less than a move costs."""
    lost = Harm(1.4, 0.5, after(-2))
    said = [replace(signal(1, Reading.FAILING, source=s, since=after(-1)), harm=lost) for s in "ab"]
    said.append(signal(1, Reading.PASSING, source="c"))
    seen = snapshot(cluster(partition(replicas=(2, 1, 3))), *said)
    made = report(Context(seen, judge(seen, POLICY, {}), POLICY), Plan(decisions=decisions()), ExecutionResult())
    return broker_status(made.brokers[0], 0, {}, after(0))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    store = MemoryApi()
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "UpToDate",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    store.put(POLICIES, {**api_objects.policy(), "status": {"conditions": [ready]}})
    override = {"state": "Demoted", "reason": "disk swap", "by": "ann", "until": "2026-01-01T00:30:00Z"}
    health = api_objects.health(1, override=override)
    health["metadata"]["labels"] = {"bellwether.dev/policy": "main"}
    store.put(BROKER_HEALTHS, {**health, "status": judged_status()})
    store.put(BROKER_HEALTHS, api_objects.health(2))
    store.serve_commands(monkeypatch)
    monkeypatch.setattr(verb.SystemClock, "now", lambda _: after(125))
    return store


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["explain", *arguments])
    return result.exit_code, result.output


@pytest.mark.usefixtures("api")
class TestText:
    def test_the_verdict_comes_first_and_its_evidence_last(self):
        status, said = run("1")
        assert status == 0
        assert_wording(said.splitlines())

    def test_each_signal_has_the_age_of_its_last_report(self, api: MemoryApi):
        found = api.find(BROKER_HEALTHS, "default", "main-1") or {}
        signals = [api_objects.entry(source) for source in "ab"]
        api.put(BROKER_HEALTHS, {**found, "status": {**judged_status(), "signals": signals}})
        labels = {"bellwether.dev/prober": "true", "bellwether.dev/policy": "main"}
        metadata = {"name": "bellwether-prober-main-a", "namespace": "default", "labels": labels}
        spec = {"holderIdentity": "uid-a", "renewTime": after(95).isoformat()}
        api.put(LEASES, {"metadata": metadata, "spec": spec})
        rows = [line for line in run("1")[1].splitlines() if line.startswith("ExternalReachability")]
        assert "30 s ago" in rows[0]
        assert "unknown" in rows[1]

    @pytest.mark.parametrize(("renewed", "reading"), [(20, "stale (Failing 1 min 45 s ago)"), (100, "Failing  ")])
    def test_a_report_that_was_not_judged_and_is_stale_says_so_with_its_age(
        self, api: MemoryApi, renewed: int, reading: str
    ):
        seen = snapshot(cluster(partition(replicas=(2, 1, 3)), fenced=[1]))
        made = report(Context(seen, judge(seen, POLICY, {}), POLICY), Plan(decisions=decisions()), ExecutionResult())
        body = {**broker_status(made.brokers[0], 0, {}, after(0)), "signals": [api_objects.entry("a")]}
        api.put(BROKER_HEALTHS, {**(api.find(BROKER_HEALTHS, "default", "main-1") or {}), "status": body})
        labels = {"bellwether.dev/prober": "true", "bellwether.dev/policy": "main"}
        spec = {"holderIdentity": "uid-a", "renewTime": after(renewed).isoformat()}
        metadata = {"name": "bellwether-prober-main-a", "namespace": "default", "labels": labels}
        api.put(LEASES, {"metadata": metadata, "spec": spec})
        (row,) = (line for line in run("1")[1].splitlines() if line.startswith("ExternalReachability"))
        assert f"  {reading}" in row

    def test_of_a_broker_that_is_down_it_says_what_kafka_does_and_what_was_reported_last(self, api: MemoryApi):
        seen = snapshot(cluster(partition(replicas=(2, 1, 3)), fenced=[1]))
        made = report(Context(seen, judge(seen, POLICY, {}), POLICY), Plan(decisions=decisions()), ExecutionResult())
        body = {**broker_status(made.brokers[0], 0, {}, after(0)), "signals": [api_objects.entry("a")]}
        api.put(BROKER_HEALTHS, {**(api.find(BROKER_HEALTHS, "default", "main-1") or {}), "status": body})
        text = run("1")[1]
        assert "Kafka has moved its leaders: there is nothing to demote." in text
        assert "No signal was evaluated. The last report of each source:" in text
        assert "connection refused" in text

    def test_harm_below_the_cost_of_a_move_comes_with_the_sum(self, api: MemoryApi):
        api.put(BROKER_HEALTHS, {**(api.find(BROKER_HEALTHS, "default", "main-1") or {}), "status": suffering_status()})
        _, said = run("1")
        assert_wording(said.splitlines()[:3])

    def test_restoration_progress_is_printed(self, api: MemoryApi):
        health = api.find(BROKER_HEALTHS, "default", "main-1")
        assert health is not None
        health["status"]["restoration"] = {
            "wave": 1,
            "waves": 3,
            "sharePercent": 10,
            "pendingPartitions": 27,
            "since": "2026-01-01T00:00:00Z",
            "waveStartedAt": "2026-01-01T00:01:00Z",
            "blockedBy": "60 s between waves",
        }
        api.put(BROKER_HEALTHS, health)
        _, said = run("1")
        assert (
            "Restoration in waves since 2026-01-01 00:00:00Z (2 min 5 s ago): wave 1 of 3, 10 % of its leaders"
            " (spec.promotion.waves.steps), 27 partitions pending.\n  next wave blocked: 60 s between waves"
        ) in said

    def test_a_broker_that_was_not_judged_yet_says_where_to_look(self):
        status, said = run("2", "--policy", "main")
        assert (status, "has no verdict yet" in said) == (0, True)


@pytest.mark.usefixtures("api")
def test_programs_get_the_same_as_json():
    status, said = run("1", "-o", "json")
    found = json.loads(said)
    assert status == 0
    assert (found["broker"], found["policy"], found["verdict"]["state"]) == (1, "default/main", "Sick")
    assert len(found["verdict"]["evidence"]) == 3
    assert "signals" not in found


def test_a_policy_in_trouble_is_named_before_what_was_last_known(api: MemoryApi):
    ready = {"type": "Ready", "status": "False", "reason": "ClusterUnreachable", "message": "no broker answers"}
    api.merge(POLICIES, "default", "main", {"status": {"conditions": [ready]}})
    status, said = run("1")
    assert (status, said.splitlines()[0]) == (
        0,
        "warning: the status below may be outdated: the policy is not Ready: ClusterUnreachable: no broker answers",
    )
    assert "Broker 1 of policy default/main is Sick" in said
    status, said = run("9")
    assert (status, "has no broker 9: the policy is not Ready: ClusterUnreachable" in said) == (1, True)


def test_of_a_vantage_that_is_missing_it_says_what_to_start(api: MemoryApi):
    said = [signal(1, Reading.FAILING, source="a"), signal(1, Reading.PASSING, source="b", age_seconds=60.0)]
    seen = snapshot(
        cluster(partition(replicas=(2, 1, 3))), *said, *(signal(b, Reading.PASSING, source="a") for b in (2, 3))
    )
    made = report(Context(seen, judge(seen, POLICY, {}), POLICY), Plan(decisions=decisions()), ExecutionResult())
    body = broker_status(made.brokers[0], 0, {}, after(0))
    api.put(BROKER_HEALTHS, {**(api.find(BROKER_HEALTHS, "default", "main-1") or {}), "status": body})
    api.merge(
        POLICIES, "default", "main", {"spec": {"detection": {"externalReachability": {"vantages": ["a", "b", "c"]}}}}
    )
    lines = run("1")[1].splitlines()
    assert_wording(lines[1], lines[2], lines[3])
