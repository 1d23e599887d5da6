"""Plans against hours: never below their bound, the bound never above the best plan, and close to both."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bellwether_load.planning.blocks import Int32s
from bellwether_load.planning.hourly import HourlyBound, HourlyProblem, bound_of, improved
from bellwether_load.planning.hourly_prices import divisible
from bellwether_load.planning.hourly_rounds import WORTHWHILE, HourlyInput, by_hours
from bellwether_load.planning.pools import LocalPool
from testkit.loads.hourly_problems import problem


def planned(of: HourlyProblem) -> tuple[HourlyBound, Int32s]:
    found = divisible(of)
    return found.bound, improved(of, found.bound.value, found.leader, lambda _: None)


@pytest.mark.parametrize("kind", ["in phase", "three regions", "jobs"])
@pytest.mark.parametrize("seed", range(2))
def test_the_busiest_broker_hour_is_close_to_its_bound(kind: str, seed: int):
    asked = problem(kind, 400, 24, seed)
    bound, leader = planned(asked)
    assert (leader[:, None] == asked.block.eligible).any(axis=1).all()
    assert bound.value <= asked.highest(leader) <= float(bound.value) * 1.03


@pytest.mark.parametrize("most", [None, 0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_no_plan_is_below_the_bound_and_the_cap_is_kept(seed: int, most: int | None):
    asked = problem("jobs", 7, 6, seed)
    forced = int((asked.block.leader != asked.block.home).sum())
    most = None if most is None else max(most, forced)
    asked = replace(asked, most=most)
    bound, leader = planned(asked)
    possible = [np.array(leader, np.int32) for leader in itertools.product(*asked.block.eligible.tolist())]
    allowed = [p for p in possible if most is None or int((p != asked.block.home).sum()) <= most]
    best = min(asked.highest(leader) for leader in allowed)
    assert bound.value <= best <= asked.highest(leader) <= asked.highest(asked.block.leader)
    assert most is None or int((leader != asked.block.home).sum()) <= most


def test_a_partition_that_is_too_heavy_for_any_broker_decides_the_bound():
    asked = problem("in phase", 20, 6, 1)
    heavy = asked.loads.copy()
    heavy[7] *= 1000
    asked = replace(asked, loads=heavy)
    bound, leader = planned(asked)
    assert bound.item == 7
    alone = min(max(asked.fixed[b] + heavy[7]) / asked.brokers.capacity[b] for b in asked.block.eligible[7])
    assert float(bound.value) == pytest.approx(alone)
    assert asked.highest(leader) == bound.value


def test_any_prices_prove_a_bound():
    asked = problem("jobs", 7, 6, 1, most=3)
    dice = np.random.default_rng(1)
    best = asked.highest(planned(asked)[1])
    for _ in range(50):
        weights = dice.integers(0, 1000, asked.fixed.shape) * asked.brokers.open[:, None]
        assert bound_of(asked, weights, int(dice.integers(0, 10**12))).value <= best


@pytest.mark.parametrize("partitions", [0, 1])
def test_nothing_to_choose_is_no_trouble(partitions: int):
    asked = problem("jobs", partitions, 6, 1)
    bound, leader = planned(asked)
    assert len(leader) == partitions
    assert bound.value <= asked.highest(leader)


def test_leaders_change_only_where_the_busiest_hour_becomes_lower():
    asked = problem("jobs", 60, 12, 2, most=20)
    pool = LocalPool([asked.block])
    given = HourlyInput(tuple(range(12)), asked.block.ids, asked.loads, asked.fixed)
    found = by_hours(given, pool, asked.brokers, 20)
    (block,) = pool.blocks
    after = asked.highest(block.leader)
    assert found.replaced == (asked.highest(asked.block.leader), asked.block.changed)
    assert after < found.replaced[0] * WORTHWHILE
    assert pool.changed() <= 20
    again = by_hours(given, LocalPool([block]), asked.brokers, 20)
    assert again.replaced is None or again.replaced[0] == after


def test_leaders_that_are_the_best_ones_are_left_as_they_are():
    asked = problem("in phase", 1, 6, 2)
    pool = LocalPool([asked.block])
    given = HourlyInput(tuple(range(6)), asked.block.ids, asked.loads * 0, asked.fixed)
    assert by_hours(given, pool, asked.brokers, None).replaced is None
    assert pool.blocks == (asked.block,)


def test_loads_below_zero_are_not_planned_by_hour():
    asked = problem("jobs", 5, 6, 2)
    given = HourlyInput(tuple(range(6)), asked.block.ids, asked.loads, asked.fixed)
    assert given.usable
    assert not replace(given, loads=asked.loads - asked.loads.max()).usable
