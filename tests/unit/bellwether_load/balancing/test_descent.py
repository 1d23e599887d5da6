"""The descent: only changes that lower the smooth maximum, none that share a broker, and never past a cap."""

from __future__ import annotations

import numpy as np
import pytest

from bellwether_load.balancing.descent import Descent, Parts, first_of_each
from testkit.loads.hourly_problems import HourlyCase, problem


def descent(asked: HourlyCase) -> Descent:
    """Of whole partitions, from the leaders of the block."""
    block, given = asked.block, asked.problem
    parts = Parts(np.arange(len(block)), np.ones(len(block), np.float32), block.leader.copy())
    return Descent(block, given.loads, given.carried(block.leader), given.capacity, parts, asked.most)


def height(asked: HourlyCase, of: Descent, sharpness: float, top: float) -> float:
    """The smooth maximum that a stage lowers, from the leaders alone."""
    relative = asked.carried(of.parts.leader)[:-1] / asked.brokers.capacity[:-1, None]
    return float(np.log(np.exp(sharpness * (relative / top - 1)).sum()))


@pytest.mark.parametrize("sharpness", [20.0, 100.0, 400.0])
def test_every_stage_lowers_the_smooth_maximum(sharpness: float):
    asked = problem("jobs", 300, 12, 1)
    found = descent(asked)
    top = found.highest
    before = height(asked, found, sharpness, top)
    found.settle(sharpness, 0.0)
    assert height(asked, found, sharpness, top) < before
    true = asked.problem.highest(found.parts.leader)
    assert found.highest == pytest.approx(true, rel=1e-9)


def test_prices_are_the_derivatives_of_the_smooth_maximum():
    asked = problem("three regions", 40, 6, 2)
    found = descent(asked)
    top, step = found.highest, 1e-4
    prices, move = found.prices(50.0)
    assert move == 0
    assert prices[-1].sum() == 0, "a closed broker has no price"
    relative = asked.carried(found.parts.leader)[:-1] / asked.brokers.capacity[:-1, None]

    def smooth(broker: int, hour: int) -> float:
        more = relative.copy()
        more[broker, hour] += step * top / asked.brokers.capacity[broker]
        return float(np.log(np.exp(50.0 * (more / top - 1)).sum()))

    slopes = np.array([[smooth(b, h) for h in range(6)] for b in range(4)]) - smooth(0, 0)
    base = np.log(np.exp(50.0 * (relative / top - 1)).sum()) - smooth(0, 0)
    assert np.allclose((slopes - base) / (slopes - base).sum(), prices[:-1], rtol=1e-3, atol=1e-6)


def test_a_hard_cap_is_never_exceeded_and_a_changed_leader_has_a_price():
    forced = int((problem("jobs", 300, 12, 1).block.home == 5).sum())
    asked = problem("jobs", 300, 12, 1, most=forced + 10)
    found = descent(asked)
    for sharpness in (50.0, 100.0, 200.0):
        found.settle(sharpness, 0.0, hard=True)
        assert (found.parts.leader != asked.block.home).sum() <= forced + 10
    assert found.prices(200.0)[1] > 0


def test_brokers_below_the_goal_keep_their_leaders():
    asked = problem("jobs", 300, 12, 1)
    found = descent(asked)
    before = found.parts.leader.copy()
    found.settle(100.0, found.highest)
    assert np.array_equal(found.parts.leader, before)


def test_a_broker_never_exceeds_its_limit():
    asked = problem("jobs", 300, 12, 1)
    found = descent(asked)
    top = found.highest
    limits = np.array([np.inf, np.inf, 1.05 * top, np.inf, np.inf])
    block, given = asked.block, asked.problem
    found = Descent(block, given.loads, given.carried(block.leader), given.capacity, found.parts, None, limits)
    for sharpness in (50.0, 200.0):
        found.settle(sharpness, 0.0)
        assert asked.carried(found.parts.leader)[2].max() / asked.brokers.capacity[2] <= limits[2] * (1 + 1e-9)


def test_halves_have_the_leaders_of_their_wholes():
    halves = Parts(np.array([0, 1]), np.array([1, 4], np.float32), np.array([3, 2], np.int32)).halved()
    assert halves.row.tolist() == [0, 0, 1, 1]
    assert halves.count.tolist() == [2, 2, 8, 8]
    assert halves.leader.tolist() == [3, 3, 2, 2]


def test_of_changes_that_share_a_broker_the_first_counts():
    origin, to = np.array([0, 1, 2, 4], np.int32), np.array([1, 3, 3, 5], np.int32)
    assert first_of_each(6, origin, to).tolist() == [True, False, False, True]
