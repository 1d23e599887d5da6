"""What a message says beyond the signals: that a silent host is up, and who waits for a broker that leads nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.core.signals import Harm, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, partition, signal, snapshot, verdict
from testkit.values.vantage_signals import BAD, DUNNO, GOOD, of_one, words

UP = "; the probe of StorageLatency still reports from its host: the host is up, and the process hangs, is stopped"
WAS_DOWN = verdict(state=HealthState.DOWN, reason=Reason.BROKER_DOWN, since=after(0))


def disk(age: float | None = 1.0) -> Signal:
    return signal(1, GOOD, kind=SignalType.STORAGE_LATENCY, source="broker-1", latency_seconds=0.001, age_seconds=age)


def test_fenced_broker_with_measured_disk_has_live_host():
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
def test_report_from_before_silence_says_nothing_of_host(age: float | None):
    found = of_one(snapshot(cluster(partition(), fenced=[1]), disk(age), now=after(5)), before=WAS_DOWN)
    assert "host" not in found.message


def test_probe_that_cannot_measure_reports_from_host_as_well():
    unsure = replace(disk(), reading=DUNNO)
    assert UP in of_one(snapshot(cluster(partition(), fenced=[1]), unsure, now=after(5)), before=WAS_DOWN).message


def test_a_broker_that_answers_is_not_explained():
    assert "host" not in of_one(snapshot(None, *words(BAD, BAD), disk(), now=after(5))).message


HARM = Harm(6.2, 0.98, after(-6))
CUT = [
    replace(s, harm=HARM, message="probes lost 6.2 s of the last 6 s") if s.broker == 1 else s for s in words(BAD, BAD)
]


def test_a_broker_that_leads_is_not_explained_either():
    found = of_one(snapshot(cluster(partition(replicas=(1, 2, 3))), *CUT))
    assert_wording(found.message)
    assert "it leads no partition" not in found.message


def test_no_client_waits_for_an_unreachable_broker_that_leads_nothing():
    leading, leaderless = (snapshot(cluster(partition(replicas=order)), *CUT) for order in ((1, 2, 3), (2, 1, 3)))
    before, found = of_one(leading), of_one(leaderless)
    assert_wording(found.message)
    assert (found.state, found.reason, found.severity) == (before.state, before.reason, before.severity)


@pytest.mark.parametrize(
    ("isr", "waits"),
    [
        ((2, 1, 3), "it leads no partition; acks=all still waits for it in its ISRs"),
        ((2, 3), "it leads no partition; no client waits for it"),
    ],
)
def test_slow_disk_in_isr_delays_acks_all_under_any_leader(isr: tuple[int, ...], waits: str):
    disks = [
        replace(
            signal(b, BAD if b == 1 else GOOD, kind=SignalType.STORAGE_LATENCY, source=f"broker-{b}"),
            harm=HARM if b == 1 else None,
            message="probes lost 6.2 s of the last 6 s" if b == 1 else "",
        )
        for b in (1, 2, 3)
    ]
    found = of_one(snapshot(cluster(partition(replicas=(2, 1, 3), isr=isr)), *words(GOOD, GOOD), *disks))
    assert found.reason is Reason.STORAGE_SLOW
    assert found.message.endswith(waits)
