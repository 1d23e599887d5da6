"""Fewer changed leaders for the load that each broker has."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.planning import fewest_changes as planner
from bellwether_load.planning.blocks import Block
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.fewest_changes import reduce_changes
from bellwether_load.planning.levels import levelled
from bellwether_load.planning.pools import Pool
from testkit.loads.exact_programs import fewest
from testkit.loads.small_problems import block, brokers, carried, leaders, pool, problems


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
    blocks = pool(planned, 2)
    found = reduce_changes(blocks, of, limits, limits)
    assert (found <= limits)[of.open].all()
    assert found.tolist() == carried(of, whole, leaders(blocks)).tolist()
    assert blocks.changed() <= planned.changed
    assert all(led in row for part in blocks.blocks for led, row in zip(part.leader, part.eligible, strict=True))


def test_two_partitions_that_changed_places_return():
    whole = block(2, [(10, [0, 1]), (10, [1, 0]), (30, [0, 1])])
    blocks = pool(whole.led_by(np.array([1, 0, 1], np.int32)))
    found = reduce_changes(blocks, brokers(2), np.array([10, 40]), np.array([10, 40]))
    assert leaders(blocks) == {0: 0, 1: 1, 2: 1}
    assert found.tolist() == [10, 40]


def test_many_partitions_change_hardly_more_leaders_than_divisible_ones(monkeypatch: pytest.MonkeyPatch):
    for seed in range(700, 703):
        of, whole = many_partitions(seed)
        first, second = Pool([whole]), Pool([whole])
        with monkeypatch.context() as patched:
            patched.setattr(planner, "MOST_PARTITIONS", 0)
            before = levelled(first, of, None)
        after = levelled(second, of, None)
        assert second.changed() < first.changed()
        for high, low in zip(before.levels, after.levels, strict=True):
            assert low.load <= high.load
            assert low.brokers.ceiling.tolist() == high.brokers.ceiling.tolist()
        limits = np.maximum(before.carried, after.carried)
        least = fewest(of, whole, limits, divisible=True)
        # Whole partitions fit less well: up to an exchange of two more for each broker.
        assert least <= second.changed() <= least * 1.3 + 2 * len(of)
