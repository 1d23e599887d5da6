"""What the operator says of itself, as Prometheus reads it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.api.v1alpha1.status.rebalance_status import Losses, LossRatios, ReportedLoss
from bellwether.core.doctor.risks import Risk
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.history.known_good import KnownGood
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.refusals import BrokerHold, Hold, Refusal
from bellwether.core.planning.plan import Plan
from bellwether.core.planning.preferred_election import LastRun, PreferredElectionStatus
from bellwether.core.quarantine.hold_decision import ENDINGS
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Reading, Signal, SignalType, SourceSignals, UnreachableCause
from bellwether.ports.rebalance import RunState
from bellwether.telemetry.metrics.operator_metrics import SIGNAL_STATES, OperatorMetrics
from testkit.values.builders import (
    after,
    cluster,
    decisions,
    move,
    partition,
    returning,
    said,
    signal,
    snapshot,
    verdict,
    verdicts,
)
from testkit.values.quarantine_inputs import BAD, GOOD, NOW, agent, disk, opted_in, ordered, scene, weighed
from testkit.values.rebalances import plan_figures, rebalance

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)


@pytest.fixture
def metrics() -> OperatorMetrics:
    return OperatorMetrics()


def value(metrics: OperatorMetrics, name: str, **labels: str) -> float | None:
    all_labels = {"namespace": "default", "policy": "main", **labels}
    return metrics.registry.get_sample_value(f"bellwether_{name}", all_labels)


def ended(metrics: OperatorMetrics, report: Report | None = None, seconds: float = 0.2) -> None:
    metrics.record_reconcile("default", "main", seconds, report or said(policy=ENFORCE), 7)


def test_a_reconcile_is_timed_and_a_stuck_one_shows(metrics: OperatorMetrics):
    metrics.begin_reconcile("default", "main", 1000.0)
    assert value(metrics, "reconcile_start_timestamp_seconds") == 1000.0
    metrics.end_reconcile("default", "main")
    ended(metrics)
    assert value(metrics, "reconcile_start_timestamp_seconds") == 0
    assert value(metrics, "reconcile_duration_seconds_sum") == 0.2
    assert value(metrics, "reconcile_last_success_timestamp_seconds") == snapshot().now.timestamp()


def test_a_failed_reconcile_is_counted_by_kind(metrics: OperatorMetrics):
    metrics.count_failure("default", "main", "Transient")
    assert value(metrics, "reconcile_errors_total", kind="Transient") == 1


@pytest.mark.parametrize(("plan", "rest"), [(Plan(), 1), (Plan((move(),)), 0)])
def test_rest_is_a_reconcile_that_asks_for_nothing(metrics: OperatorMetrics, plan: Plan, rest: int):
    ended(metrics, said(policy=ENFORCE, plan=plan))
    assert value(metrics, "reconcile_idle") == rest


def test_every_broker_has_verdict_leaders_and_demotion(metrics: OperatorMetrics):
    judged = {**verdicts(cluster(partition())), 1: verdict(1)}
    ended(metrics, said(policy=ENFORCE, judged=judged, plan=Plan(decisions=decisions(1))))
    assert value(metrics, "broker_verdict", broker="1", verdict="Sick") == 1
    assert value(metrics, "broker_verdict", broker="1", verdict="Healthy") == 0
    assert value(metrics, "broker_leaders", broker="1") == 1
    assert (value(metrics, "broker_demoted", broker="1"), value(metrics, "broker_demoted", broker="2")) == (1, 0)


def test_series_of_gone_brokers_and_ended_reasons_are_dropped(metrics: OperatorMetrics):
    held = Plan(
        holds=(Hold(partition().key, "orders", Reason.ONLY_REPLICA, "x"),),
        decisions=decisions(held=[BrokerHold(1, Reason.CAP_REACHED, "x"), BrokerHold(2, Reason.CAP_REACHED, "x")]),
    )
    ended(metrics, said(policy=ENFORCE, plan=held))
    assert value(metrics, "partition_moves_blocked", reason="OnlyReplica") == 1
    assert value(metrics, "brokers_action_blocked", reason="CapReached") == 2
    ended(metrics, said(snapshot(cluster(partition(replicas=[1, 2]), brokers=2)), ENFORCE))
    assert value(metrics, "partition_moves_blocked", reason="OnlyReplica") is None
    assert value(metrics, "brokers_action_blocked", reason="CapReached") is None
    assert value(metrics, "broker_leaders", broker="3") is None


def test_another_policy_keeps_its_own(metrics: OperatorMetrics):
    ended(metrics)
    metrics.record_reconcile("default", "other", 0.1, said(), 0)
    ended(metrics)
    labels = {"namespace": "default", "policy": "other", "broker": "1"}
    assert metrics.registry.get_sample_value("bellwether_broker_leaders", labels) == 1


def test_deeds_add_up(metrics: OperatorMetrics):
    for _ in range(2):
        ended(metrics, said(policy=ENFORCE, result=ExecutionResult(5, 3)))
    assert value(metrics, "partitions_reordered_total") == 10
    assert value(metrics, "leaders_elected_total") == 6
    assert value(metrics, "replica_set_conflicts_total") == 0
    assert value(metrics, "undo_record_entries") == 7


def by_source(*signals: Signal) -> list[SourceSignals]:
    return [SourceSignals(s.type, s.source, s.age_seconds, {s.reading: 1}) for s in signals]


def test_signal_ages_cover_every_source_and_unseen_is_minus_one(metrics: OperatorMetrics):
    heard = [signal(1, age_seconds=2.5), signal(2, age_seconds=None), signal(3, source="vantage-b", age_seconds=None)]
    metrics.export_signal_ages("default", "main", by_source(*heard), lambda _type, _source: 15.0)
    kind = "ExternalReachability"
    assert value(metrics, "signal_age_seconds", type=kind, source="vantage-a") == 2.5
    assert value(metrics, "signal_age_seconds", type=kind, source="vantage-b") == -1
    metrics.export_signal_ages("default", "main", [], lambda _type, _source: 15.0)
    assert value(metrics, "signal_age_seconds", type=kind, source="vantage-a") is None


def test_signals_are_counted_by_reading_and_old_ones_as_stale(metrics: OperatorMetrics):
    heard = [
        signal(1, Reading.PASSING, age_seconds=2.5),
        signal(2, Reading.FAILING, age_seconds=15.0),
        signal(3, age_seconds=15.1),
        signal(4, Reading.FAILING, age_seconds=None),
    ]
    metrics.export_signal_ages("default", "main", by_source(*heard), lambda _type, _source: 15.0)
    states = [value(metrics, "signals", type="ExternalReachability", state=s) for s in SIGNAL_STATES]
    assert states == [1, 1, 0, 2]


def test_what_the_policy_does_not_judge_by_is_not_missed(metrics: OperatorMetrics):
    metrics.export_signal_ages("default", "main", by_source(signal(1, age_seconds=None)), lambda _type, _source: None)
    assert value(metrics, "signal_age_seconds", type="ExternalReachability", source="vantage-a") is None
    assert value(metrics, "signals", type="ExternalReachability", state="stale") is None


def test_process_without_lease_exports_its_own_state_and_counts_only(metrics: OperatorMetrics):
    metrics.leading("default", "main", True)
    ended(metrics)
    metrics.export_signal_ages("default", "main", by_source(signal(1, age_seconds=1)), lambda _type, _source: 15.0)
    metrics.rebalance("default", "main", rebalance(RunState.DONE))
    metrics.troubled("default", "main", Reason.NO_ANSWER)
    metrics.leading("default", "main", False)
    samples = [s for m in metrics.registry.collect() for s in m.samples if s.labels.get("policy")]
    left = {s.name.removeprefix("bellwether_") for s in samples}
    counts = {"partitions_reordered", "leaders_elected", "replica_set_conflicts", "quarantines_started"}
    assert {name for name in left if not name.startswith("reconcile_")} == {
        "operator_leading",
        *(f"{name}_total" for name in counts),
    }


def test_a_policy_that_is_gone_leaves_nothing(metrics: OperatorMetrics):
    ended(metrics)
    metrics.leading("default", "main", True)
    metrics.count_failure("default", "main", "Fenced")
    metrics.exchanges.kafka("default", "main", "Metadata", "ok", 0.1)
    metrics.troubled("default", "main", Reason.NO_ANSWER)
    metrics.forget("default", "main")
    left = {s.name for family in metrics.registry.collect() for s in family.samples}
    assert left == {"bellwether_build_info"}


def test_a_rebalance_tells_its_state_its_partitions_and_its_loads(metrics: OperatorMetrics):
    plan = plan_figures(load_before=200, load_after=100, bound=99)
    metrics.rebalance("default", "main", rebalance(RunState.APPLYING, plan=plan, applied=3, skipped=2))
    assert value(metrics, "rebalance_state", state="Applying") == 1
    assert value(metrics, "rebalance_state", state="Idle") == 0
    assert value(metrics, "rebalance_partitions", result="applied") == 3
    assert value(metrics, "rebalance_partitions", result="skipped") == 2
    loads = [value(metrics, "rebalance_load_bytes_per_second", when=when) for when in ("before", "after", "bound")]
    assert loads == [200.0, 100.0, 99.0]


def test_losses_of_a_rebalance_are_ratios_by_kind(metrics: OperatorMetrics):
    now = ReportedLoss(lost="3", busiest=1, ratio="1.75")
    of = LossRatios(now=now, planned=now.model_copy(update={"ratio": "1.25"}), bound="1.20")
    losses = Losses(broker=of, rack=None, limit="1.60", measured_at=NOW)
    metrics.rebalance("default", "main", rebalance(RunState.IDLE, losses=losses))
    found = [
        value(metrics, "rebalance_loss_ratio", kind="broker", when=w) for w in ("now", "planned", "bound", "limit")
    ]
    assert found == [1.75, 1.25, 1.2, 1.6]
    assert value(metrics, "rebalance_loss_ratio", kind="rack", when="now") is None


def test_a_policy_that_rebalances_nothing_says_nothing_of_it(metrics: OperatorMetrics):
    metrics.rebalance("default", "main", rebalance(RunState.DONE))
    metrics.rebalance("default", "main", None)
    assert value(metrics, "rebalance_state", state="Done") is None
    assert value(metrics, "rebalance_partitions", result="applied") is None


def test_a_policy_counts_as_not_led_until_it_is(metrics: OperatorMetrics):
    metrics.leading("default", "main", False)
    assert value(metrics, "operator_leading") == 0
    metrics.leading("default", "main", True)
    assert value(metrics, "operator_leading") == 1


def test_an_error_is_exported_by_reason_until_a_good_reconcile(metrics: OperatorMetrics):
    metrics.troubled("default", "main", Reason.CLUSTER_CHANGED)
    metrics.troubled("default", "main", Reason.RECORD_UNAVAILABLE)
    assert value(metrics, "policy_error", reason="ClusterChanged") is None
    assert value(metrics, "policy_error", reason="RecordUnavailable") == 1
    ended(metrics)
    assert value(metrics, "policy_error", reason="RecordUnavailable") is None


def test_partitions_at_risk_are_exported_by_class_including_zero(metrics: OperatorMetrics):
    short = cluster(partition(isr=(1, 2)), partition(index=1, isr=(1,)), partition(index=2))
    ended(metrics, said(replace(snapshot(short), floors={"orders": 2}), ENFORCE))
    counts = {risk: value(metrics, "partitions_at_risk", risk=str(risk)) for risk in Risk}
    assert counts == dict.fromkeys(Risk, 0.0) | {Risk.AT_MIN_ISR: 1, Risk.UNDER_MIN_ISR: 1, Risk.IN_SYNC: None}
    ended(metrics)
    assert value(metrics, "partitions_at_risk", risk="AtMinIsr") == 0


def test_a_broker_has_its_reason_and_what_holds_it(metrics: OperatorMetrics):
    sick = replace(verdict(1), cause=UnreachableCause.REFUSED)
    judged = {**verdicts(cluster(partition())), 1: sick}
    held = decisions(held=[BrokerHold(1, Reason.CAP_REACHED, "x")])
    ended(metrics, said(policy=ENFORCE, judged=judged, plan=Plan(decisions=held)))
    assert value(metrics, "broker_verdict_reason", broker="1", reason=str(sick.reason), cause="Refused") == 1
    assert value(metrics, "broker_action_blocked", broker="1", reason="CapReached") == 1
    ended(metrics)
    assert value(metrics, "broker_action_blocked", broker="1", reason="CapReached") is None


def test_restoration_progress_is_exported_while_it_lasts(metrics: OperatorMetrics):
    plan = Plan(decisions=decisions(back=[returning(1, 10)]), withheld={1: 27})
    ended(metrics, said(policy=ENFORCE, plan=plan))
    assert value(metrics, "broker_restoration_ratio", broker="1") == 0.1
    assert value(metrics, "broker_restoration_pending_partitions", broker="1") == 27
    assert value(metrics, "broker_restoration_ratio", broker="2") is None
    ended(metrics)
    assert value(metrics, "broker_restoration_ratio", broker="1") is None
    assert value(metrics, "broker_restoration_pending_partitions", broker="1") is None


def test_imbalance_is_exported_now_before_and_after_the_last_election(metrics: OperatorMetrics):
    ended(metrics)
    assert value(metrics, "preferred_leader_imbalance", when="now") is None
    found = PreferredElectionStatus(3, last=LastRun(after(0), before=7, elected=6))
    ended(metrics, replace(said(policy=ENFORCE), election=found))
    assert value(metrics, "preferred_leader_imbalance", when="now") == 3
    assert value(metrics, "preferred_leader_imbalance", when="before") == 7
    assert value(metrics, "preferred_leader_imbalance", when="after") is None
    read = replace(found, last=LastRun(after(0), 7, 6, after=1))
    ended(metrics, replace(said(policy=ENFORCE), election=read))
    assert value(metrics, "preferred_leader_imbalance", when="after") == 1


def test_the_time_of_demotion_is_exported_while_demoted(metrics: OperatorMetrics):
    demoted = decisions(1)
    ended(metrics, said(policy=ENFORCE, plan=Plan(decisions=demoted)))
    since = demoted.demoted[1].since.timestamp()
    assert value(metrics, "broker_demoted_since_timestamp_seconds", broker="1") == since
    assert value(metrics, "broker_demoted_since_timestamp_seconds", broker="2") is None
    ended(metrics)
    assert value(metrics, "broker_demoted_since_timestamp_seconds", broker="1") is None


def test_a_demoted_broker_that_follows_slowly_holds_acks_all_back(metrics: OperatorMetrics):
    slow = replace(verdict(1), slow=Reason.STORAGE_SLOW)
    at = cluster(partition(replicas=[2, 1, 3]))
    ended(metrics, said(snapshot(at), ENFORCE, judged={**verdicts(at), 1: slow}))
    assert value(metrics, "broker_holds_back_isr", broker="1") == 1
    assert value(metrics, "broker_holds_back_isr", broker="2") == 0


def test_partitions_without_a_leader_are_counted(metrics: OperatorMetrics):
    ended(metrics, said(snapshot(cluster(partition(leader=None), partition("other"))), ENFORCE))
    assert (value(metrics, "partitions"), value(metrics, "partitions_leaderless")) == (2, 1)


def test_a_run_that_stopped_is_counted_by_its_reason(metrics: OperatorMetrics):
    ended(metrics, said(policy=ENFORCE, result=ExecutionResult(stopped=Refusal(Reason.NO_ANSWER, "x"))))
    assert value(metrics, "executions_aborted_total", reason="NoAnswer") == 1


def test_no_series_is_missing_while_a_reconcile_is_exported(metrics: OperatorMetrics):
    """A scrape in the middle of a turn's news must find every broker: an absent series resets an alert."""
    ended(metrics)
    missing, done = [], threading.Event()

    def scrape() -> None:
        while not done.is_set():
            if value(metrics, "broker_verdict", broker="2", verdict="Healthy") is None:
                missing.append(1)

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for _ in range(100):
        ended(metrics)
    done.set()
    scraper.join()
    assert missing == []


