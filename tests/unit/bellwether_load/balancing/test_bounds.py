"""The bound: what some brokers must carry between them, whatever the plan."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Block, Brokers
from bellwether_load.balancing.bounds import Bound, heaviest_item, prefix_bound
from testkit.loads.small_problems import block, brokers


def bound(of: Brokers, whole: Block) -> Bound:
    return prefix_bound(whole, of, of.fixed + whole.led)


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


def test_one_heavy_partition_bounds_the_rest():
    of = brokers(3, capacity=[100, 200, 100], base=[0, 100, 0])
    assert heaviest_item(block(3, [(300, [0, 1]), (10, [2])]), of) == 2.0
    assert heaviest_item(block(3, []), of) == 0.5
