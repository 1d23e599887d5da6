"""What a message says beyond the signals: that a silent broker's host is up, and that a broker leads nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.core.signals import Harm, Signal, SignalType
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


HARM = Harm(6.2, 0.98, after(-6))
CUT = [
    replace(s, harm=HARM, message="clients lost 6.2 s of the last 6 s") if s.broker == 1 else s for s in words(BAD, BAD)
]


def test_what_a_broker_loses_is_its_clients_loss_while_it_leads():
    found = of_one(snapshot(cluster(partition(replicas=(1, 2, 3))), *CUT))
    assert "its clients lost 6.2 s" in found.message
    assert found.facts[0].message == "clients lost 6.2 s of the last 6 s"


def test_from_the_moment_at_which_it_leads_nothing_only_probes_lose():
    leading, leaderless = (snapshot(cluster(partition(replicas=order)), *CUT) for order in ((1, 2, 3), (2, 1, 3)))
    before, found = of_one(leading), of_one(leaderless)
    assert "; its probes lost 6.2 s, and moving" in found.message
    assert found.message.endswith("; it leads nothing, so its clients lose nothing more")
    assert found.facts[0].message == "probes lost 6.2 s of the last 6 s"
    assert (found.state, found.reason, found.severity) == (before.state, before.reason, before.severity)
