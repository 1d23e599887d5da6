from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bellwether_load.histories.measures import Levels, measure
from bellwether_load.histories.rules import Rules
from testkit.loads.load_histories import Sample, measured, rates, samples, steady

DAY = 1440


def levels(found: Levels, partition: int = 0) -> tuple[float, float, float]:
    return (float(found.median[partition]), float(found.p95[partition]), float(found.peak[partition]))


def test_a_steady_partition_has_one_rate():
    found = measured(steady(60, messages=120, each=50))
    assert levels(found.produce) == (100.0, 100.0, 100.0)
    assert found.messages_median.tolist() == [2.0]
    assert (found.samples.tolist(), found.covered.tolist()) == ([60], [59 * 60])
    assert found.sized.tolist() == [True]


def test_levels_are_those_of_the_time_not_of_the_samples():
    # Ten minutes in one step at a rate of 10, then five steps of a minute at 60.
    history = [Sample(0, 0, 0), Sample(600, 600, 6000)]
    history += [Sample(600 + 60 * m, 600 + 360 * m, 6000 + 3600 * m) for m in range(1, 6)]
    assert levels(measured(history).produce)[0] == 10.0


def test_the_95th_percentile_is_reached_for_a_twentieth_of_the_time():
    busy = DAY // 20 + 1
    assert levels(measured(rates([60] * (DAY - busy) + [600] * busy)).produce)[:2] == (10.0, 100.0)
    assert levels(measured(rates([60] * (DAY - busy + 2) + [600] * (busy - 2))).produce)[:2] == (10.0, 10.0)


@pytest.mark.parametrize(("minutes", "peak"), [(4, 10.0), (5, 100.0), (6, 100.0)])
def test_the_peak_is_what_was_reached_for_five_minutes_of_a_day(minutes: int, peak: float):
    assert levels(measured(rates([60] * (DAY - minutes) + [600] * minutes)).produce)[2] == peak


def test_the_five_minutes_need_not_be_together():
    day = [60] * DAY
    for minute in (7, 100, 500, 501, 900):
        day[minute] = 600
    assert levels(measured(rates(day)).produce)[2] == 100.0


def test_five_minutes_of_several_days_do_not_make_a_peak():
    day = [60] * DAY
    day[100] = day[200] = 600
    assert levels(measured(rates(day * 4)).produce)[2] == 10.0


def test_the_peak_of_several_days_is_that_of_the_highest():
    assert levels(measured(rates([60] * DAY + [60] * 700 + [900] * 20 + [60] * 720 + [120] * DAY)).produce)[2] == 150.0


def test_of_a_short_history_the_peak_asks_for_a_twentieth_of_it():
    assert levels(measured(rates([60] * 38 + [600] * 2)).produce)[2] == 100.0


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
    assert levels(measured(history).consume) == (150.0, 150.0, 150.0)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -1.0, None])
def test_consumption_that_is_no_number_is_ignored(nonsense: float | None):
    history = [replace(s, consume=7.0 if s.at % 120 else nonsense) for s in steady(60)]
    assert levels(measured(history).consume) == (7.0, 7.0, 7.0)


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
        np.testing.assert_equal(together.messages_median[number], alone.messages_median[0])
        assert together.samples[number] == alone.samples[0]


def test_rules_change_what_counts():
    history = [Sample(20 * n, 20 * n, 200 * n) for n in range(10)]
    assert measured(history).samples.tolist() == [5]
    assert measured(history, rules=Rules(shortest=10)).samples.tolist() == [10]
    assert measured(history, rules=Rules(shortest=60, longest=60)).samples.tolist() == [4]


def test_the_arrays_that_are_measured_are_not_changed():
    given = samples(steady(5), [Sample(60, None), Sample(0, 3), Sample(0, 3)])
    before = [column.copy() for column in (given.at, given.end, given.size, given.bounds)]
    measure(given, Rules())
    for was, now in zip(before, (given.at, given.end, given.size, given.bounds), strict=True):
        assert was.tolist() == now.tolist()
