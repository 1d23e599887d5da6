"""Fewer changed leaders for the load that each broker has."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.balancing import fewest_changes as planner
from bellwether_load.balancing.blocks import Block, Brokers
from bellwether_load.balancing.fewest_changes import reduce_changes
from bellwether_load.balancing.levels import levelled
from testkit.loads.exact_programs import fewest
from testkit.loads.small_problems import block, brokers, problems


def many_partitions(seed: int, count: int = 1_000, size: int = 8) -> tuple[Brokers, Block]:
    """Heavy-tailed loads, unequal brokers, three replicas each, more leaders on the first brokers."""
    dice = np.random.default_rng(seed)
    share = np.linspace(2, 1, size)
    rows = [
        (int(min(dice.pareto(1.3) * 1000 + 1, 200_000)), dice.choice(size, 3, replace=False, p=share / share.sum()))
        for _ in range(count)
    ]
    of = brokers(size, capacity=dice.choice([50, 100, 200], size).tolist())
    return of, block(size, [(load, replicas.tolist()) for load, replicas in rows])


@given(problems(), st.randoms(use_true_random=False))
def test_no_broker_exceeds_its_limit_and_no_more_leaders_change(problem: tuple[Brokers, Block], dice: random.Random):
    of, whole = problem
    if not len(whole):
        return
    planned = whole.led_by(np.array([dice.choice([b for b in row if b < len(of)]) for row in whole.eligible], np.int32))
    limits = of.fixed + planned.led
    found = reduce_changes(planned, of, limits)
    assert (of.fixed + found.led <= limits)[of.open].all()
    assert found.changed <= planned.changed
    assert (found.leader[:, None] == found.eligible).any(axis=1).all()


def test_two_partitions_that_changed_places_return():
    whole = block(2, [(10, [0, 1]), (10, [1, 0]), (30, [0, 1])])
    planned = whole.led_by(np.array([1, 0, 1], np.int32))
    found = reduce_changes(planned, brokers(2), np.array([10, 40]))
    assert found.leader.tolist() == [0, 1, 1]
    assert found.led.tolist() == [10, 40]


def test_many_partitions_change_hardly_more_leaders_than_divisible_ones(monkeypatch: pytest.MonkeyPatch):
    for seed in range(700, 703):
        of, whole = many_partitions(seed)
        with monkeypatch.context() as patched:
            patched.setattr(planner, "MOST_PARTITIONS", 0)
            before = levelled(whole, of, None)
        after = levelled(whole, of, None)
        assert after.block.changed < before.block.changed
        for high, low in zip(before.levels, after.levels, strict=True):
            assert low.load <= high.load
            assert low.brokers.ceiling.tolist() == high.brokers.ceiling.tolist()
        limits = of.fixed + np.maximum(before.block.led, after.block.led)
        least = fewest(of, whole, limits, divisible=True)
        # Whole partitions fit less well: up to an exchange of two more for each broker.
        assert least <= after.block.changed <= least * 1.3 + 2 * len(of)
