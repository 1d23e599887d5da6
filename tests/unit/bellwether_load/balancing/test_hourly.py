"""Plans against hours: never below their bound, the bound never above the best plan, and close to both."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bellwether_load.balancing import hourly_prices
from bellwether_load.balancing.blocks import Block, Int32s
from bellwether_load.balancing.hourly import (
    WORTHWHILE,
    HourlyBound,
    HourlyResult,
    balanced,
    bound_of,
    by_hours,
    divided,
)
from bellwether_load.balancing.hourly_prices import HourlyPrices
from bellwether_load.balancing.levels import levelled
from testkit.loads.hourly_problems import HourlyCase, problem, with_requests


def proved(asked: HourlyCase, prices: HourlyPrices) -> HourlyBound:
    sums = asked.hourly_loads.sums(asked.block, asked.brokers, prices, asked.fixed)
    return bound_of(prices, sums, asked.fixed, asked.brokers, asked.most)


def planned(asked: HourlyCase) -> tuple[HourlyBound, Int32s]:
    found = divided(asked.problem)
    return proved(asked, found.prices), balanced(asked.problem, found)


def replanned(asked: HourlyCase) -> tuple[HourlyResult, Block]:
    """What comes of it after a plan for the statistic, and the leaders of that plan."""
    before = levelled(asked.block, asked.brokers, asked.most).block
    found = by_hours(asked.hourly_loads, before, asked.brokers, asked.most)
    assert found is not None
    return found, before


@pytest.mark.parametrize("kind", ["in phase", "three regions", "jobs"])
def test_the_busiest_broker_hour_is_close_to_its_bound(kind: str):
    asked = problem(kind, 400, 12, 0)
    bound, leader = planned(asked)
    assert (leader[:, None] == asked.block.eligible).any(axis=1).all()
    assert bound.value <= asked.highest(leader) <= float(bound.value) * 1.02


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


@pytest.mark.parametrize("kind", ["in phase", "three regions", "jobs"])
def test_the_worst_of_bytes_and_requests_is_close_to_its_bound(kind: str):
    asked = with_requests(problem(kind, 400, 12, 0), 0)
    bound, leader = planned(asked)
    assert bound.value <= asked.highest(leader) <= float(bound.value) * 1.02
    by_bytes = replace(asked, loads=asked.loads[:, :12], fixed=asked.fixed[:, :12])
    by_bytes = replace(by_bytes, brokers=replace(asked.brokers, requests=None))
    assert asked.highest(planned(by_bytes)[1]) > asked.highest(leader) * Fraction(21, 20)


@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize("seed", range(6))
def test_no_plan_with_requests_is_below_the_bound(seed: int, most: int | None):
    asked = with_requests(problem("jobs", 7, 6, seed), seed)
    forced = int((asked.block.leader != asked.block.home).sum())
    most = None if most is None else max(most, forced)
    asked = replace(asked, most=most)
    bound, leader = planned(asked)
    possible = [np.array(leader, np.int32) for leader in itertools.product(*asked.block.eligible.tolist())]
    allowed = [p for p in possible if most is None or int((p != asked.block.home).sum()) <= most]
    best = min(asked.highest(leader) for leader in allowed)
    assert bound.value <= best <= asked.highest(leader) <= asked.highest(asked.block.leader)


def test_requests_that_weigh_nothing_change_no_plan():
    alone = problem("jobs", 150, 12, 4)
    asked = with_requests(alone, 4)
    asked.loads[:, 12:] = 0
    found, other = (replanned(case)[0] for case in (alone, asked))
    assert float(other.bound.value) == pytest.approx(float(found.bound.value), rel=2e-3)
    assert asked.highest(other.block.leader) == pytest.approx(float(alone.highest(found.block.leader)), rel=0.05)


def test_a_partition_with_too_many_requests_for_any_broker_decides_the_bound():
    asked = with_requests(problem("in phase", 20, 6, 1), 1)
    asked.loads[7, 6:] *= 10_000
    bound, leader = planned(asked)
    assert bound.item == 7
    alone = min(((asked.fixed[b] + asked.loads[7]) / asked.capacity[b]).max() for b in asked.block.eligible[7])
    assert float(bound.value) == pytest.approx(alone)
    assert asked.highest(leader) == pytest.approx(float(bound.value), rel=1e-3)


@pytest.mark.parametrize("most", [15, 30])
@pytest.mark.parametrize("seed", range(2))
def test_a_cap_costs_little_more_than_its_bound_says(seed: int, most: int):
    asked = problem("three regions", 150, 12, seed, most)
    bound, leader = planned(asked)
    assert int((leader != asked.block.home).sum()) <= most
    assert bound.value <= asked.highest(leader) <= float(bound.value) * 1.06


def test_a_partition_that_is_too_heavy_for_any_broker_decides_the_bound():
    asked = problem("in phase", 20, 6, 1)
    asked.loads[7] *= 1000
    bound, leader = planned(asked)
    assert bound.item == 7
    alone = min(max(asked.fixed[b] + asked.loads[7]) / asked.brokers.capacity[b] for b in asked.block.eligible[7])
    assert float(bound.value) == pytest.approx(alone)
    assert asked.highest(leader) == bound.value


@pytest.mark.parametrize("requests", [False, True])
def test_any_prices_prove_a_bound(requests: bool):
    asked = problem("jobs", 7, 6, 1, most=3)
    asked = with_requests(asked, 1) if requests else asked
    dice = np.random.default_rng(1)
    best = asked.highest(planned(asked)[1])
    for _ in range(50):
        weights = dice.integers(0, 1000, asked.fixed.shape) * asked.brokers.open[:, None]
        assert proved(asked, HourlyPrices(weights, int(dice.integers(0, 10**12)))).value <= best


@pytest.mark.parametrize("partitions", [0, 1])
def test_nothing_to_choose_is_no_trouble(partitions: int):
    asked = problem("jobs", partitions, 6, 1)
    bound, leader = planned(asked)
    assert len(leader) == partitions
    assert bound.value <= asked.highest(leader)


@pytest.mark.parametrize("kind", ["three regions", "jobs"])
@pytest.mark.parametrize("most", [None, 25, 75])
def test_leaders_change_only_where_the_busiest_hour_becomes_lower(kind: str, most: int | None):
    asked = problem(kind, 150, 12, 1, most)
    found, before = replanned(asked)
    block = found.block
    after = asked.highest(block.leader)
    assert found.bound.value <= after
    assert most is None or block.changed <= most
    if (block.leader != before.leader).any():
        assert after < asked.highest(before.leader) * WORTHWHILE


def test_leaders_that_are_as_good_by_hour_stay():
    found, before = replanned(problem("in phase", 150, 12, 0))
    assert (found.block.leader == before.leader).all()


def test_leaders_that_are_the_best_ones_are_left_as_they_are():
    asked = problem("in phase", 1, 6, 2)
    asked.loads[:] = 0
    found = by_hours(asked.hourly_loads, asked.block, asked.brokers, None)
    assert found is not None
    assert found.block is asked.block


def test_partitions_that_are_worked_on_in_several_steps_give_the_same_plan(monkeypatch: pytest.MonkeyPatch):
    asked = problem("three regions", 40, 6, 3)
    at_once = planned(asked)
    monkeypatch.setattr(hourly_prices, "_ROWS", 7)
    in_steps = planned(asked)
    assert at_once[0].value == pytest.approx(in_steps[0].value)
    assert np.array_equal(at_once[1], in_steps[1])