def test_a_thousand_brokers_make_less_than_twenty_series_each(metrics: OperatorMetrics):
    brokers = 1000
    at = cluster(*(partition(index=i, replicas=[i % brokers + 1]) for i in range(brokers)), brokers=brokers)
    ended(metrics, said(snapshot(at), ENFORCE))
    probed = [signal(b, source=f"zone-{z}", age_seconds=1) for b in range(1, brokers + 1) for z in range(3)]
    beside = [
        signal(b, source=f"broker-{b}", kind=kind, age_seconds=1)
        for b in range(1, brokers + 1)
        for kind in (SignalType.STORAGE_LATENCY, SignalType.SELF_REACHABILITY)
    ]
    metrics.export_signal_ages("default", "main", by_source(*probed, *beside), lambda _type, _source: 15.0)
    series = sum(len(family.samples) for family in metrics.registry.collect())
    assert brokers * 10 < series < brokers * 20


SERIES = ("ordered", "held", "since_timestamp_seconds", "until_timestamp_seconds")


def turned(
    metrics: OperatorMetrics, *signals: Signal, order: QuarantineOrder | None = None, seconds: float = 0
) -> None:
    """One turn over a scene, some seconds after its usual moment; a disk that is fast has been so for long."""
    now = NOW + timedelta(seconds=seconds)
    facts = scene(None, *signals, orders=[order] if order is not None else [], now=now)
    facts = replace(facts, known_good={1: KnownGood(300.0)})
    metrics.record_reconcile("default", "main", 0.1, said(facts, opted_in(), quarantines=weighed(facts)), 0)


