"""A disk against its peers: what slows one is one broker's, what slows all is nobody's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.findings import Finding, SignalIndex
from bellwether.core.detection.health_states import Evidence
from bellwether.core.detection.storage import SLOW_SEVERITY, STALLED_SEVERITY, storage_latency
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Reading, Signal, SignalType
from testkit.values.builders import cluster, partition, signal, snapshot

GOOD, BAD = Reading.PASSING, Reading.FAILING


def disk(broker: int, reading: Reading, milliseconds: float | None, source: str = "", age: float | None = 0) -> Signal:
    made = signal(
        broker,
        reading,
        kind=SignalType.STORAGE_LATENCY,
        source=source or f"broker-{broker}",
        latency_seconds=None if milliseconds is None else milliseconds / 1000,
        age_seconds=age,
    )
    return replace(made, message=f"{milliseconds} ms")


def of_one(*signals: Signal, fenced: tuple[int, ...] = ()) -> Finding:
    seen = cluster(partition(), fenced=fenced)
    return storage_latency(1, SignalIndex.of(snapshot(seen, *signals), Detection()))


@pytest.mark.parametrize(
    ("peers", "evidence", "reason"),
    [
        pytest.param([(2, GOOD, 1), (3, GOOD, 1)], Evidence.BAD, Reason.STORAGE_SLOW, id="its peers are fast"),
        pytest.param([(2, GOOD, 10), (3, GOOD, 9)], Evidence.BAD, Reason.STORAGE_SLOW, id="less than an eighth of it"),
        pytest.param([(2, GOOD, 10), (3, GOOD, 10)], Evidence.BAD, Reason.STORAGE_SLOW, id="an eighth of it"),
        pytest.param([(2, GOOD, 40), (3, GOOD, 41)], Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, id="half as slow"),
        pytest.param([(2, BAD, 90), (3, BAD, 70)], Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, id="all are slow"),
        pytest.param([(2, BAD, 85), (3, GOOD, 1)], Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, id="every other one"),
        pytest.param([], Evidence.BAD, Reason.STORAGE_SLOW, id="nobody to compare with"),
    ],
)
def test_a_slow_disk_is_compared_with_its_peers(
    peers: list[tuple[int, Reading, float]], evidence: Evidence, reason: Reason
):
    found = of_one(disk(1, BAD, 80), *(disk(*peer) for peer in peers))
    assert (found.evidence, found.reason) == (evidence, reason)


def test_silent_and_dead_peers_are_nobody_to_compare_with():
    stale, fenced = disk(2, BAD, 80, age=99), disk(3, BAD, 80)
    assert of_one(disk(1, BAD, 80), stale, fenced, fenced=(3,)).evidence is Evidence.BAD


def test_a_disk_that_only_ends_in_errors_is_not_compared():
    found = of_one(disk(1, BAD, None), disk(2, BAD, 80), disk(3, BAD, 80))
    assert (found.evidence, found.severity) == (Evidence.BAD, STALLED_SEVERITY)


@pytest.mark.parametrize(
    ("milliseconds", "severity"), [(80, SLOW_SEVERITY), (499, SLOW_SEVERITY), (500, STALLED_SEVERITY)]
)
def test_a_disk_that_stands_still_is_worse_than_a_slow_one(milliseconds: float, severity: int):
    assert of_one(disk(1, BAD, milliseconds), disk(2, GOOD, 1)).severity == severity


def test_the_worst_of_several_directories_counts():
    found = of_one(disk(1, GOOD, 1, "data-0"), disk(1, BAD, 400, "data-1"), disk(2, GOOD, 1))
    assert found.evidence is Evidence.BAD
    assert "400 ms" in found.message


def test_of_several_slow_directories_the_slowest_counts():
    found = of_one(disk(1, BAD, 80, "data-0"), disk(1, BAD, 5000, "data-1"), disk(2, GOOD, 1))
    assert found.severity == STALLED_SEVERITY
    assert "5000 ms" in found.message


def test_a_silent_prober_is_missed_and_what_it_said_does_not_count():
    found = of_one(disk(1, BAD, 80, age=99), disk(2, GOOD, 1))
    assert (found.evidence, found.message) == (Evidence.MISSING, "the signal of its storage probe is stale")
    assert found.facts[0].ignored_because == "stale: its prober has not reported for more than 10 s"


def test_facts_carry_what_was_compared():
    slow = replace(disk(1, BAD, 80), usual_seconds=0.002)
    found = of_one(slow, disk(2, GOOD, 1.5), disk(3, GOOD, 1.5))
    assert found.facts[0].message == "80 ms; usual here 2 ms, median of its peers 1.5 ms"


def test_a_well_disk_says_what_would_make_it_slow():
    assert of_one(disk(1, GOOD, 1)).change == (
        "40 of its last 50 writes taking more than 50 ms, and 8 times as long as its peers'"
    )
