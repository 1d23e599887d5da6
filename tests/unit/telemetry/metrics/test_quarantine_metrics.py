"""What Prometheus reads of quarantines: who is to be held, who is, since when, and what ended it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.core.model.known_good import KnownGood
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.quarantine.hold_decision import ENDINGS
from bellwether.core.reasons import Reason
from bellwether.core.signals import Signal
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics
from testkit.values.builders import after, said
from testkit.values.quarantine_inputs import BAD, GOOD, NOW, agent, disk, opted_in, ordered, scene, weighed

POLICY = {"namespace": "default", "policy": "main"}
SERIES = ("ordered", "held", "since_timestamp_seconds", "until_timestamp_seconds")


@pytest.fixture
def metrics() -> OperatorMetrics:
    return OperatorMetrics()


def turned(
    metrics: OperatorMetrics, *signals: Signal, order: QuarantineOrder | None = None, seconds: float = 0
) -> None:
    """One turn over a scene, some seconds after its usual moment; a disk that is fast has been so for long."""
    now = NOW + timedelta(seconds=seconds)
    facts = scene(None, *signals, orders=[order] if order is not None else [], now=now)
    facts = replace(facts, known_good={1: KnownGood(300.0)})
    metrics.turn_ended("default", "main", 0.1, said(facts, opted_in(), quarantines=weighed(facts)), 0)


def value(metrics: OperatorMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"bellwether_{name}", {**POLICY, **labels})


def of_broker(metrics: OperatorMetrics, broker: str = "1") -> tuple[float | None, ...]:
    return tuple(value(metrics, f"broker_quarantine_{name}", broker=broker) for name in SERIES)


def told(metrics: OperatorMetrics) -> set[str]:
    """The names of all series of quarantines that have values."""
    names = {s.name for family in metrics.registry.collect() for s in family.samples}
    return {name for name in names if "quarantine" in name}


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


def test_each_order_is_counted_when_it_begins_and_when_it_ends(metrics: OperatorMetrics):
    metrics.leading("default", "main", True)
    assert value(metrics, "quarantines_started_total") == 0
    turned(metrics, disk(), agent())
    assert (
        value(metrics, "quarantines_started_total"),
        value(metrics, "quarantines_ended_total", reason="AgentUnavailable"),
    ) == (
        1,
        0,
    )
    stands = ordered(since=NOW, held_at=NOW)
    turned(metrics, disk(), agent(1, BAD, 1), order=stands, seconds=3)
    turned(metrics, disk(reading=GOOD), agent(1, BAD, 1), order=stands, seconds=4)
    ended = replace(stands, ended_at=NOW + timedelta(seconds=4), reason=Reason.QUARANTINE_ENDED)
    turned(metrics, disk(reading=GOOD), agent(1, GOOD, 1), order=ended, seconds=5)
    assert value(metrics, "quarantines_started_total") == 1
    counts = {reason: value(metrics, "quarantines_ended_total", reason=str(reason)) for reason in ENDINGS}
    assert counts == dict.fromkeys(ENDINGS, 0.0) | {Reason.QUARANTINE_ENDED: 1}


def test_a_policy_without_quarantine_exports_no_broker(metrics: OperatorMetrics):
    metrics.leading("default", "main", True)
    metrics.turn_ended("default", "main", 0.1, said(), 0)
    assert told(metrics) == {"bellwether_quarantines_started_total"}


def test_a_process_without_the_lease_exports_counts_only(metrics: OperatorMetrics):
    turned(metrics, disk(), agent())
    metrics.leading("default", "main", False)
    assert told(metrics) == {"bellwether_quarantines_started_total", "bellwether_quarantines_ended_total"}


def test_a_policy_that_is_gone_leaves_nothing(metrics: OperatorMetrics):
    turned(metrics, disk(), agent())
    metrics.forget("default", "main")
    assert told(metrics) == set()