def of_broker(metrics: OperatorMetrics, broker: str = "1") -> tuple[float | None, ...]:
    return tuple(value(metrics, f"broker_quarantine_{name}", broker=broker) for name in SERIES)


def test_an_order_is_exported_with_its_times_before_the_hold(metrics: OperatorMetrics):
    turned(metrics, disk(), agent())
    assert of_broker(metrics) == (1, 0, NOW.timestamp(), NOW.timestamp() + 600)
    assert of_broker(metrics, "2") == (None, None, None, None)


def test_a_broker_is_held_once_its_agent_says_so(metrics: OperatorMetrics):
    turned(metrics, disk(), agent(1, BAD, 1), order=ordered(since=after(290)))
    assert of_broker(metrics)[:2] == (1, 1)


def test_a_hold_without_an_order_is_exported(metrics: OperatorMetrics):
    turned(metrics, disk(), agent(1, BAD, 7))
    assert of_broker(metrics) == (0, 1, None, None)


def test_the_last_signal_of_a_silent_agent_is_ignored(metrics: OperatorMetrics):
    turned(metrics, disk(), agent(1, BAD, 1, age=15.1), order=ordered(held_at=after(10)))
    assert of_broker(metrics)[1] == 0
    assert value(metrics, "broker_quarantine_ended", broker="1", reason="AgentUnavailable") == 1


