"""Reads of a log directory: late ones add up to harm, and what cannot be measured says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bellwether.core.signals import Reading, Signal
from bellwether.probes.storage.disk_read import NO_OLD_SEGMENT
from bellwether.probes.storage.read_probe import ReadLatencies
from bellwether.probes.storage.write_latency import STARVED, Sample
from testkit.messages import assert_wording

START = datetime(2026, 1, 1, tzinfo=UTC)
OBJECTIVE = 0.05
FAST, LATE = Sample(0.002), Sample(0.08)
HANGING = Sample(0.6, stalled=True)
NOTHING = Sample(0.0, NO_OLD_SEGMENT, own_trouble=True)


def after(*samples: Sample, seconds: float = 1.0) -> ReadLatencies:
    known = ReadLatencies()
    for number, sample in enumerate(samples):
        known = known.after(sample, seconds, OBJECTIVE, START + timedelta(seconds=number))
    return known


def signal(known: ReadLatencies) -> Signal:
    found = known.signal(1, "b", OBJECTIVE)
    assert found is not None
    return found


def test_nothing_is_reported_before_a_reading() -> None:
    assert after(FAST).signal(1, "b", OBJECTIVE) is None


def test_fast_reads_pass_without_harm() -> None:
    found = signal(after(*[FAST] * 6))
    assert (found.reading, found.harm) == (Reading.PASSING, None)
    assert_wording(found.message)


def test_reads_over_objective_fail_with_harm_and_figures() -> None:
    found = signal(after(*[FAST] * 6, *[LATE] * 10))
    assert found.reading is Reading.FAILING
    assert found.harm is not None
    assert found.harm.lost_seconds == pytest.approx(8.5)
    assert found.latency_seconds == pytest.approx(0.08)
    assert_wording(found.message)


def test_one_late_read_is_reported_by_nothing() -> None:
    known = after(*[FAST] * 6)
    assert not known.after(LATE, 1.0, OBJECTIVE, START).differs(known, 60.0)


def test_a_read_that_hangs_counts_while_it_hangs() -> None:
    found = signal(after(*[FAST] * 6, *[HANGING] * 6, seconds=0.5))
    assert found.reading == Reading.FAILING
    assert_wording(found.message)


def test_a_disk_that_reports_errors_fails_with_the_error() -> None:
    found = signal(after(*[FAST] * 6, *[Sample(0.001, "the disk reports an I/O error")] * 3))
    assert found.reading == Reading.FAILING
    assert_wording(found.message)


def test_an_objective_that_no_read_has_met_is_said() -> None:
    found = signal(after(*[LATE] * 6))
    assert_wording(found.message)


def test_reading_is_unknown_with_reason_where_nothing_is_readable() -> None:
    found = signal(after(*[FAST] * 6, *[LATE] * 3, NOTHING))
    assert (found.reading, found.harm) == (Reading.UNKNOWN, None)
    assert_wording(found.message)


def test_only_another_reason_for_not_measuring_is_reported() -> None:
    known = after(NOTHING)
    assert not known.after(NOTHING, 1.0, OBJECTIVE, START).differs(known, 60.0)
    assert known.after(Sample(0.0, "disabled", own_trouble=True), 1.0, OBJECTIVE, START).differs(known, 0.0)


def test_reads_late_because_prober_paused_are_no_evidence() -> None:
    starved = Sample(0.3, away=0.29)
    known = after(*[FAST] * 6, *[LATE] * 3)
    assert known.after(starved, 1.0, OBJECTIVE, START).counter == known.counter
    found = signal(after(*[FAST] * 6, *[starved] * 5))
    assert (found.reading, found.message) == (Reading.UNKNOWN, f"reads are not measured: {STARVED}")
