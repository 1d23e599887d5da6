from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.settings.detection import StorageLatency
from bellwether.core.signals import Reading
from bellwether.probes.storage.write_latency import SPAN_WRITES, Latencies, Sample

SETTINGS = StorageLatency(window_samples=10, failure_threshold=5, success_threshold=10)
START = datetime(2026, 1, 1, tzinfo=UTC)


def after(*samples: Sample, start: Latencies | None = None) -> Latencies:
    known = start or Latencies()
    for second, sample in enumerate(samples):
        known = known.after(sample, SETTINGS, START + timedelta(seconds=second))
    return known


FAST = Sample(0.001)
SLOW = Sample(0.081)
FULL = Sample(0.001, "the disk is full")


def test_a_fast_disk_passes_after_the_success_threshold() -> None:
    assert after(*[FAST] * 9).signal(1, "b", SETTINGS) is None
    signal = after(*[FAST] * 10).signal(1, "b", SETTINGS)
    assert signal is not None
    assert (signal.reading, signal.message) == (Reading.PASSING, "writes take median 1.0 ms, last 1.0 ms")


def test_a_slow_disk_fails_with_its_figures_and_recovers() -> None:
    sick = after(*[FAST] * 10, *[SLOW] * 5)
    signal = sick.signal(1, "b", SETTINGS)
    assert signal is not None
    assert signal.reading is Reading.FAILING
    assert signal.latency_seconds == pytest.approx(0.081)
    assert signal.message == "5 of the last 5 writes took more than 50 ms: median 81 ms, last 81 ms"
    assert after(*[FAST] * 9, start=sick).window.reading is Reading.FAILING
    assert after(*[FAST] * 10, start=sick).window.reading is Reading.PASSING


def test_a_write_that_does_not_end_counts_period_by_period() -> None:
    hanging = after(*[FAST] * 10, Sample(4.0, stalled=True))
    assert hanging.window.reading is Reading.PASSING
    signal = after(Sample(5.0, stalled=True, counted=4), start=hanging).signal(1, "b", SETTINGS)
    assert signal is not None
    assert (signal.reading, signal.message) == (Reading.FAILING, "a write has not ended within 5 s")


def test_a_write_of_several_seconds_stands_for_the_writes_that_it_kept_out() -> None:
    assert after(*[FAST] * 10, Sample(3.0)).window.reading is Reading.PASSING
    assert after(*[FAST] * 10, Sample(3.0), Sample(2.0)).window.reading is Reading.FAILING


def test_a_disk_that_refuses_writes_fails_with_the_reason() -> None:
    signal = after(*[FULL] * 5).signal(1, "b", SETTINGS)
    assert signal is not None
    assert (signal.reading, signal.message, signal.latency_seconds) == (
        Reading.FAILING,
        "writes fail: the disk is full",
        None,
    )


def test_trouble_of_our_own_is_no_evidence_about_the_disk() -> None:
    trouble = Sample(0.0, "no permission to write there", own_trouble=True)
    assert after(*[trouble] * 20).signal(1, "b", SETTINGS) is None
    signal = after(*[FAST] * 10, *[trouble] * 5).signal(1, "b", SETTINGS)
    assert signal is not None
    assert signal.reading is Reading.UNKNOWN


@given(st.lists(st.floats(0.0001, 0.0049), min_size=11, max_size=60))
def test_jitter_of_a_fast_disk_is_no_news(times: list[float]) -> None:
    posted = after(*[FAST] * 10)
    known = posted
    for seconds in times:
        known = after(Sample(seconds), start=known)
        assert not known.differs(posted, 3600, SETTINGS)


def test_a_latency_that_has_changed_by_half_is_news_but_not_often() -> None:
    sick = after(*[FAST] * 10, *[SLOW] * 5)
    worse = after(*[Sample(0.13)] * 5, start=sick)
    assert not worse.differs(sick, 4, SETTINGS)
    assert worse.differs(sick, 5, SETTINGS)


def test_while_it_fails_its_latency_is_that_of_the_slow_writes() -> None:
    bursts = after(*[FAST] * 10, *[SLOW, FAST] * 5)
    assert bursts.window.reading is Reading.FAILING
    assert bursts.typical() == pytest.approx(0.081)
    assert after(*[FAST] * 10, start=bursts).typical() == pytest.approx(0.001)


