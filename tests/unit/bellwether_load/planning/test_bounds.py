"""The bound: what some brokers must carry between them, whatever the plan."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Block
from bellwether_load.planning.bounds import Bound, best_prefix, busiest_first, contained, heaviest_item
from bellwether_load.planning.brokers import Brokers
from testkit.loads.small_problems import block, brokers


def bound(of: Brokers, whole: Block) -> Bound:
    places = busiest_first(of, of.fixed + whole.led)
    return best_prefix(of, places, contained(whole, places))


def proving(found: Bound) -> tuple[int, ...]:
    """The brokers that prove it."""
    return tuple(np.flatnonzero(found.prices.weights).tolist())


def test_an_even_cluster_is_bound_by_its_mean():
    whole = block(3, [(100, [b, (b + 1) % 3]) for b in range(3)])
    found = bound(brokers(3), whole)
    assert found.value == Fraction(1)


def test_old_brokers_that_alone_hold_the_load_bound_it_higher_than_the_mean():
    whole = block(4, [(100, [0, 1]), (100, [1, 0])] * 3 + [(10, [2, 3])])
    found = bound(brokers(4), whole)
    assert (found.value, proving(found)) == (Fraction(600, 200), (0, 1))


def test_what_is_carried_in_any_case_counts():
    found = bound(brokers(2, base=[700, 0], fixed=[0, 100]), block(2, []))
    assert (found.value, proving(found)) == (Fraction(7), (0,))


def test_capacity_counts():
    found = bound(brokers(2, capacity=[100, 300]), block(2, [(400, [0, 1])]))
    assert (found.value, proving(found)) == (Fraction(1), (0, 1))


def test_closed_brokers_prove_nothing():
    found = bound(brokers(3, base=[9000, 0, 0], closed=[0]), block(3, [(100, [1, 2])]))
    assert (found.value, proving(found)) == (Fraction(100, 200), (1, 2))


def test_a_partition_is_inside_once_its_least_busy_eligible_broker_is():
    whole = block(3, [(5, [0, 1]), (7, [0, 2]), (11, [1, 0])])
    assert contained(whole, np.array([0, 1, 2])).tolist() == [0, 16, 7]


def test_the_busiest_come_first_and_the_closed_last():
    of = brokers(4, capacity=[100, 50, 100, 100], closed=[2])
    assert busiest_first(of, np.array([60, 40, 999, 60])).tolist() == [1, 0, 3, 2]


def test_one_heavy_partition_bounds_the_rest():
    of = brokers(3, capacity=[100, 200, 100], base=[0, 100, 0])
    assert heaviest_item(block(3, [(300, [0, 1]), (10, [2])]), of) == 2.0
    assert heaviest_item(block(3, []), of) == 0.0
