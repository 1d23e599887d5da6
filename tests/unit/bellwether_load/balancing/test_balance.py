"""Balance: from leaders as found to the lowest busiest broker."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bellwether_load.balancing.balance import balance, capped
from sparkplans.instances import Case
from testkit.loads.small_problems import block, brokers, expanded, of_the_bench
from testkit.messages import assert_wording


def test_leaders_on_one_broker_are_spread_over_all():
    found = balance(block(3, [(10, [0, 1, 2])] * 30), brokers(3))
    assert found.block.led.tolist() == [100, 100, 100]
    assert found.bound.value == 1
    assert found.block.changed == 20


def test_a_balanced_cluster_is_left_alone():
    assert balance(block(3, [(10, [b, (b + 1) % 3]) for b in range(3)]), brokers(3)).block.changed == 0


def test_an_expanded_cluster_comes_within_a_thousandth_of_the_bound():
    of, whole = expanded()
    assert balance(whole, of).tight(of)


@pytest.mark.parametrize("case", [Case(20_000, 60), Case(20_000, 60, "uneven"), Case(30_000, 300)], ids=str)
def test_clusters_of_the_bench_come_within_a_thousandth_of_the_bound(case: Case):
    of, whole = of_the_bench(case)
    assert balance(whole, of).tight(of)


def test_the_bound_is_found_among_the_old_brokers_where_the_new_hold_hardly_anything():
    of, whole = expanded()
    found = balance(whole, of)
    total = Fraction(int(whole.loads.sum()), int(of.capacity.sum()))
    assert found.bound.value > total
    assert set(np.flatnonzero(found.bound.prices.weights).tolist()) <= {b for b in range(12) if b % 4 != 3}


def test_not_much_more_moves_than_must():
    of, whole = expanded()
    after = balance(whole, of)
    moved = int(whole.loads[after.block.leader != whole.home].sum())
    least = sum(max(0.0, float(x - after.top(of) * 100)) for x in whole.led)
    assert moved < 2 * least


def test_load_gets_to_a_broker_that_shares_nothing_with_the_busy_one():
    rows = [(10, [0, 1])] * 40 + [(10, [1, 2])] * 40 + [(10, [2, 3])] * 40
    assert capped(block(4, rows), brokers(4), None).block.led.tolist() == [300, 300, 300, 300]


@pytest.mark.slow
def test_a_cap_brings_the_busiest_as_low_as_so_many_moves_can():
    of, whole = expanded()
    most = balance(whole, of).block.changed // 2
    found = capped(whole, of, most)
    assert found.block.changed <= most
    assert found.top(of) < of.busiest(of.fixed + whole.led)


def test_progress_lines_give_the_distance_to_the_bound():
    lines: list[str] = []
    balance(block(2, [(10, [0, 1])] * 4), brokers(2), lines.append)
    assert_wording(lines[0])
    assert "0.000%" in lines[-1]


def test_without_partitions_there_is_nothing_to_do():
    assert balance(block(3, []), brokers(3, base=[100, 0, 0])).bound.value == 1
