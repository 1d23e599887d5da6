"""The rounds: from leaders as found to leaders that balance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bellwether_load.planning import exchanges, rounds
from bellwether_load.planning.caps import capped
from bellwether_load.planning.rounds import balance
from sparkplans.instances import Case
from testkit.loads.small_problems import block, brokers, expanded, leaders, of_the_bench, pool
from testkit.messages import assert_wording


def test_leaders_on_one_broker_are_spread_over_all():
    of, whole = brokers(3), block(3, [(10, [0, 1, 2])] * 30)
    blocks = pool(whole)
    found = balance(blocks, of)
    assert found.carried.tolist() == [100, 100, 100]
    assert found.bound.value == 1
    assert blocks.changed() == 20


def test_a_balanced_cluster_is_left_alone():
    blocks = pool(block(3, [(10, [b, (b + 1) % 3]) for b in range(3)]))
    assert balance(blocks, brokers(3)).rounds == 0
    assert blocks.changed() == 0


@pytest.mark.parametrize("parts", [1, 5])
def test_an_expanded_cluster_comes_within_a_thousandth_of_the_bound(parts: int):
    of, whole = expanded()
    found = balance(pool(whole, parts), of)
    assert of.busiest(found.carried) <= found.floor * 1.001 * (1 + 1e-12)


def test_a_quarter_of_the_pairs_of_brokers_is_enough(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rounds, "MOST_PAIRS", 600)
    monkeypatch.setattr(exchanges, "MOST_PARTITIONS", 0)
    of, whole = of_the_bench(Case(20_000, 60))
    found = balance(pool(whole, 4), of)
    assert of.busiest(found.carried) <= found.floor * 1.001 * (1 + 1e-12)


def test_a_partition_that_fits_nowhere_leaves_and_lighter_ones_make_way_for_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exchanges, "MOST_PARTITIONS", 0)
    of, whole = of_the_bench(Case(30_000, 300))
    several = pool(whole, 4)
    found = balance(several, of)
    assert of.busiest(found.carried) <= found.floor * 1.001 * (1 + 1e-12)
    assert found.carried.tolist() == (of.fixed + several.gathered().led).tolist()
    monkeypatch.setattr(rounds, "MOST_OVERFILLED", 0)
    assert of.busiest(balance(pool(whole, 4), of).carried) > found.floor * 1.005


def test_the_bound_is_found_among_the_old_brokers_where_the_new_hold_hardly_anything():
    of, whole = expanded()
    found = balance(pool(whole), of)
    total = Fraction(int(whole.loads.sum()), int(of.capacity.sum()))
    assert found.bound.value > total
    assert set(np.flatnonzero(found.bound.prices.weights).tolist()) <= {b for b in range(12) if b % 4 != 3}


def test_not_much_more_moves_than_must():
    of, whole = expanded()
    blocks = pool(whole)
    top = of.busiest(balance(blocks, of).carried)
    led = leaders(blocks)
    moved = sum(int(load) for p, load, b in zip(whole.ids, whole.loads, whole.home, strict=True) if led[int(p)] != b)
    least = sum(max(0.0, float(x - top * 100)) for x in whole.led)
    assert moved < 1.8 * least


def test_load_gets_to_a_broker_that_shares_nothing_with_the_busy_one():
    rows = [(10, [0, 1])] * 40 + [(10, [1, 2])] * 40 + [(10, [2, 3])] * 40
    found = balance(pool(block(4, rows)), brokers(4))
    assert found.carried.tolist() == [300, 300, 300, 300]


def test_a_higher_target_needs_fewer_moves():
    of, whole = expanded()
    low, high = pool(whole), pool(whole)
    found = balance(low, of)
    loose = balance(high, of, target=found.bound.value * Fraction(6, 5))
    assert of.busiest(loose.carried) <= found.bound.value * Fraction(6, 5) * Fraction(1001, 1000)
    assert high.changed() < low.changed()


@pytest.mark.slow
def test_a_cap_brings_the_busiest_as_low_as_so_many_moves_can():
    of, whole = expanded()
    free, bound_ = pool(whole), pool(whole)
    balance(free, of)
    found = capped(bound_, of, free.changed() // 2, 0)
    before = of.busiest(of.fixed + whole.led)
    assert bound_.changed() <= free.changed() // 2
    assert of.busiest(found.carried) < before


def test_progress_lines_give_the_distance_to_the_goal():
    lines: list[str] = []
    balance(pool(block(2, [(10, [0, 1])] * 4)), brokers(2), tell=lines.append)
    assert_wording(lines[0])
    assert "0.000%" in lines[-1]


def test_without_partitions_there_is_nothing_to_do():
    found = balance(pool(block(3, [])), brokers(3, base=[100, 0, 0]))
    assert (found.rounds, found.bound.value) == (0, 1)
