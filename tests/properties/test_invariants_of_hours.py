"""Plans by hours of the week, on histories of three kinds: close to the best there is, and true in the next week."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Block, Brokers
from bellwether_load.balancing.hourly import WORTHWHILE, by_hours
from bellwether_load.balancing.levels import levelled
from testkit.loads.hourly_problems import HourlyCase
from testkit.loads.whole_leaders import lowest_found

PARTITIONS, BROKERS, HOURS = 300, 5, 24
KINDS = ("in phase", "three regions", "jobs")
NEAR = 1.02


def history(kind: str, seed: int, weeks: int) -> NDArray[np.int64]:
    """Loads by week, partition and hour: topics busy at once, in three regions, or as jobs at different hours."""
    dice = np.random.default_rng(seed)
    topic, hour = np.arange(PARTITIONS)[:, None] % 12, np.arange(HOURS)[None]
    shift = {"in phase": 0 * topic, "three regions": topic % 3 * HOURS // 3, "jobs": topic * HOURS // 12}[kind]
    wave = 1 + 0.9 * np.cos((hour - shift) * 2 * np.pi / HOURS)
    if kind == "jobs":
        wave = np.where((hour - shift) % HOURS < 2, 12.0, 0.4)
    base = dice.lognormal(0, 0.5, PARTITIONS)[:, None] * wave * 1e6
    return np.rint(base * dice.uniform(0.97, 1.03, (weeks, PARTITIONS, HOURS))).astype(np.int64)


def posed(statistic: NDArray[np.int64], seed: int) -> tuple[Block, Brokers]:
    """Each partition on three brokers, led by its first replica, with one load each."""
    dice = np.random.default_rng(seed)
    eligible = np.array([dice.permutation(BROKERS)[:3] for _ in range(PARTITIONS)], np.int32)
    none = np.zeros(BROKERS, np.int64)
    capacity = np.array([100, 100, 50, 200, 100])
    brokers = Brokers.of(np.arange(BROKERS), np.ones(BROKERS, np.bool_), capacity, none, none)
    leader = eligible[:, 0].copy()
    return Block(BROKERS, np.arange(PARTITIONS), statistic, eligible, leader, leader), brokers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_busiest_hour_is_near_the_best_of_a_search_and_the_next_week_is_as_forecast(kind: str, seed: int):
    *known, following = history(kind, seed, 4)
    loads = np.rint(np.mean(known, axis=0)).astype(np.int64)
    block, brokers = posed(np.quantile(np.concatenate(known, axis=1), 0.95, axis=1).astype(np.int64), seed)
    fixed = np.zeros((BROKERS, HOURS), np.int64)
    by_hour = HourlyCase(block, brokers, loads, fixed)
    found = levelled(block, brokers, None, partial(by_hours, by_hour.hourly_loads))
    after = found.block
    forecast = float(by_hour.highest(after.leader))
    assert found.hourly is not None
    assert found.hourly.bound.value <= by_hour.highest(after.leader)
    starts = [block.leader, after.leader]
    assert forecast <= lowest_found(loads, block.eligible, fixed, brokers.capacity, starts, seed) * NEAR
    replayed = float(HourlyCase(block, brokers, following, fixed).highest(after.leader))
    assert replayed / NEAR <= forecast <= replayed * NEAR


@pytest.mark.parametrize("kind", KINDS)
def test_with_cap_plan_by_hours_changes_no_more_leaders(kind: str):
    loads = history(kind, 3, 1)[0][:60]
    whole, brokers = posed(history(kind, 3, 1)[0].max(axis=1), 3)
    before = whole.take(np.arange(60))
    moved = before.leader.copy()
    moved[:8] = before.eligible[:8, 1]
    before = before.led_by(moved)
    fixed = np.zeros((BROKERS, HOURS), np.int64)
    problem = HourlyCase(before, brokers, loads, fixed, 12)
    found = by_hours(problem.hourly_loads, before, brokers, 12)
    assert found is not None
    after = found.block
    assert after.changed <= 12
    assert found.bound.value <= problem.highest(after.leader) <= problem.highest(before.leader)
    lower = problem.highest(after.leader) < problem.highest(before.leader) * WORTHWHILE
    assert lower or np.array_equal(before.leader, after.leader)