def test_an_ended_quarantine_is_exported_with_its_reason(metrics: OperatorMetrics):
    over = ordered(held_at=after(10), ended_at=after(100), reason=Reason.QUARANTINE_LIMIT)
    turned(metrics, disk(), agent(1, GOOD, 1), order=over, seconds=399)
    assert of_broker(metrics) == (0, 0, None, None)
    assert value(metrics, "broker_quarantine_ended", broker="1", reason="QuarantineLimit") == 1
    turned(metrics, disk(reading=GOOD), agent(1, GOOD, 1), order=over, seconds=400)
    assert value(metrics, "broker_quarantine_ended", broker="1", reason="QuarantineLimit") is None


def test_each_order_is_counted_at_start_and_end(metrics: OperatorMetrics):
    metrics.leading("default", "main", True)
    assert value(metrics, "quarantines_started_total") == 0
    turned(metrics, disk(), agent())
    assert value(metrics, "quarantines_started_total") == 1
    assert value(metrics, "quarantines_ended_total", reason="AgentUnavailable") == 0
    stands = ordered(since=NOW, held_at=NOW)
    turned(metrics, disk(), agent(1, BAD, 1), order=stands, seconds=3)
    turned(metrics, disk(reading=GOOD), agent(1, BAD, 1), order=stands, seconds=4)
    ended = replace(stands, ended_at=NOW + timedelta(seconds=4), reason=Reason.QUARANTINE_ENDED)
    turned(metrics, disk(reading=GOOD), agent(1, GOOD, 1), order=ended, seconds=5)
    assert value(metrics, "quarantines_started_total") == 1
    counts = {reason: value(metrics, "quarantines_ended_total", reason=str(reason)) for reason in ENDINGS}
    assert counts == dict.fromkeys(ENDINGS, 0.0) | {Reason.QUARANTINE_ENDED: 1}
