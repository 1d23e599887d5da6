"""Plans and bounds next to the exact optimum that HiGHS finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bellwether_load.balancing.balance import balance, capped
from bellwether_load.balancing.levels import levelled
from sparkplans.exact import KINDS, compared
from testkit.loads.exact_programs import fewest, hard_problem, lowest
from testkit.loads.small_problems import block, brokers, carried

FIXED = range(12)
MORE = [range(12, 40), *(range(start, start + 40) for start in range(40, 560, 40))]
ROUNDED = 1 + 1e-6


def capped_plans_come_within_a_hundredth(seeds: range) -> int:
    """Check every seed; how many caps had an effect."""
    limited = 0
    for seed in seeds:
        of, whole = hard_problem(seed)
        forced, free = whole.changed, balance(whole, of).block
        share = np.random.default_rng(seed).choice([0.1, 0.3, 0.5, 0.7])
        most = max(int(free.changed * share), 1)
        found = capped(whole, of, most)
        assert found.block.changed <= max(most, forced), seed
        if not len(whole):
            continue
        best = lowest(of, whole, max(most, forced))
        assert float(found.top(of)) <= best * 1.01, seed
        assert found.floor <= best * ROUNDED, seed
        assert float(found.bound.value) <= lowest(of, whole, max(most, forced), divisible=True) * ROUNDED, seed
        limited += free.changed > max(most, forced)
    return limited


def levels_come_within_a_hundredth(seeds: range) -> int:
    """Check every seed; how many levels there are below the first ones."""
    lower = 0
    for seed in seeds:
        of, whole = hard_problem(seed, 40)
        found = levelled(whole, of, None)
        limits: dict[int, float] = {}
        for number, level in enumerate(found.levels if len(whole) else ()):
            assert level.load <= lowest(level.brokers, whole, None) * 1.01, (seed, number)
            more = [b for b in np.flatnonzero(level.brokers.settled).tolist() if b not in limits]
            limits |= dict.fromkeys(more, level.limit)
            best = lowest(level.brokers, whole, None, divisible=True, limits=limits)
            assert float(level.bound.value) <= best * ROUNDED, (seed, number)
            lower += number > 0
    return lower


def changed_leaders_and_the_fewest(seeds: range) -> tuple[int, float]:
    """How many leaders change, half of the plans with a cap, and how many must where no broker exceeds its level."""
    changed, least = 0, 0.0
    for seed in seeds:
        of, whole = hard_problem(seed)
        if not len(whole):
            continue
        found = levelled(whole, of, len(whole) // 5 if seed % 2 else None)
        limits = carried(of, whole, found.block.leader)
        for level, below in itertools.zip_longest(found.levels, found.levels[1:]):
            own = level.brokers.free & (below.brokers.settled if below else True)
            limits[own] = np.floor(float(level.load) * of.capacity + ROUNDED - 1)[own]
        changed += found.block.changed
        least += fewest(of, whole, limits)
    return changed, least


def test_hardly_more_leaders_change_than_must():
    changed, least = changed_leaders_and_the_fewest(FIXED)
    assert least <= changed <= least * 1.1


@pytest.mark.slow
@pytest.mark.parametrize("seeds", MORE, ids=str)
def test_in_more_problems_hardly_more_leaders_change_than_must(seeds: range):
    changed, least = changed_leaders_and_the_fewest(seeds)
    assert least <= changed <= least * 1.15


def test_without_partitions_every_broker_is_a_level_of_what_it_carries_in_any_case():
    of = brokers(3, base=[300, 200, 100])
    found = levelled(block(3, []), of, 1)
    assert [level.load for level in found.levels] == [level.floor for level in found.levels] == [3, 2, 1]


def test_every_level_is_within_a_hundredth_of_the_best_and_its_bound_is_true():
    assert levels_come_within_a_hundredth(FIXED) > len(FIXED)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", MORE, ids=str)
def test_more_levels_are_within_a_hundredth_of_the_best(seeds: range):
    assert levels_come_within_a_hundredth(seeds) > len(seeds)


def test_a_capped_plan_is_within_a_hundredth_of_the_best_and_its_bound_is_true():
    assert capped_plans_come_within_a_hundredth(FIXED) > len(FIXED) / 2


@pytest.mark.slow
@pytest.mark.parametrize("seeds", MORE, ids=str)
def test_more_capped_plans_are_within_a_hundredth_of_the_best(seeds: range):
    assert capped_plans_come_within_a_hundredth(seeds) > len(seeds) / 2


def test_no_plan_of_a_small_cluster_is_below_its_bounds():
    rows = list(compared(range(1), 3))
    assert {row.kind for row in rows} == set(KINDS)
    assert all(row.verified and not row.false for row in rows)
    assert all(row.least <= row.plan * ROUNDED for row in rows)