def test_a_write_that_does_not_end_is_as_slow_as_it_has_been_waited_for() -> None:
    assert after(*[FAST] * 10, Sample(5.0, stalled=True)).typical() == 5.0


def test_writes_that_end_in_errors_have_no_latency() -> None:
    assert after(*[FAST] * 10, *[FULL] * 5).typical() is None


class TestHabit:
    """A disk is judged by what is usual for it, within bounds that a dying disk cannot stretch."""

    def test_nothing_is_usual_before_two_spans_of_good_writes(self) -> None:
        assert after(*[FAST] * (9 + 2 * SPAN_WRITES - 1)).baseline.usual is None
        assert after(*[FAST] * (9 + 2 * SPAN_WRITES)).baseline.usual == pytest.approx(0.001)

    def test_the_floor_holds_for_a_fast_disk(self) -> None:
        assert after(*[FAST] * 100).limit(SETTINGS) == pytest.approx(0.05)

    def test_a_slower_disk_has_more_room_than_the_floor(self) -> None:
        slower = after(*[Sample(0.03)] * 100)
        assert slower.limit(SETTINGS) == pytest.approx(0.09)
        assert after(*[SLOW] * 20, start=slower).window.reading is Reading.PASSING
        assert after(*[Sample(0.095)] * 5, start=slower).window.reading is Reading.FAILING

    def test_bad_times_teach_nothing(self) -> None:
        sick = after(*[FAST] * 100, *[SLOW] * 500)
        assert sick.baseline.usual == pytest.approx(0.001)

    @given(st.lists(st.floats(0.0001, 10.0), min_size=1, max_size=400))
    def test_a_disk_that_dies_slowly_is_found_all_the_same(self, seconds: list[float]) -> None:
        known = after(*[Sample(s) for s in sorted(seconds)])
        assert known.limit(SETTINGS) <= SETTINGS.history_ratio * SETTINGS.threshold_milliseconds / 1000

    def test_a_disk_that_was_slow_from_the_start_is_slow(self) -> None:
        assert after(*[SLOW] * 500).window.reading is Reading.FAILING

    def test_the_word_carries_what_is_usual(self) -> None:
        signal = after(*[FAST] * 100).signal(1, "b", SETTINGS)
        assert signal is not None
        assert signal.usual_seconds == pytest.approx(0.001)


def test_a_settled_slow_disk_is_no_news() -> None:
    sick = after(*[FAST] * 10, *[SLOW] * 5)
    assert not after(*[SLOW] * 50, start=sick).differs(sick, 3600, SETTINGS)


AWAY = Sample(0.19, away=0.18)


def test_a_write_that_was_slow_only_while_the_prober_did_not_run_is_no_evidence() -> None:
    known = after(*[FAST] * 10, *[AWAY, FAST] * 20)
    assert known.window.reading is Reading.PASSING
    assert sum(known.window.bad) == 0


def test_a_prober_that_is_never_let_run_says_unknown_and_why() -> None:
    signal = after(*[FAST] * 10, *[AWAY] * 5).signal(1, "b", SETTINGS)
    assert signal is not None
    assert signal.reading is Reading.UNKNOWN
    assert signal.message == (
        "the prober cannot measure: this process was not let run while it wrote: give it more CPU"
    )


def test_a_write_that_is_slow_even_without_the_probers_absence_counts() -> None:
    signal = after(*[FAST] * 10, *[Sample(0.2, away=0.1)] * 5).signal(1, "b", SETTINGS)
    assert signal is not None
    assert signal.reading is Reading.FAILING
    assert signal.latency_seconds == pytest.approx(0.1)


def test_an_absence_hides_no_error_and_no_stall() -> None:
    failed, stalled = Sample(0.2, "the disk is full", away=0.19), Sample(5.0, stalled=True, away=4.99)
    assert after(*[FAST] * 10, *[failed] * 5).window.reading is Reading.FAILING
    assert after(*[FAST] * 10, stalled).window.reading is Reading.FAILING


def test_a_frozen_prober_does_not_take_the_time_for_missed_writes() -> None:
    assert after(*[FAST] * 10, Sample(30.0, away=29.999), FAST).window.reading is Reading.PASSING
