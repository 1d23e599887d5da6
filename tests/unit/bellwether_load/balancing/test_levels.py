"""Levels, and what a plan says of those with higher caps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from bellwether_load.balancing import levels
from bellwether_load.balancing.balance import Alternative, Balance
from bellwether_load.balancing.levels import levelled
from testkit.loads.exact_programs import hard_problem
from testkit.loads.small_problems import block, brokers, carried


@pytest.mark.parametrize("more", [Fraction(-1, 1000), Fraction(0), Fraction(1, 1000)])
def test_plans_with_a_higher_cap_that_are_no_better_than_the_plan_are_not_named(
    more: Fraction, monkeypatch: pytest.MonkeyPatch
):
    capped = levels.capped

    def with_another(*given: Any) -> Balance:
        found, brokers = capped(*given), given[1]
        load = found.top(brokers) * (1 + more)
        return replace(found, alternatives=(Alternative(None, load, 9, 0.0, found.bound.prices),))

    monkeypatch.setattr(levels, "capped", with_another)
    of, whole = hard_problem(1)
    found = levelled(whole, of, 3)
    better = more < 0 and (1 + more) * Fraction(found.levels[0].load) < of.busiest(of.fixed + found.block.led)
    assert bool(found.alternatives) == better


def test_brokers_below_one_that_a_heavy_partition_decides_are_balanced_too():
    of = brokers(4)
    heavy, light = (10_000, [0, 1], 0), [(100, [2, 3], 2)] * 99 + [(100, [2, 3], 3)] * 61
    whole = block(4, [heavy, *light])
    found = levelled(whole, of, None)
    assert found.levels[0].load == found.levels[0].floor == 100
    assert max(carried(of, whole, found.block.leader)[2:]) == 8_000
