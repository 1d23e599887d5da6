"""What a plan says of those with higher caps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from bellwether_load.planning import levels
from bellwether_load.planning.levels import levelled
from bellwether_load.planning.rounds import Alternative, Balance
from testkit.loads.exact_programs import hard_problem
from testkit.loads.small_problems import pool


@pytest.mark.parametrize("more", [Fraction(-1, 1000), Fraction(0), Fraction(1, 1000)])
def test_plans_with_a_higher_cap_that_are_no_better_than_the_plan_are_not_named(
    more: Fraction, monkeypatch: pytest.MonkeyPatch
):
    capped = levels.capped

    def with_another(*given: Any) -> Balance:
        found, brokers = capped(*given), given[1]
        load = brokers.busiest(found.carried) * (1 + more)
        return replace(found, alternatives=(Alternative(None, load, 9, 0.0, found.bound.prices),))

    monkeypatch.setattr(levels, "capped", with_another)
    of, whole = hard_problem(1)
    found = levelled(pool(whole), of, 3)
    better = more < 0 and (1 + more) * Fraction(found.levels[0].load) < of.busiest(found.carried)
    assert bool(found.alternatives) == better
