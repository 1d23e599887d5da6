from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from bellwether_load.histories.loads import UNKNOWN, WEEK, Levels, filled
from bellwether_load.histories.sketches import ERROR
from testkit.loads.load_histories import MIDNIGHT, Sample, exact, measured, rates, steady

DAY = 1440
FRIDAY = 24 * datetime.fromtimestamp(MIDNIGHT, UTC).weekday()
"""Hour of the week at the midnight from which the samples count."""


def levels(found: Levels, partition: int = 0) -> tuple[float, float, float]:
    return (float(found.median[partition]), float(found.p95[partition]), float(found.peak[partition]))


def near(*wanted: float) -> object:
    """Within the error of a sketch."""
    return pytest.approx(wanted if len(wanted) > 1 else wanted[0], rel=ERROR + 1e-9)


def test_a_steady_partition_has_one_rate():
    found = measured(steady(60, messages=120, each=50))
    assert levels(found.produce) == near(100.0, 100.0, 100.0)
    assert (found.samples.tolist(), found.covered.tolist()) == ([60], [59 * 60])
    assert found.sized.tolist() == [True]


def test_requests_are_means_by_hour_in_hundredths_and_null_where_unknown():
    asked = [replace(s, requests=0.2 if s.at < 3600 else 0.4) for s in steady(121)]
    found = measured(asked, steady(121))
    assert found.request_hours[0, FRIDAY : FRIDAY + 2].tolist() == pytest.approx([20, 40], abs=1)
    assert (found.request_hours[1] == UNKNOWN).all()


@pytest.mark.parametrize("period", [1, 7, 11, 20, 29])
def test_periods_below_thirty_seconds_lose_nothing_between_hours(period: int):
    found = measured([Sample(at, 3 * at, 30 * at) for at in range(5, 3 * 3600, period)])
    lost = len(range(5, 3 * 3600, period)) * period - period - int(found.covered[0])
    assert 0 <= lost < 30  # after the last sample that is far enough from the one before
    assert levels(found.produce) == near(30.0, 30.0, 30.0)


def test_levels_are_those_of_the_time_not_of_the_samples():
    # Ten minutes in one step at a rate of 10, then five steps of a minute at 60.
    history = [Sample(0, 0, 0), Sample(600, 600, 6000)]
    history += [Sample(600 + 60 * m, 600 + 360 * m, 6000 + 3600 * m) for m in range(1, 6)]
    assert levels(measured(history).produce)[0] == near(10.0)


def test_the_95th_percentile_is_reached_for_a_twentieth_of_the_time():
    busy = DAY // 20 + 1
    assert levels(measured(rates([60] * (DAY - busy) + [600] * busy)).produce)[:2] == near(10.0, 100.0)
    assert levels(measured(rates([60] * (DAY - busy + 2) + [600] * (busy - 2))).produce)[:2] == near(10.0, 10.0)


@pytest.mark.parametrize(("minutes", "peak"), [(4, 10.0), (5, 100.0), (6, 100.0)])
def test_the_peak_is_what_was_reached_for_five_minutes_of_a_day(minutes: int, peak: float):
    assert levels(measured(rates([60] * (DAY - minutes) + [600] * minutes)).produce)[2] == near(peak)


def test_the_five_minutes_need_not_be_together():
    day = [60] * DAY
    for minute in (7, 100, 500, 501, 900):
        day[minute] = 600
    assert levels(measured(rates(day)).produce)[2] == near(100.0)


def test_five_minutes_of_several_days_do_not_make_a_peak():
    day = [60] * DAY
    day[100] = day[200] = 600
    assert levels(measured(rates(day * 4)).produce)[2] == near(10.0)


def test_the_peak_of_several_days_is_that_of_the_highest():
    assert levels(measured(rates([60] * DAY + [60] * 700 + [900] * 20 + [60] * 720 + [120] * DAY)).produce)[2] == near(
        150.0
    )


def test_without_a_hundred_minutes_of_a_day_the_peak_is_the_95th_percentile():
    _, p95, peak = levels(measured(rates([60] * 90 + [600] * 6)).produce)
    assert p95 == peak == near(100.0)


def test_a_day_of_a_few_minutes_adds_no_peak():
    assert levels(measured(rates([60] * DAY + [6000])).produce)[2] == near(10.0)


@pytest.mark.parametrize("seed", range(20))
def test_median_95th_percentile_and_peak_rise(seed: int):
    draw = np.random.default_rng(seed)
    history = rates(draw.lognormal(5, 2, int(draw.integers(1, 3 * DAY))).astype(int).tolist())
    kept = [s for s in history if draw.random() < 0.5] or history
    median, p95, peak = levels(measured(kept).produce)
    assert math.isnan(median) or median <= p95 <= peak


def test_partitions_with_one_day_and_with_several_are_measured_side_by_side():
    one, two = rates([60] * 100), rates([120] * DAY + [240] * 300)
    found = measured(one, two, [])
    assert levels(found.produce, 0) == levels(measured(one).produce)
    assert levels(found.produce, 1) == levels(measured(two).produce)
    assert all(math.isnan(level) for level in levels(found.produce, 2))


