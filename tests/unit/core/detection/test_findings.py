"""What one reconcile's signals are sorted into, once for all brokers."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.findings import Finding, SignalIndex, evidence_item, fresh, worst
from bellwether.core.detection.health_states import Evidence
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Harm, Reading, SignalType
from testkit.values.builders import cluster, partition, signal, snapshot


def scene(harm: dict[int, float], brokers: int = 12) -> SignalIndex:
    kind = SignalType.STORAGE_LATENCY
    said = []
    for b, lost in harm.items():
        made = signal(b, Reading.FAILING if lost else Reading.PASSING, kind=kind, source=f"broker-{b}")
        said.append(replace(made, harm=Harm(lost, 1.0, made.since) if lost else None))
    return SignalIndex.of(snapshot(cluster(partition(), brokers=brokers), *said), Detection())


@given(st.dictionaries(st.integers(1, 12), st.sampled_from([0.0, 1.5, 8.0, 600.0]), max_size=12), st.integers(1, 12))
def test_harm_of_peers_is_median_of_all_others(harm: dict[int, float], broker: int):
    others = [seconds for b, seconds in harm.items() if b != broker]
    expected = pytest.approx(median(others)) if others else None
    assert scene(harm).writes.of_peers(broker) == expected


@pytest.mark.parametrize(
    ("age", "reading", "counts"),
    [
        (0.0, Reading.PASSING, True),
        (10.0, Reading.FAILING, True),
        (10.1, Reading.FAILING, False),
        (None, Reading.FAILING, False),
        (0.0, Reading.UNKNOWN, False),
    ],
)
def test_only_a_fresh_signal_with_a_known_reading_is_evidence(age: float | None, reading: Reading, counts: bool):
    said = signal(1, reading, age_seconds=age)
    assert fresh(said, 10) is counts
    assert (evidence_item(said, 10).ignored_because == "") is counts


def test_worst_finding_counts_and_of_two_alike_more_severe():
    found = [
        Finding(evidence, Reason.NO_EVIDENCE, "", severity)
        for evidence, severity in [(Evidence.GOOD, 9), (Evidence.DOUBTFUL, 9), (Evidence.BAD, 2), (Evidence.BAD, 3)]
    ]
    assert worst(found) is found[3]
    assert worst(found[:2]) is found[1]


def test_missing_evidence_is_worse_than_good_and_better_than_doubt():
    kinds = [Finding(e, Reason.NO_EVIDENCE, "") for e in (Evidence.GOOD, Evidence.MISSING, Evidence.DOUBTFUL)]
    assert worst(kinds[:2]).evidence is Evidence.MISSING
    assert worst(kinds).evidence is Evidence.DOUBTFUL
