"""A broker that gives no answer while a sidecar on its host reports: the process is at fault, not the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.core.signals import Signal, SignalType
from testkit.values.builders import after, cluster, partition, signal, snapshot, verdict
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, of_one, words

UP = "; StorageLatency is still reported from its host: the host is up, and the process hangs, is stopped (frozen) or"
WAS_DOWN = verdict(state=HealthState.DOWN, reason=Reason.BROKER_DOWN, since=after(0))


def disk(age: float | None = 1.0) -> Signal:
    return signal(1, GOOD, kind=SignalType.STORAGE_LATENCY, source="broker-1", latency_seconds=0.001, age_seconds=age)


def test_a_fenced_broker_whose_disk_is_still_measured_has_a_host_that_is_up():
    found = of_one(snapshot(cluster(partition(), fenced=[1]), disk(), now=after(5)), before=WAS_DOWN)
    assert (found.state, found.reason) == (HealthState.DOWN, Reason.BROKER_DOWN)
    assert UP in found.message


@pytest.mark.parametrize("reason", [Reason.UNREACHABLE, Reason.NOT_FENCED_IN_TIME])
def test_so_has_one_that_is_not_fenced_yet(reason: Reason):
    before = verdict(state=HealthState.DOWN, reason=reason, since=after(0))
    found = of_one(snapshot(None, *words(BAD, BAD, control=BAD), disk(), now=after(5)), before=before)
    assert found.reason is reason
    assert UP in found.message


@pytest.mark.parametrize(
    "age", [pytest.param(6.0, id="from before"), pytest.param(None, id="never"), pytest.param(600.0, id="stale")]
)
def test_a_report_from_before_it_fell_silent_says_nothing_of_its_host(age: float | None):
    found = of_one(snapshot(cluster(partition(), fenced=[1]), disk(age), now=after(5)), before=WAS_DOWN)
    assert "host" not in found.message


def test_a_probe_that_cannot_measure_reports_from_the_host_as_well():
    unsure = replace(disk(), reading=DUNNO)
    assert UP in of_one(snapshot(cluster(partition(), fenced=[1]), unsure, now=after(5)), before=WAS_DOWN).message


def test_a_broker_that_answers_is_not_explained():
    assert "host" not in of_one(snapshot(None, *words(BAD, BAD), disk(), now=after(5))).message