def test_consumption_is_measured_like_production():
    history = [replace(s, consume=float(100 + (s.at >= 1800) * 50)) for s in steady(60)]
    assert levels(measured(history).consume) == near(150.0, 150.0, 150.0)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -1.0, None])
def test_consumption_that_is_no_number_is_ignored(nonsense: float | None):
    history = [replace(s, consume=7.0 if s.at % 120 else nonsense) for s in steady(60)]
    assert levels(measured(history).consume) == near(7.0, 7.0, 7.0)


def test_consumption_of_which_nothing_is_known_has_no_levels():
    assert all(math.isnan(level) for level in levels(measured(steady(60)).consume))


def test_fewer_than_two_usable_samples_are_no_evidence():
    found = measured(steady(1), [], [Sample(0, 5), Sample(60, 3)], [Sample(0, 5), Sample(5, 6)], steady(2))
    assert found.samples.tolist() == [0, 0, 0, 0, 2]
    assert found.covered.tolist() == [0, 0, 0, 0, 60]
    assert np.isnan(found.produce.peak[:4]).all()


def test_partitions_do_not_touch_each_other():
    histories = [steady(40), rates([5, 90, 3, 700] * 9), [Sample(0, 5), Sample(60, 3)], steady(2, messages=1), []]
    together = measured(*histories)
    for number, history in enumerate(histories):
        alone = measured(history)
        np.testing.assert_equal(levels(together.produce, number), levels(alone.produce))
        assert together.samples[number] == alone.samples[0]


def test_samples_of_two_samplers_count_once():
    history = [Sample(20 * n, 20 * n, 200 * n) for n in range(10)]
    assert (measured(history).samples.tolist(), measured(history).covered.tolist()) == ([5], [160])


@pytest.mark.parametrize("seed", range(10))
def test_levels_are_within_the_error_of_the_exact_ones(seed: int):
    draw = np.random.default_rng(seed)
    history = rates(draw.lognormal(5, 1, 2 * DAY).astype(int).tolist())
    kept = [s for s in history if draw.random() < 0.9]
    found, true = measured(kept).produce, exact(kept)
    assert (found.median[0], found.p95[0]) == near(true.median[0], true.p95[0])


def test_an_hour_without_growth_gets_the_bytes_of_the_others_messages():
    grown = steady(60, messages=60, each=10)
    stuck = [Sample(60 * m, 60 * m, 600 * 59) for m in range(60, 180)]
    found = measured([*grown, *stuck])
    assert found.sized.tolist() == [True]
    assert found.produce_hours[0, FRIDAY : FRIDAY + 3].tolist() == [10, 10, 10]
    assert levels(found.produce) == (pytest.approx(10, rel=2 * ERROR),) * 3


def test_messages_without_any_growth_are_no_load():
    assert measured([Sample(60 * m, 60 * m, 7) for m in range(60)]).sized.tolist() == [False]


def hours_of(*histories: list[Sample]) -> list[dict[int, tuple[int, int]]]:
    found = measured(*histories)
    return [
        {
            hour - FRIDAY: (int(found.produce_hours[n, hour]), int(found.consume_hours[n, hour]))
            for hour in range(WEEK)
            if found.produce_hours[n, hour] != UNKNOWN
        }
        for n in range(len(histories))
    ]


def test_each_hour_has_the_exact_mean_of_its_minutes():
    history = rates([60] * 60 + [0, 240] * 30, each=10)
    assert hours_of(history) == [{0: (10, UNKNOWN), 1: (20, UNKNOWN)}]


def test_the_means_of_partitions_add_up_to_that_of_a_broker():
    bursts = [rates([6000 if minute % 60 == n else 6 for minute in range(60)], each=10) for n in range(8)]
    total = measured(*bursts).produce_hours[:, FRIDAY].sum()
    assert total == pytest.approx(8 * (6000 + 59 * 6) * 10 / 3600, abs=8)


def test_an_hour_of_several_weeks_is_one():
    week = 7 * DAY
    first = steady(30, messages=60, each=10)
    later = [Sample(60 * (week + m), 10**6 + 180 * m, 10**7 + 1800 * m) for m in range(30)]
    assert hours_of([*first, *later]) == [{0: (20, UNKNOWN)}]


def test_an_hour_with_less_than_a_quarter_of_samples_is_unknown():
    assert hours_of(steady(16, messages=60), steady(15, messages=60)) == [{0: (10, UNKNOWN)}, {}]


def test_consumption_is_that_of_the_minutes_in_which_it_was_measured():
    history = [Sample(60 * m, 60 * m, 600 * m, consume=50.0 if m < 30 else None) for m in range(61)]
    assert hours_of(history) == [{0: (10, 50)}]


def week_of(**rate_of: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    found = np.full((1, WEEK), UNKNOWN, np.int64)
    for hour, rate in rate_of.items():
        found[0, int(hour[1:])] = rate
    return found


def test_a_missing_hour_is_that_of_the_busiest_other_day_and_else_the_usual_rate():
    produce = filled(week_of(h3=100, h27=300, h5=50), (3, 3 + 48, 5, 6), np.array([999.4]))
    assert produce.tolist() == [[100, 300, 50, 999]]


def test_an_hour_of_nothing_known_and_no_usual_rate_is_zero():
    assert filled(week_of(), (3,), np.array([np.nan])).tolist() == [[0]]
