from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from bellwether_load.histories.hours import UNKNOWN, Hours, filled, masks, of_masks
from testkit.loads.load_histories import MIDNIGHT, Sample, measured, rates, steady

MONDAY_HOURS = 24 * datetime.fromtimestamp(MIDNIGHT, UTC).weekday()
"""Hour of the week at the midnight from which the samples count."""


def hours_of(*histories: list[Sample]) -> list[dict[int, tuple[int, int]]]:
    found = measured(*histories).hours
    rows = [found.records[start:end].tolist() for start, end in zip(found.bounds, found.bounds[1:], strict=False)]
    return [{hour - MONDAY_HOURS: (produce, consume) for hour, produce, consume in row} for row in rows]


def test_each_hour_has_the_mean_of_its_minutes():
    history = rates([60] * 60 + [0, 240] * 30, each=10)
    assert hours_of(history) == [{0: (10, UNKNOWN), 1: (20, UNKNOWN)}]


def test_the_means_of_partitions_add_up_to_that_of_a_broker():
    bursts = [rates([6000 if minute % 60 == n else 6 for minute in range(60)], each=10) for n in range(8)]
    total = measured(*bursts).hours.records["produce"].sum()
    assert total == pytest.approx(8 * (6000 + 59 * 6) * 10 / 3600, abs=8)


def test_an_hour_of_several_weeks_is_one():
    week = 7 * 1440
    first = steady(30, messages=60, each=10)
    later = [
        Sample(60 * (week + minute), 10**6 + 180 * minute, 10**7 + 1800 * minute) for minute in range(30)
    ]  # three times as much
    assert hours_of([*first, *later]) == [{0: (20, UNKNOWN)}]


def test_an_hour_with_less_than_a_quarter_of_samples_is_unknown():
    assert hours_of(steady(16, messages=60), steady(15, messages=60)) == [{0: (10, UNKNOWN)}, {}]


def test_consumption_is_that_of_the_minutes_in_which_it_was_measured():
    history = [
        Sample(60 * minute, 60 * minute, 600 * minute, consume=50.0 if minute < 30 else None) for minute in range(61)
    ]
    assert hours_of(history) == [{0: (10, 50)}]


def test_partitions_without_samples_have_no_hours():
    assert hours_of([], steady(1)) == [{}, {}]


def test_hours_as_bits_are_the_same_hours():
    found = measured(steady(130), steady(40)).hours
    bits = masks(found)
    first = {0, 1}
    assert [{h - MONDAY_HOURS for h in of_masks(row.tolist())} for row in bits] == [first, {0}]
    assert of_masks([1 << 23, 0, 0, 0, 0, 0, 1 << 23]) == (23, 167)


def packed(*rows: tuple[int, int, int]) -> Hours:
    return Hours(np.array([0, len(rows)]), np.array(list(rows), measured(steady(30)).hours.records.dtype))


def test_a_missing_hour_is_that_of_the_busiest_other_day_and_else_the_usual_rate():
    hours = packed((3, 100, 7), (3 + 24, 300, UNKNOWN), (5, 50, UNKNOWN))
    produce, consume, known = filled(hours, (3, 3 + 48, 5, 6), np.array([999.4]), np.array([42.0]))
    assert produce.tolist() == [[100, 300, 50, 999]]
    assert consume.tolist() == [[7, 7, 42, 42]]
    assert known.tolist() == [True]


def test_consumption_that_was_never_measured_stays_unknown():
    assert filled(packed((3, 1, UNKNOWN)), (3,), np.array([1.0]), np.array([np.nan]))[2].tolist() == [False]
