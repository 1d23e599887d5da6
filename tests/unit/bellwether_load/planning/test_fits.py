"""Fits: single partitions, where flows leave less than one."""

from __future__ import annotations

import numpy as np

from bellwether_load.planning.fits import MOST_PER_BROKER, Fit, choose, fitting, overfilling, place
from testkit.loads.small_problems import block


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_the_lightest_that_takes_the_whole_excess_away_comes_first():
    whole = block(2, [(3, [0, 1]), (9, [0, 1]), (6, [0, 1])])
    found = fitting(whole, ints(5, 0), ints(0, 100))
    assert [fit.load for fit in found] == [6, 9, 3]


def test_a_partition_fits_where_there_is_most_room():
    (fit,) = fitting(block(3, [(3, [0, 1, 2])]), ints(5, 0, 0), ints(0, 4, 9))
    assert fit == Fit(id=0, load=3, leader=0, to=2)


def test_what_has_no_room_or_no_excess_or_no_load_does_not_fit():
    assert fitting(block(2, [(8, [0, 1])]), ints(5, 0), ints(0, 7)) == []
    assert fitting(block(2, [(8, [0, 1])]), ints(0, 0), ints(0, 9)) == []
    assert fitting(block(2, [(0, [0, 1])]), ints(5, 0), ints(0, 9)) == []
    assert fitting(block(2, []), ints(5, 0), ints(0, 9)) == []


def test_few_fits_are_returned_for_each_broker():
    whole = block(3, [(1, [0, 2])] * 9 + [(1, [1, 2])] * 9)
    found = fitting(whole, ints(5, 5, 0), ints(0, 0, 9))
    assert [fit.leader for fit in found] == [0] * MOST_PER_BROKER + [1] * MOST_PER_BROKER


def test_chosen_fits_fit_one_after_the_other():
    offers = [Fit(1, 5, 0, 2), Fit(2, 5, 1, 2), Fit(3, 4, 1, 2)]
    chosen = list(choose(offers, ints(9, 6, 0), ints(0, 0, 9)))
    assert [fit.id for fit in chosen] == [1, 3]


def test_a_broker_hands_on_until_its_excess_is_gone():
    offers = [Fit(1, 5, 0, 1), Fit(2, 3, 0, 1), Fit(3, 2, 0, 1)]
    assert [fit.id for fit in choose(offers, ints(7, 0), ints(0, 99))] == [1, 2]


def test_partitions_are_placed_by_id():
    whole = block(3, [(1, [0, 1]), (1, [0, 2])], first_id=10)
    assert place(whole, {11: 2, 99: 1}).leader.tolist() == [0, 2]
    assert place(whole, {99: 1}) is whole


def test_a_partition_that_fits_nowhere_goes_to_the_broker_that_can_lead_most():
    whole = block(3, [(4, [0, 1, 2]), (7, [0, 1, 2]), (2, [0])])
    assert overfilling(whole, ints(0), ints(-3, 0, 0), ints(9, 8, 10)) == {0: 2}  # the lightest that is enough
    assert overfilling(whole, ints(0), ints(-9, 0, 0), ints(9, 8, 10)) == {1: 2}  # none is: the heaviest
    assert overfilling(whole, ints(0), ints(-9, 0, 0), ints(9, 5, 6)) == {0: 2}
    assert overfilling(whole, ints(0), ints(-3, 0, 0), ints(9, 3, 3)) == {}


def test_a_broker_is_overfilled_by_one_partition_only():
    whole = block(4, [(4, [0, 2, 3]), (4, [1, 2, 3]), (4, [3, 2])])
    assert overfilling(whole, ints(0, 1), ints(-1, -1, 0, 0), ints(9, 9, 9, 5)) == {0: 2, 1: 3}
    assert overfilling(whole, ints(3, 0, 1), ints(-1, -1, 0, -2), ints(9, 9, 9, 0)) == {2: 2}
