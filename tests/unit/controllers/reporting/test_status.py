"""Reports as Kubernetes keeps them: field names, times of transitions, clipped words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.api.v1alpha1.status.policy_status import TOPIC_LIMIT
from bellwether.api.v1alpha1.status.status_conditions import Condition as Rendered
from bellwether.controllers.reporting import status as rendered_status
from bellwether.core.condition import Condition
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.doctor.risks import RISK_DESCRIPTIONS as RISKS
from bellwether.core.doctor.risks import Risk
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.history.known_good import KnownGood
from bellwether.core.model.refusals import BrokerHold, Hold, Refusal
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.planning.plan import Plan
from bellwether.core.planning.preferred_election import AutoRebalance, LastRun, PreferredElectionStatus
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.ports.rebalance import RunState
from testkit.kubernetes import api_objects
from testkit.messages import assert_wording
from testkit.simulation.operators import restored
from testkit.values.builders import (
    CLUSTER_ID,
    after,
    cluster,
    decisions,
    move,
    partition,
    record,
    returning,
    said,
    snapshot,
    verdict,
    verdicts,
)
from testkit.values.rebalances import rebalance

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)


def status(report: Report, before: dict | None = None, last: dict | None = None) -> dict:
    return rendered_status.policy_status(report, 7, before or {}, last)


def by_type(body: dict) -> dict[str, dict]:
    return {c["type"]: c for c in body["conditions"]}


def test_a_policy_at_rest():
    body = status(said(policy=ENFORCE))
    assert body["observedGeneration"] == 7
    assert (body["clusterId"], body["epoch"]) == (CLUSTER_ID, 1)
    assert body["brokers"]["healthy"] == 3
    assert body["brokers"]["demoted"] == 0
    assert (body["displacedPartitions"], body["leadersOutOfPlace"]) == (0, 0)
    assert body["plan"]["moves"] == 0
    assert_wording(body["message"])
    assert list(by_type(body)) == ["Connected", "Contested", "DemotionBlocked", "Ready", "Settled"]
    assert "lastElection" not in body


def test_a_plan_is_a_digest_and_counts():
    plan = Plan((move(), move(partition(index=1), elect=False)))
    body = status(said(policy=ENFORCE, plan=plan))
    assert body["plan"].items() >= {"digest": plan.digest, "moves": 2, "elections": 1, "blocked": 0}.items()


def test_what_is_held_is_a_total_a_sample_and_counts_by_reason():
    held = tuple(Hold(partition(index=i).key, "orders", Reason.ONLY_REPLICA, "x") for i in range(30))
    body = status(said(policy=ENFORCE, plan=Plan(holds=held)))
    assert body["blockedPartitions"]["total"] == 30
    assert len(body["blockedPartitions"]["sample"]) == 20
    assert body["blockedByReason"] == [
        {"reason": "OnlyReplica", "count": 30, "message": DESCRIPTIONS[Reason.ONLY_REPLICA]},
    ]


def test_affected_topics_are_as_many_as_an_object_has_room_for():
    assert "affectedTopics" not in status(said(policy=ENFORCE))
    lost = [partition(f"t{i:03}", leader=None, isr=()) for i in range(TOPIC_LIMIT + 10)]
    affected = status(said(snapshot(cluster(*lost)), ENFORCE))["affectedTopics"]
    assert (affected["total"], len(affected["worst"])) == (TOPIC_LIMIT + 10, TOPIC_LIMIT)
    assert affected["worst"][0] == {
        "topic": "t000",
        "partitions": 1,
        "offline": 1,
        "unhealthyLeader": 0,
        "underMinIsr": 0,
        "atMinIsr": 0,
    }


def test_partitions_at_risk_are_counts_by_class_and_a_sample_of_the_worst():
    short = [partition("orders", i, isr=(1, 2)) for i in range(30)]
    seen = replace(snapshot(cluster(*short, partition("lost", leader=None, isr=()))), floors={"orders": 2})
    body = status(said(seen, ENFORCE))["partitionsAtRisk"]
    assert body["total"] == 31
    assert body["classes"] == [
        {"risk": "LastIsrMemberLost", "count": 1, "message": RISKS[Risk.LAST_ISR_MEMBER_LOST]},
        {"risk": "AtMinIsr", "count": 30, "message": RISKS[Risk.AT_MIN_ISR]},
    ]
    assert len(body["sample"]) == 20
    assert body["sample"][:2] == [
        {"topic": "lost", "partition": 0, "risk": "LastIsrMemberLost"},
        {"topic": "orders", "partition": 0, "risk": "AtMinIsr"},
    ]


def test_nothing_is_said_of_risks_where_every_replica_is_in_sync():
    designed = replace(snapshot(cluster(partition(replicas=(1, 2)))), floors={"orders": 2})
    assert status(said(designed, ENFORCE))["partitionsAtRisk"] == {"total": 0, "classes": [], "sample": []}


def test_who_would_be_demoted_says_since_when_they_are_sick():
    seen = cluster(partition())
    judged = {**verdicts(seen), 1: verdict(1, since=after(-240))}
    report = said(snapshot(seen), Policy(name="main"), judged, Plan(decisions=decisions(1, 2)))
    first, second = status(report)["wouldDemote"]
    assert (first["brokerId"], first["since"]) == (1, "2025-12-31T23:56:00Z")
    assert second["brokerId"] == 2
    assert "since" not in second  # not "now", which would change the status in each reconcile


def test_the_last_election_is_carried_on():
    assert status(said(), last={"partitions": 3})["lastElection"] == {"partitions": 3}


def test_the_same_news_makes_the_same_bytes():
    first = status(said(snapshot(now=after(0))))
    conditions = {c["type"]: Rendered.model_validate(c) for c in first["conditions"]}
    assert status(said(snapshot(now=after(3600))), conditions) == first


@pytest.mark.parametrize(
    ("was", "now", "since"),
    [
        pytest.param(None, True, after(9), id="it is new"),
        pytest.param(True, True, after(1), id="its status is unchanged"),
        pytest.param(False, True, after(9), id="its status changed"),
        pytest.param(None, None, after(9), id="unknown is a status"),
    ],
)
def test_a_transition_is_a_change_of_status_and_not_of_words(was: bool | None, now: bool | None, since: object):
    before = {}
    if was is not None:
        (old,) = rendered_status.rendered([Condition("Ready", was, Reason.LEADERS_MOVING, "then")], 1, {}, after(1))
        before = {"Ready": old}
    (made,) = rendered_status.rendered([Condition("Ready", now, Reason.UP_TO_DATE, "now")], 2, before, after(9))
    assert (made.last_transition_time, made.reason, made.message) == (since, "UpToDate", "now")
    assert str(made.status) == ("Unknown" if now is None else str(now))


def test_a_long_message_is_clipped():
    long = Condition("Ready", True, Reason.MOVES_BLOCKED, "x" * 5000)
    (made,) = rendered_status.rendered([long], 1, {}, after(0))
    assert len(made.message) == rendered_status.MESSAGE_LIMIT
    assert made.message.endswith("…")


class TestTrouble:
    def body(self, reason: Reason) -> dict:
        standing = status(said(policy=ENFORCE))
        before = {c["type"]: Rendered.model_validate(c) for c in standing["conditions"]}
        return rendered_status.trouble_status(reason, "so it is", 8, before, after(60), standing)

    def test_trouble_keeps_the_last_status_and_ready_gives_the_reason(self):
        body = self.body(Reason.CLUSTER_CLAIMED)
        assert body["brokers"]["healthy"] == 3
        assert (body["observedGeneration"], body["message"]) == (8, "so it is")
        conditions = by_type(body)
        assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("False", "ClusterClaimed")
        assert conditions["Settled"]["status"] == "True"
        assert list(conditions) == sorted(conditions)

    @pytest.mark.parametrize(
        ("reason", "connected"),
        [(Reason.CLUSTER_UNREACHABLE, "False"), (Reason.NO_ANSWER, "Unknown"), (Reason.INVALID_POLICY, "Unknown")],
    )
    def test_connected_is_false_only_where_that_is_known(self, reason: Reason, connected: str):
        assert by_type(self.body(reason))["Connected"]["status"] == connected

    def test_the_same_trouble_makes_the_same_bytes(self):
        first = self.body(Reason.NO_ANSWER)
        before = {c["type"]: Rendered.model_validate(c) for c in first["conditions"]}
        again = rendered_status.trouble_status(Reason.NO_ANSWER, "so it is", 8, before, after(600), first)
        assert again == first


class TestBrokers:
    def body(self, **more: object) -> dict:
        report = replace(said().brokers[0], **more)  # type: ignore[arg-type]
        return rendered_status.broker_status(report, 0, {}, after(0))

    def test_a_broker_at_rest(self):
        body = self.body()
        assert body["verdict"]["state"] == "Healthy"
        assert (body["leaders"], body["preferredLeaders"], body["replicas"], body["registered"]) == (1, 1, 1, True)
        assert {t: c["status"] for t, c in by_type(body).items()} == {
            "Healthy": "True",
            "Demoted": "False",
            "HoldsBackISR": "False",
        }

    def test_signals_are_never_in_it(self):
        assert "signals" not in self.body()

    def test_why_a_demotion_is_held_is_in_its_condition(self):
        body = self.body(verdict=verdict(1, HealthState.SICK), hold=BrokerHold(1, Reason.CAP_REACHED, "the cap is 1"))
        demoted = by_type(body)["Demoted"]
        assert (demoted["status"], demoted["reason"], demoted["message"]) == ("False", "CapReached", "the cap is 1")


class TestTakenOver:
    """What the next process continues from."""

    def carried(self, **more: object) -> Verdict:
        seen = cluster(partition())
        judged = {**verdicts(seen), 1: replace(verdict(1, HealthState.UNKNOWN), **more)}
        return restored(record(), said(policy=ENFORCE, judged=judged)).verdicts[1]

    @pytest.mark.parametrize(("seconds", "known"), [(0.0, 0), (5.9, 0), (6.0, 6), (47.9, 42), (60.0, 60)])
    def test_seconds_known_to_be_good_are_carried_in_tenths_and_never_rounded_up(self, seconds: float, known: int):
        assert self.carried(known_good=KnownGood(seconds)).known_good.seconds == known

    def test_the_last_known_state_and_absence_are_carried(self):
        found = self.carried(last_known=HealthState.SICK, away=after(-9))
        assert (found.known_state, found.away) == (HealthState.SICK, after(-9))

    def test_an_absence_that_lasts_is_written_once_it_is_over(self):
        assert self.carried(away=after(0)).away is None


class TestReturning:
    PLAN = Plan(
        decisions=replace(
            decisions(back=[returning(1, 10)]),
            waits={1: Refusal(Reason.REPLICATION_LAGGING, "its log trails")},
        ),
        withheld={1: 27},
    )

    def test_a_restoration_has_its_progress_in_status(self):
        report = said(policy=ENFORCE, plan=self.PLAN)
        body = rendered_status.broker_status(report.brokers[0], 0, {}, after(0))
        assert body["restoration"] == {
            "wave": 1,
            "waves": 3,
            "sharePercent": 10,
            "pendingPartitions": 27,
            "since": "2026-01-01T00:00:00Z",
            "waveStartedAt": "2026-01-01T00:00:00Z",
            "blockedBy": "its log trails",
        }
        demoted = by_type(body)["Demoted"]
        assert (demoted["status"], demoted["reason"]) == ("False", "RestoringInWaves")
        assert_wording(demoted["message"])

    def test_the_policy_counts_it_and_is_not_settled(self):
        body = status(said(policy=ENFORCE, plan=self.PLAN))
        assert body["brokers"]["restoring"] == 1
        settled = by_type(body)["Settled"]
        assert (settled["status"], settled["reason"]) == ("False", "RestoringInWaves")

    def test_without_restoration_status_has_no_field_for_it(self):
        assert "restoring" not in status(said(policy=ENFORCE))["brokers"]
        assert "restoration" not in rendered_status.broker_status(said().brokers[0], 0, {}, after(0))

    def test_a_dead_broker_whose_leaders_wait_for_it_leaves_a_policy_settled(self):
        seen = snapshot(cluster(partition(replicas=[2, 3, 1], isr=[2, 3]), brokers=[2, 3]))
        report = said(seen, ENFORCE, plan=Plan(decisions=decisions(back=[returning(1, 0)])))
        assert by_type(status(report))["Settled"]["status"] == "True"
        assert_wording(report.brokers[0].condition("Demoted").message)


def test_periodic_election_is_in_status_when_the_policy_has_one():
    assert "periodicElection" not in status(said())
    found = PreferredElectionStatus(7, AutoRebalance.DISABLED)
    assert status(replace(said(), election=found))["periodicElection"] == {"autoRebalance": "Disabled"}
    ran = LastRun(after(0), before=7, elected=6, after=1)
    assert status(replace(said(), election=replace(found, last=ran)))["periodicElection"] == {
        "autoRebalance": "Disabled",
        "lastRun": "2026-01-01T00:00:00Z",
        "imbalanceBefore": 7,
        "elected": 6,
        "imbalanceAfter": 1,
    }


def test_an_empty_record_says_its_epoch():
    assert status(said(snapshot(undo=record(epoch=12))))["epoch"] == 12


def test_status_of_a_rebalance_has_its_conditions():
    run = rebalance(RunState.PROPOSED, Reason.PLAN_PROPOSED, "a plan waits", digest="0123456789abcdef")
    body = rendered_status.rebalance_status(LeaderRebalance.read(api_objects.rebalance()), run, after(0))
    assert (body["digest"], body["state"], body["observedGeneration"]) == ("0123456789abcdef", "Proposed", 0)
    found = {type_: one["status"] for type_, one in by_type(body).items()}
    assert found == {"Ready": "True", "RebalanceProposed": "True", "Rebalancing": "False"}


def test_an_unused_rebalance_keeps_its_plan_and_says_why():
    used = LeaderRebalance.read(api_objects.rebalance())
    stored = rendered_status.rebalance_status(used, rebalance(RunState.DONE, digest="0123456789abcdef"), after(0))
    body = rendered_status.unused_rebalance({**api_objects.rebalance(), "status": stored}, "no policy", after(9))
    assert (body["digest"], body["state"]) == ("0123456789abcdef", "Done")
    assert [(c["type"], c["status"], c["reason"], c["message"]) for c in body["conditions"]] == [
        ("Ready", "False", "RebalanceUnused", "no policy")
    ]
    again = rendered_status.unused_rebalance({**api_objects.rebalance(), "status": body}, "no policy", after(99))
    assert again == body


STRIMZI = Strimzi(
    namespace="kafka",
    name="my-cluster",
    listener="tls",
    user="bellwether",
    paused=True,
    rebalancing=tuple(f"r{i}" for i in range(30)),
    pods={1: Pod("my-cluster-brokers-1")},
)


@pytest.mark.parametrize(
    ("strimzi", "namespace", "called"),
    [
        pytest.param(STRIMZI, "kafka", "my-cluster", id="by Strimzi's name"),
        pytest.param(STRIMZI, "ops", "kafka/my-cluster", id="with its namespace where that is another"),
        pytest.param(None, "kafka", CLUSTER_ID, id="by its id where Strimzi does not run it"),
    ],
)
def test_a_cluster_is_called_what_people_call_it(strimzi: Strimzi | None, namespace: str, called: str):
    report = said(replace(snapshot(), strimzi=strimzi), ENFORCE)
    assert rendered_status.policy_status(report, 7, {}, None, namespace)["cluster"] == called


def test_the_strimzi_cluster_is_in_status_within_bounds():
    found = status(said(replace(snapshot(), strimzi=STRIMZI), ENFORCE))["strimzi"]
    assert found.pop("rebalancing") == [f"r{i}" for i in range(20)]
    assert found == {"namespace": "kafka", "listener": "tls", "user": "bellwether", "paused": True}
    assert "strimzi" not in status(said(policy=ENFORCE))


def test_a_broker_has_its_pod_in_status_where_known():
    first, second, _ = said(replace(snapshot(), strimzi=STRIMZI), ENFORCE).brokers
    assert rendered_status.broker_status(first, 1, {}, after(0))["pod"] == "my-cluster-brokers-1"
    assert "pod" not in rendered_status.broker_status(second, 1, {}, after(0))


def test_a_policy_that_was_stalled_is_not_any_more_once_it_is_reconciled_or_fails_for_another_reason():
    before = {
        "Stalled": Rendered(
            type="Stalled", status="True", last_transition_time=after(0), reason="InvalidPolicy", message="x"
        )
    }
    reconciled = rendered_status.outdated_status(said(), "the CRD is old", 1, before)
    unreachable = rendered_status.trouble_status(Reason.CLUSTER_UNREACHABLE, "no answer", 1, before, after(1), {})
    for status in (reconciled, unreachable):
        assert "Stalled" not in {one["type"] for one in status["conditions"]}
