"""What the operator says of itself, as Prometheus reads it."""

from __future__ import annotations

import pytest

from bellwether.core.demotions import BrokerHold
from bellwether.core.guards import Hold
from bellwether.core.plans import Plan
from bellwether.core.policies import Mode, Policy
from bellwether.core.reasons import Reason
from bellwether.core.runs import Figures, Run, RunState
from bellwether.core.statuses import Deeds, Report
from bellwether.telemetry.metrics import OperatorMetrics
from testkit.builders import cluster, decisions, move, partition, said, signal, snapshot, verdict, verdicts

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)


@pytest.fixture
def metrics() -> OperatorMetrics:
    return OperatorMetrics()


def value(metrics: OperatorMetrics, name: str, **labels: str) -> float | None:
    all_labels = {"namespace": "default", "policy": "main", **labels}
    return metrics.registry.get_sample_value(f"bellwether_{name}", all_labels)


def ended(metrics: OperatorMetrics, report: Report | None = None, seconds: float = 0.2) -> None:
    metrics.turn_ended("default", "main", seconds, report or said(policy=ENFORCE), 7)


def test_a_turn_is_timed_and_a_stuck_one_shows(metrics: OperatorMetrics):
    metrics.turn_begins("default", "main", 1000.0)
    assert value(metrics, "turn_start_timestamp_seconds") == 1000.0
    metrics.turn_ends("default", "main")
    ended(metrics)
    assert value(metrics, "turn_start_timestamp_seconds") == 0
    assert value(metrics, "turn_seconds_sum") == 0.2
    assert value(metrics, "turn_last_success_timestamp_seconds") == snapshot().now.timestamp()


def test_a_failed_turn_is_counted_by_kind(metrics: OperatorMetrics):
    metrics.turn_failed("default", "main", "Transient")
    assert value(metrics, "errors_total", kind="Transient") == 1


@pytest.mark.parametrize(("plan", "rest"), [(Plan(), 1), (Plan((move(),)), 0)])
def test_rest_is_a_turn_that_asks_for_nothing(metrics: OperatorMetrics, plan: Plan, rest: int):
    ended(metrics, said(policy=ENFORCE, plan=plan))
    assert value(metrics, "at_rest") == rest


def test_every_broker_has_its_verdict_its_leaders_and_whether_it_is_demoted(metrics: OperatorMetrics):
    judged = {**verdicts(cluster(partition())), 1: verdict(1)}
    ended(metrics, said(policy=ENFORCE, judged=judged, plan=Plan(decisions=decisions(1))))
    assert value(metrics, "broker_verdict", broker="1", verdict="Sick") == 1
    assert value(metrics, "broker_verdict", broker="1", verdict="Healthy") == 0
    assert value(metrics, "broker_leaders", broker="1") == 1
    assert (value(metrics, "broker_demoted", broker="1"), value(metrics, "broker_demoted", broker="2")) == (1, 0)


def test_a_broker_that_is_gone_and_a_reason_that_no_longer_holds_are_not_told_any_more(metrics: OperatorMetrics):
    held = Plan(
        holds=(Hold(partition().key, "orders", Reason.ONLY_REPLICA, "x"),),
        decisions=decisions(held=[BrokerHold(1, Reason.CAP_REACHED, "x"), BrokerHold(2, Reason.CAP_REACHED, "x")]),
    )
    ended(metrics, said(policy=ENFORCE, plan=held))
    assert value(metrics, "moves_held", reason="OnlyReplica") == 1
    assert value(metrics, "brokers_held", reason="CapReached") == 2
    ended(metrics, said(snapshot(cluster(partition(replicas=[1, 2]), brokers=2)), ENFORCE))
    assert value(metrics, "moves_held", reason="OnlyReplica") is None
    assert value(metrics, "brokers_held", reason="CapReached") is None
    assert value(metrics, "broker_leaders", broker="3") is None


def test_another_policy_keeps_its_own(metrics: OperatorMetrics):
    ended(metrics)
    metrics.turn_ended("default", "other", 0.1, said(), 0)
    ended(metrics)
    labels = {"namespace": "default", "policy": "other", "broker": "1"}
    assert metrics.registry.get_sample_value("bellwether_broker_leaders", labels) == 1


def test_deeds_add_up(metrics: OperatorMetrics):
    for _ in range(2):
        ended(metrics, said(policy=ENFORCE, deeds=Deeds(5, 3)))
    assert value(metrics, "partitions_reordered_total") == 10
    assert value(metrics, "leaders_elected_total") == 6
    assert value(metrics, "replica_sets_touched_total") == 0
    assert value(metrics, "undo_record_entries") == 7


def test_the_age_of_every_signal_is_told_and_never_heard_is_minus_one(metrics: OperatorMetrics):
    metrics.heard("default", "main", [signal(1, age_seconds=2.5), signal(2, age_seconds=None)])
    of = {"type": "ExternalReachability", "source": "vantage-a"}
    assert value(metrics, "signal_age_seconds", broker="1", **of) == 2.5
    assert value(metrics, "signal_age_seconds", broker="2", **of) == -1
    metrics.heard("default", "main", [])
    assert value(metrics, "signal_age_seconds", broker="1", **of) is None


def test_whoever_does_not_lead_says_nothing_of_brokers(metrics: OperatorMetrics):
    ended(metrics)
    metrics.leading("default", "main", False)
    assert value(metrics, "leadership_held") == 0
    assert value(metrics, "broker_leaders", broker="1") is None


def test_a_policy_that_is_gone_leaves_nothing(metrics: OperatorMetrics):
    ended(metrics)
    metrics.leading("default", "main", True)
    metrics.turn_failed("default", "main", "Fenced")
    metrics.forget("default", "main")
    assert [s for family in metrics.registry.collect() for s in family.samples] == []


def test_a_rebalance_tells_its_state_its_partitions_and_its_loads(metrics: OperatorMetrics):
    figures = Figures(200.0, 100.0, 1.0, 0.0, 99.0, 0.01, 7, 2, 400, 300)
    run = Run(RunState.APPLYING, figures=figures, taken_up=5, left={"TopicGone": 2})
    metrics.rebalance("default", "main", run)
    assert value(metrics, "rebalance_state", state="Applying") == 1
    assert value(metrics, "rebalance_state", state="Idle") == 0
    assert value(metrics, "rebalance_partitions", what="applied") == 3
    assert value(metrics, "rebalance_partitions", what="left") == 2
    loads = [value(metrics, "rebalance_load_bytes_per_second", when=when) for when in ("before", "after", "bound")]
    assert loads == [200.0, 100.0, 99.0]


def test_a_policy_that_rebalances_nothing_says_nothing_of_it(metrics: OperatorMetrics):
    metrics.rebalance("default", "main", Run(RunState.DONE))
    metrics.rebalance("default", "main", None)
    assert value(metrics, "rebalance_state", state="Done") is None
    assert value(metrics, "rebalance_partitions", what="applied") is None


def test_a_process_that_lost_the_lease_says_nothing_of_a_rebalance(metrics: OperatorMetrics):
    metrics.rebalance("default", "main", Run(RunState.DONE))
    metrics.leading("default", "main", False)
    assert value(metrics, "rebalance_state", state="Done") is None
