from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.settings.harm import FENCED_WITHIN_SECONDS, LARGEST_LOST_SECONDS, STALLED_SECONDS, Objectives
from bellwether.core.signals import Reading, Signal
from bellwether.probes.storage.write_latency import SPAN_WRITES, Latencies, Sample
from testkit.messages import assert_wording

OBJECTIVES = Objectives()
START = datetime(2026, 1, 1, tzinfo=UTC)


def after(*samples: Sample, start: Latencies | None = None, objectives: Objectives = OBJECTIVES) -> Latencies:
    known = start or Latencies()
    for second, sample in enumerate(samples):
        known = known.after(sample, objectives, START + timedelta(seconds=second + 1))
    return known


def signal_of(known: Latencies, objectives: Objectives = OBJECTIVES) -> Signal:
    signal = known.signal(1, "b", objectives)
    assert signal is not None
    return signal


def lost(known: Latencies) -> float:
    return known.counter.lost_seconds


FAST = Sample(0.001)
SLOW = Sample(0.081)
FULL = Sample(0.001, "the disk is full")
WELL = after(*[FAST] * 10)


def test_a_fast_disk_passes_after_five_seconds() -> None:
    assert after(*[FAST] * 4).signal(1, "b", OBJECTIVES) is None
    signal = signal_of(after(*[FAST] * 5))
    assert signal.reading == Reading.PASSING
    assert_wording(signal.message)
    assert signal.harm is None


def test_a_slow_disk_fails_with_its_harm_and_recovers() -> None:
    sick = after(*[SLOW] * 10, start=WELL)
    signal = signal_of(sick)
    assert signal.reading is Reading.FAILING
    assert signal.latency_seconds == pytest.approx(0.081)
    assert signal.harm is not None
    assert signal.harm.lost_seconds == 8.5
    assert_wording(signal.message)
    assert after(*[FAST] * 4, start=sick).reading is Reading.FAILING
    assert after(*[FAST] * 5, start=sick).reading is Reading.PASSING


def test_a_disk_slow_in_bursts_loses_what_the_bursts_cost() -> None:
    assert lost(after(*[*[SLOW] * 7, *[FAST] * 3] * 3, start=WELL)) == pytest.approx(18.0)


def test_a_write_that_hangs_counts_while_it_hangs() -> None:
    hanging = after(Sample(0.2, stalled=True), start=WELL)
    assert (lost(hanging), hanging.reading) == (pytest.approx(0.4), Reading.PASSING)
    signal = signal_of(after(Sample(1.2, stalled=True), start=hanging))
    assert signal.reading is Reading.FAILING
    assert signal.message.startswith("probes lost 1.3 s")
    assert_wording(signal.message)


def test_one_slow_write_does_not_become_typical() -> None:
    slow = after(*[Sample(0.12, stalled=True), Sample(0.15, stalled=True), Sample(0.2)] * 10, start=WELL)
    assert_wording(signal_of(slow).message)
    one = after(Sample(0.15, stalled=True), Sample(0.4, stalled=True), start=slow)
    assert signal_of(one).latency_seconds == pytest.approx(0.2)
    stalled = after(*[Sample(seconds, stalled=True) for seconds in (0.6, 0.9, 1.2, 1.6, 2.0)], start=one)
    assert signal_of(stalled).latency_seconds == 2.0


def test_hanging_write_on_slow_disk_is_reported_at_cure_limits() -> None:
    posted = after(*[Sample(0.3)] * 700, start=WELL)
    assert posted.counter.lost_seconds == LARGEST_LOST_SECONDS, "the harm itself is no news any more"
    noted = []
    known = posted
    for quarter in range(1, 121):
        known = after(Sample(quarter / 4, stalled=True, covers=0.25), start=known)
        if known.differs(posted, 3600):
            posted = known
            noted.append(signal_of(known).latency_seconds)
    assert noted == [0.3, STALLED_SECONDS, FENCED_WITHIN_SECONDS]


