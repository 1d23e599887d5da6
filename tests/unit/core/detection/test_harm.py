"""The harm counter adds up what clients lose, forgets it slowly, and says when that is worth a report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bellwether.core.detection.harm import HarmCounter, lost_words
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS
from bellwether.core.signals import Reading
from testkit.messages import assert_wording

T0 = datetime(2026, 11, 21, 9, tzinfo=UTC)


def counted(*slices: tuple[float, float], start: HarmCounter | None = None, at: float = 0.0) -> HarmCounter:
    """The counter after stretches of (share, seconds), second by second."""
    counter, clock = start or HarmCounter(), at
    for share, seconds in slices:
        for _ in range(round(seconds)):
            clock += 1
            counter = counter.after(share, 1.0, T0 + timedelta(seconds=clock))
    return counter


def test_a_source_at_rest_passes_and_has_no_harm() -> None:
    counter = counted((0, 5))

    assert counter.reading is Reading.PASSING
    assert counter.harm is None


def test_nothing_is_judged_before_some_seconds_of_measurements() -> None:
    assert counted((0, 4)).reading is Reading.UNKNOWN


def test_harm_is_the_bad_share_less_the_allowance_times_seconds() -> None:
    assert counted((1, 4)).lost_seconds == pytest.approx(3.6)
    assert counted((0.7, 10)).lost_seconds == pytest.approx(6.0)


def test_half_of_slice_counts_where_requests_turn() -> None:
    assert counted((0, 10), (1, 4)).lost_seconds == pytest.approx(3.1)
    assert counted((0, 10), (1, 4), (0, 1)).lost_seconds == pytest.approx(3.5)


@pytest.mark.parametrize("phase", [0.0, 0.3, 0.7])
def test_fault_of_one_second_in_ten_stays_within_allowance(phase: float) -> None:
    """Whatever the phase of the measurements, and although the slow one takes half a second itself."""
    counter = counted((0, 10))
    for burst in range(60):
        clock = 10 + 10 * burst + phase
        slices = [(0.0, 1.0), (1.0, 1.5), (0.0, 0.5), *[(0.0, 1.0)] * 7]
        for share, seconds in slices:
            clock += seconds
            counter = counter.after(share, seconds, T0 + timedelta(seconds=clock))

    assert counter.lost_seconds < 1


def test_one_bad_request_is_not_reported() -> None:
    counter = counted((0, 10), (1, 1))

    assert counter.reading is Reading.PASSING
    assert not counter.differs(counted((0, 10)), 60)


def test_two_bad_requests_in_a_row_fail() -> None:
    counter = counted((0, 10), (1, 2))

    assert counter.reading is Reading.FAILING
    assert counter.harm is not None
    assert counter.harm.since == T0 + timedelta(seconds=10)


@pytest.mark.parametrize(("on", "off"), [(2, 2), (7, 3), (3, 20)])
def test_bursts_and_flapping_add_up(on: int, off: int) -> None:
    once, often = counted((0, 10), (1, on)), counted((0, 10), *[(1, on), (0, off)] * 10)

    assert often.lost_seconds > 2 * once.lost_seconds


def test_flapping_every_two_seconds_never_passes() -> None:
    counter = counted((0, 10), (1, 2))
    for _ in range(20):
        counter = counted((0, 2), start=counter)
        assert counter.reading is Reading.FAILING
        counter = counted((1, 2), start=counter)


def test_a_share_within_the_allowance_is_never_harm() -> None:
    assert counted((0.1, 3600)).harm is None


def test_a_drip_above_the_allowance_adds_up() -> None:
    assert counted((0, 60), (0.2, 60)).lost_seconds == pytest.approx(5.9)


def test_source_passes_again_after_five_seconds_without_bad_request() -> None:
    failing = counted((0, 10), (1, 30))

    assert counted((0, 4), start=failing).reading is Reading.FAILING
    assert counted((0, 5), start=failing).reading is Reading.PASSING


def test_harm_is_remembered_while_it_fades_and_forgotten_after_minute() -> None:
    failing = counted((0, 10), (1, 300))

    assert counted((0, 59), start=failing).lost_seconds > 250
    assert counted((0, 61), start=failing).harm is None


def test_a_bad_request_soon_after_recovery_does_not_fail_again() -> None:
    recovered = counted((0, 10), (1, 30), (0, 10))

    assert counted((1, 1), start=recovered).reading is Reading.PASSING


def test_harm_is_bounded() -> None:
    assert counted((1, 2000)).lost_seconds == LARGEST_LOST_SECONDS


def test_gap_in_which_nothing_can_be_measured_ends_count() -> None:
    counter = counted((0, 10), (1, 30)).unmeasured(T0)

    assert (counter.reading, counter.harm) == (Reading.UNKNOWN, None)
    assert counter.unmeasured(T0 + timedelta(seconds=5)) == counter


def test_growing_harm_is_reported_in_steps() -> None:
    posted, reports = counted((0, 10)), []
    counter, last = posted, 10.0
    for second in range(11, 3000):
        counter = counter.after(1.0, 1.0, T0 + timedelta(seconds=second))
        if counter.differs(posted, second - last):
            posted, last = counter, second
            reports.append(counter.lost_seconds)

    assert reports[0] < 2
    assert 15 < len(reports) < 30
    assert reports[-1] == LARGEST_LOST_SECONDS


def test_a_settled_source_reports_nothing() -> None:
    counter = counted((0, 10))

    assert not any(counted((0, n), start=counter).differs(counter, n) for n in (1, 60, 600))


def test_the_end_of_an_episode_is_reported_once() -> None:
    faded, over = counted((0, 10), (1, 2), (0, 10)), counted((0, 10), (1, 2), (0, 60))

    assert over.differs(faded, 60)
    assert not counted((0, 60), start=over).differs(over, 60)


def test_no_figure_is_reported_twice_within_half_a_second() -> None:
    failing = counted((0, 10), (1, 3))

    assert not counted((1, 10), start=failing).differs(failing, 0.4)


def test_that_requests_are_good_again_is_reported_at_once() -> None:
    failing = counted((0, 10), (1, 3))
    eased = counted((0, 1), start=failing)

    assert eased.differs(failing, 0.1)
    assert eased.harm is not None
    assert not eased.harm.ongoing
    assert not counted((0, 1), start=eased).differs(eased, 60)


def test_that_requests_are_bad_again_is_reported() -> None:
    eased = counted((0, 10), (1, 3), (0, 2))
    again = eased.after(1.0, 0.25, T0 + timedelta(seconds=30))

    assert again.differs(eased, 1)
    assert not again.differs(eased, 0.1)


def test_turns_of_source_that_flaps_for_long_are_not_reported() -> None:
    flapping = counted((0, 10), *[(1, 2), (0, 2)] * 20)

    assert not counted((1, 1), start=flapping).differs(flapping, 60)


def test_remainder_of_earlier_failures_is_reported_apart() -> None:
    first = counted((0, 10), (1, 20))
    second = counted((0, 10), (1, 4), start=first, at=30)

    assert first.harm is not None
    assert first.harm.earlier_seconds == 0.0
    assert second.harm is not None
    assert (second.harm.lost_seconds, second.harm.earlier_seconds) == (20.1, 17.0)
    assert_wording(lost_words(20.1, 17.0))
    assert lost_words(3.0, 0.4) == "3.0 s"
