"""Prices by broker and hour: how low the busiest broker-hour can be if partitions were divisible.

Frank and Wolfe's method on a smooth maximum of all broker-hours: its derivatives are prices; each partition goes to its
cheapest leader at them, and the shares of all leaders take the best step towards that. Averages of the prices prove the
bound. A linear program has one row for each of up to 168 hours of a broker and nearly all of them are tight, so that a
solver takes minutes where this takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Int32s
from bellwether_load.planning.hourly import CLOSE, HourlyBound, HourlyProblem, bound_of, prices_of, with_items

Floats = NDArray[np.float64]
SHARPNESS = (100.0, 200.0, 400.0)
"""How sharp the smooth maximum is, stage by stage."""
_STEPS = 600
"""Most steps of a stage; fewer of them where partitions are many, but at least a sixth."""
_WORK = 1_500_000_000
_JUDGED = 10
"""Steps between two bounds of the average prices."""
_AVERAGE = 0.02
_WEIGHT = 2.0**12
_LARGEST = 2.0**62
_HALVINGS = 14


@dataclass(frozen=True)
class Divisible:
    """The bound, and for each partition the leader with the largest share of it."""

    bound: HourlyBound
    leader: Int32s


def divisible(problem: HourlyProblem, tell: Callable[[str], None] = lambda _: None) -> Divisible:
    """Balance divisible partitions by hour, from the block's leaders."""
    block = problem.block
    best = HourlyBound(Fraction(0), np.zeros_like(problem.fixed), 0)
    if not len(block) or not problem.brokers.open.any():
        return Divisible(with_items(problem, best), block.leader)
    relaxed = _Relaxed(problem)
    steps = int(min(_STEPS, max(_WORK // (block.eligible.size * problem.loads.shape[1]), _STEPS // 6)))
    for sharpness in SHARPNESS:
        average = relaxed.prices(sharpness)
        move = 0.0
        for step in range(steps):
            prices = relaxed.prices(sharpness)
            average += _AVERAGE * (prices - average)
            move += _AVERAGE * (relaxed.step(prices, sharpness) - move)
            if step % _JUDGED == _JUDGED - 1:
                best = max(best, relaxed.bound(average, move), key=lambda bound: bound.value)
        tell(f"by hour: {relaxed.highest / max(float(best.value), 1e-300) - 1:.2%} between divisible plan and bound")
        if relaxed.highest <= float(best.value) * (1 + CLOSE):
            break
    return Divisible(with_items(problem, best), relaxed.leader())


class _Relaxed:
    """Shares of leaders, and the load of each broker in each hour with them."""

    def __init__(self, problem: HourlyProblem) -> None:
        block = problem.block
        self._problem = problem
        self._capacity = problem.capacity[:, None]
        self._shares = (block.eligible == block.leader[:, None]).astype(np.float64)
        self._carried = problem.carried(block.leader) / self._capacity
        self._home = block.eligible == block.home[:, None]

    @property
    def highest(self) -> float:
        """The highest relative load of a broker in an hour."""
        return float(self._carried.max())

    def prices(self, sharpness: float) -> Floats:
        """What a load costs on each broker in each hour."""
        top = max(self.highest, 1e-300)
        found: Floats = np.exp(sharpness * (self._carried / top - 1)) / self._capacity
        found /= found.sum()
        return found

    def step(self, prices: Floats, sharpness: float) -> float:
        """Move the shares towards the cheapest leaders; returns the price of a changed leader."""
        block = self._problem.block
        slot, move = self._cheapest(prices)
        leader = np.take_along_axis(block.eligible, slot[:, None], axis=1)[:, 0]
        towards = self._problem.carried(leader) / self._capacity - self._carried
        length = self._length(towards, sharpness)
        self._carried += length * towards
        self._shares *= 1 - length
        self._shares[np.arange(len(block)), slot] += length
        return move

    def bound(self, prices: Floats, move: float) -> HourlyBound:
        """The bound of these prices, as whole numbers."""
        unit = _WEIGHT / prices.max()
        return bound_of(self._problem, np.rint(prices * unit).astype(np.int64), int(min(move * unit, _LARGEST)))

    def leader(self) -> Int32s:
        """The leader with the largest share of each partition."""
        slot = self._shares.argmax(axis=1)[:, None]
        found: Int32s = np.take_along_axis(self._problem.block.eligible, slot, axis=1)[:, 0]
        return found

    def _cheapest(self, prices: Floats) -> tuple[NDArray[np.int64], float]:
        """The place of each partition's cheapest leader. With a cap, only those change that gain most by it; what the
        next one would gain is the price of a changed leader."""
        problem, block = self._problem, self._problem.block
        costs = prices_of(block.eligible, block.brokers, problem.loads, prices)
        slot = costs.argmin(axis=1)
        if problem.most is None:
            return slot, 0.0
        at_home = self._home.any(axis=1)
        stays = self._home.argmax(axis=1)
        gain = np.where(at_home, np.take_along_axis(costs, stays[:, None], axis=1)[:, 0] - costs.min(axis=1), np.inf)
        order = np.argsort(-gain, kind="stable")
        back = order[problem.most :]
        slot[back] = np.where(at_home, stays, slot)[back]
        return slot, float(gain[back[0]]) if len(back) and at_home[back[0]] else 0.0

    def _length(self, towards: Floats, sharpness: float) -> float:
        """The length of the best step: the derivative of the smooth maximum is 0 there."""
        top, low, high = max(self.highest, 1e-300), 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            carried = self._carried + middle * towards
            slope = (np.exp(sharpness * (carried - carried.max()) / top) * towards).sum()
            low, high = (middle, high) if slope < 0 else (low, middle)
        return low
