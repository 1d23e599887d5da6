"""Plans and bounds beside the exact optimum that HiGHS finds."""

from __future__ import annotations

import numpy as np
import pytest

from bellwether_load.planning.caps import capped
from bellwether_load.planning.rounds import balance
from testkit.loads.exact_programs import hard_problem, lowest
from testkit.loads.small_problems import pool

FIXED = range(40)
MORE = [range(start, start + 40) for start in range(40, 560, 40)]
ROUNDED = 1 + 1e-6


def capped_plans_come_within_a_hundredth(seeds: range) -> int:
    """Check every seed; how many caps had an effect."""
    limited = 0
    for seed in seeds:
        of, whole = hard_problem(seed)
        forced = int((whole.leader != whole.home).sum())
        free = pool(whole)
        balance(free, of)
        share = np.random.default_rng(seed).choice([0.1, 0.3, 0.5, 0.7])
        most = max(int(free.changed() * share), 1)
        blocks = pool(whole, 2)
        found = capped(blocks, of, most)
        assert blocks.changed() <= max(most, forced), seed
        if not len(whole):
            continue
        best = lowest(of, whole, max(most, forced))
        assert float(of.busiest(found.carried)) <= best * 1.01, seed
        assert float(found.bound.value) <= lowest(of, whole, max(most, forced), divisible=True) * ROUNDED, seed
        assert found.heaviest <= best * ROUNDED, seed
        limited += free.changed() > max(most, forced)
    return limited


def test_a_capped_plan_is_within_a_hundredth_of_the_best_and_its_bound_is_true():
    assert capped_plans_come_within_a_hundredth(FIXED) > len(FIXED) / 2


@pytest.mark.slow
@pytest.mark.parametrize("seeds", MORE, ids=str)
def test_more_capped_plans_are_within_a_hundredth_of_the_best(seeds: range):
    assert capped_plans_come_within_a_hundredth(seeds) > len(seeds) / 2