def test_a_long_write_counts_for_the_writes_it_blocked() -> None:
    assert lost(after(Sample(3.0, covers=3.0), start=WELL)) == pytest.approx(1.7)


def test_write_counted_while_hanging_is_counted_for_rest_only() -> None:
    hanging = after(Sample(2.1, stalled=True), start=WELL)
    assert lost(after(Sample(2.6, covers=0.5), start=hanging)) == pytest.approx(lost(hanging) + 0.45)


def test_a_disk_that_refuses_writes_fails_with_the_reason() -> None:
    signal = signal_of(after(*[FULL] * 5))
    assert (signal.reading, signal.latency_seconds) == (Reading.FAILING, None)
    assert_wording(signal.message)


def test_first_write_ever_that_hangs_and_then_fails_is_reported() -> None:
    hanging = after(*[Sample(float(seconds), stalled=True) for seconds in range(1, 11)])
    failed = after(Sample(10.5, "the disk reports an I/O error"), start=hanging)
    assert_wording(signal_of(failed).message, signal_of(after(*[FULL] * 5, start=failed)).message)


def test_trouble_of_our_own_is_no_evidence_about_the_disk() -> None:
    trouble = Sample(0.0, "no permission to write there", own_trouble=True)
    assert lost(after(*[trouble] * 20)) == 0
    assert signal_of(after(*[trouble] * 5, start=WELL)).reading is Reading.UNKNOWN


@given(st.lists(st.floats(0.0001, 0.0499), min_size=1, max_size=60))
def test_jitter_within_the_objective_is_no_news(times: list[float]) -> None:
    assert not after(*[Sample(seconds) for seconds in times], start=WELL).differs(WELL, 3600)


def test_what_is_usual_only_explains() -> None:
    drip = after(*[Sample(0.001 + n * 0.0005) for n in range(180)], start=WELL)
    assert lost(drip) == pytest.approx(0.9 * 81, abs=2)
    assert signal_of(after(*[FAST] * 2 * SPAN_WRITES, start=WELL)).usual_seconds == pytest.approx(0.001)


def test_bad_times_do_not_become_usual() -> None:
    assert after(*[FAST] * 100, *[SLOW] * 500).baseline.usual == pytest.approx(0.001)


def test_objective_that_no_write_meets_is_said_with_fastest_write() -> None:
    strict = Objectives(produce_milliseconds=1)
    signal = signal_of(after(*[Sample(0.003)] * 5, objectives=strict), strict)
    assert_wording(signal.message)


def test_settled_slow_disk_is_reported_in_steps_then_never() -> None:
    sick = after(*[SLOW] * 700, start=WELL)
    assert not after(*[SLOW] * 50, start=sick).differs(sick, 3600)


AWAY = Sample(0.19, away=0.18)


def test_write_slow_only_while_prober_paused_is_no_harm() -> None:
    assert lost(after(*[AWAY, FAST] * 20, start=WELL)) == 0


def test_prober_that_is_never_let_run_says_unknown_and_why() -> None:
    signal = signal_of(after(*[AWAY] * 5, start=WELL))
    assert signal.reading is Reading.UNKNOWN
    assert_wording(signal.message)


def test_write_that_is_slow_even_without_probers_absence_counts() -> None:
    assert lost(after(*[Sample(0.2, away=0.1)] * 5, start=WELL)) == pytest.approx(4.0)


def test_an_absence_hides_no_error_and_no_stall() -> None:
    failed, stalled = Sample(0.2, "the disk is full", away=0.19), Sample(5.0, stalled=True, away=4.99, covers=5.0)
    assert after(*[failed] * 5, start=WELL).reading is Reading.FAILING
    assert after(stalled, start=WELL).reading is Reading.FAILING


def test_frozen_prober_does_not_take_time_for_missed_writes() -> None:
    assert lost(after(Sample(30.0, away=29.999, covers=1.0), FAST, start=WELL)) == 0
