"""Plans against hours: never below their bound, the bound never above the best plan, and close to both."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bellwether_load.planning.blocks import Block
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.hourly import HourlyBound, HourlyProblem, bound_of, improved
from bellwether_load.planning.hourly_prices import divisible

BROKERS = 5


def problem(kind: str, partitions: int, hours: int, seed: int, most: int | None = None) -> HourlyProblem:
    """Topics that are busy at once, in three regions, or as jobs at different hours; one broker is closed."""
    dice = np.random.default_rng(seed)
    topic, hour = np.arange(partitions)[:, None] % 9, np.arange(hours)[None]
    shift = {"in phase": 0 * topic, "three regions": topic % 3 * hours // 3, "jobs": topic * hours // 9}[kind]
    wave = 1 + 0.9 * np.cos((hour - shift) * 2 * np.pi / hours)
    if kind == "jobs":
        wave = np.where((hour - shift) % hours < max(hours // 12, 1), 12.0, 0.4)
    noise = dice.uniform(0.9, 1.1, (partitions, hours))
    loads = np.rint(dice.lognormal(0, 0.5, partitions)[:, None] * wave * noise * 1e6).astype(np.int64)
    eligible = np.array([dice.permutation(BROKERS - 1)[:3] for _ in range(partitions)], np.int32)
    home = eligible[:, 0].copy()
    forced = dice.random(partitions) < 0.05
    home[forced] = BROKERS
    fixed = dice.integers(0, 10**6, (BROKERS, hours))
    open_ = np.array([True] * (BROKERS - 1) + [False])
    brokers = Brokers.of(
        np.arange(BROKERS), open_, np.array([100, 100, 50, 200, 100]), fixed.max(axis=1), fixed.max(axis=1)
    )
    block = Block(0, BROKERS, np.arange(partitions), loads.max(axis=1), eligible, home, eligible[:, 0].copy())
    return HourlyProblem(block, brokers, loads, fixed, most)


def highest(of: HourlyProblem, leader: np.typing.NDArray[np.int32]) -> float:
    relative = of.carried(leader) / of.brokers.capacity[:, None]
    return float(relative[of.brokers.open].max())


@pytest.mark.parametrize("kind", ["in phase", "three regions", "jobs"])
@pytest.mark.parametrize("seed", range(3))
def test_the_busiest_broker_hour_is_close_to_its_bound(kind: str, seed: int):
    asked = problem(kind, 400, 24, seed)
    plan = plan_hours(asked)
    assert (plan.leader[:, None] == asked.block.eligible).any(axis=1).all()
    assert float(plan.bound.value) * (1 - 1e-9) <= highest(asked, plan.leader) <= float(plan.bound.value) * 1.02


@pytest.mark.parametrize("most", [None, 0, 1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_no_plan_is_below_the_bound_and_the_cap_is_kept(seed: int, most: int | None):
    asked = problem("jobs", 7, 6, seed)
    forced = int((asked.block.leader != asked.block.home).sum())
    most = None if most is None else max(most, forced)
    asked = HourlyProblem(asked.block, asked.brokers, asked.loads, asked.fixed, most)
    plan = plan_hours(asked)
    possible = [np.array(leader, np.int32) for leader in itertools.product(*asked.block.eligible.tolist())]
    allowed = [p for p in possible if most is None or int((p != asked.block.home).sum()) <= most]
    best = min(highest(asked, leader) for leader in allowed)
    assert float(plan.bound.value) <= best * (1 + 1e-9)
    assert highest(asked, plan.leader) >= best * (1 - 1e-9)
    assert most is None or int((plan.leader != asked.block.home).sum()) <= most
