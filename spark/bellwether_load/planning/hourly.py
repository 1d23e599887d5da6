"""Plan against the hours of the week: the lowest busiest broker-hour, and a bound on it.

Whole partitions leave the busiest broker-hour one by one, from the leaders at the start and from those of divisible
partitions (``hourly_prices``), whose prices by broker and hour prove the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.hourly_search import Search, carried_by_hour

Floats = NDArray[np.float64]
CLOSE = 1e-3
"""Relative distance to the bound at which the search ends."""


@dataclass(frozen=True)
class HourlyProblem:
    """Partitions with a choice, and ``loads``: a row each, a column an hour. ``fixed``: likewise of each broker,
    without them. ``most``: how many leaders may change, None for any number; the block's leaders keep to it."""

    block: Block
    brokers: Brokers
    loads: Int64s
    fixed: Int64s
    most: int | None

    @property
    def capacity(self) -> Floats:
        """That of each broker; infinite where it may not lead, so that its load counts as 0."""
        return np.where(self.brokers.open, self.brokers.capacity, np.inf)

    def carried(self, leader: Int32s) -> Int64s:
        """The load of each broker in each hour."""
        return carried_by_hour(leader, self.loads, self.fixed)

    def highest(self, leader: Int32s) -> Fraction:
        """The highest relative load of an open broker in an hour, exactly."""
        return _highest(self.carried(leader), self.brokers)


@dataclass(frozen=True)
class HourlyBound:
    """A lower bound on the busiest broker-hour, and the whole numbers that prove it: ``weights`` by broker and hour,
    ``move`` for a changed leader. ``item``: the id of a partition that decides it alone, or None."""

    value: Fraction
    weights: Int64s
    move: int
    item: int | None = None


def improved(problem: HourlyProblem, goal: Fraction, rounded: Int32s, tell: Callable[[str], None]) -> Int32s:
    """The leaders with the lowest busiest broker-hour that is found, from those of the block and from ``rounded``."""
    loads, fixed = problem.loads.astype(np.float64), problem.fixed.astype(np.float64)
    search = Search(problem.block, loads, fixed, problem.capacity)
    aim, near = float(goal) * (1 + CLOSE), float(goal) * (1 + 5 * CLOSE)
    found = search.improve(problem.block.leader, aim, problem.most)
    tell(f"busiest hour: {_over(found.highest, goal)} over the bound, from the leaders of the plan")
    if found.highest > near:
        # They change more leaders: for nothing if that gains nothing.
        other = search.improve(search.within(rounded, problem.most), aim, problem.most)
        tell(f"busiest hour: {_over(other.highest, goal)} over it, from those of divisible partitions")
        found = other if other.highest < found.highest * (1 - CLOSE) else found
    return search.returned(found)


def bound_of(problem: HourlyProblem, weights: Int64s, move: int) -> HourlyBound:
    """The bound that these prices prove: every partition pays least with its cheapest leader (weak duality)."""
    block = problem.block
    costs = prices_of(block.eligible, block.brokers, problem.loads, weights)
    costs += move * (block.eligible != block.home[:, None])
    chosen = block.eligible[np.arange(len(block)), costs.argmin(axis=1)] if len(block) else block.leader
    changes = 0 if problem.most is None else move * (int((chosen != block.home).sum()) - problem.most)
    return HourlyBound(bound_value(weights, problem.carried(chosen), problem.brokers, changes), weights, move)


def bound_value(weights: Int64s, carried: Int64s, brokers: Brokers, changes: int = 0) -> Fraction:
    """The bound that these weights prove, exactly. ``carried``: load of each broker in each hour if each partition has
    its cheapest leader; ``changes``: what the changed leaders cost beyond those that are allowed."""
    at = np.argwhere(weights > 0).tolist()
    total = changes + sum(int(weights[b, h]) * int(carried[b, h]) for b, h in at)
    capacity = sum(int(weights[b, h]) * int(brokers.capacity[b]) for b, h in at)
    return max(Fraction(total, capacity), Fraction(0)) if capacity else Fraction(0)


def with_items(problem: HourlyProblem, bound: HourlyBound) -> HourlyBound:
    """The same bound, or that of a broker's fixed load or of a single partition, whichever leads it, if higher."""
    block, brokers = problem.block, problem.brokers
    value, item = max(bound.value, _highest(problem.fixed, brokers)), None
    if len(block):
        alone = np.full(block.eligible.shape, np.inf)
        for slot in range(block.eligible.shape[1]):
            rows = np.flatnonzero(block.eligible[:, slot] < block.brokers)
            to = block.eligible[rows, slot]
            alone[rows, slot] = ((problem.fixed[to] + problem.loads[rows]) / brokers.capacity[to, None]).max(axis=1)
        row = int(alone.min(axis=1).argmax())
        may = block.eligible[row][block.eligible[row] < block.brokers].tolist()
        needs = (problem.fixed[may] + problem.loads[row]).max(axis=1).tolist()
        least = min(Fraction(load, int(brokers.capacity[b])) for b, load in zip(may, needs, strict=True))
        if least > value:
            value, item = least, int(block.ids[row])
    return HourlyBound(value, bound.weights, bound.move, item)


def prices_of(
    eligible: Int32s, brokers: int, loads: NDArray[np.integer] | Floats, weights: NDArray[np.integer] | Floats
) -> Floats:
    """What each partition costs with each of its eligible leaders; infinite where there is none."""
    hours = np.flatnonzero(weights.any(axis=0))
    loads, weights = loads[:, hours].astype(np.float64), weights[:, hours].astype(np.float64)
    costs = np.full(eligible.shape, np.inf)
    for slot in range(eligible.shape[1]):
        rows = np.flatnonzero(eligible[:, slot] < brokers)
        costs[rows, slot] = np.einsum("ij,ij->i", loads[rows], weights[eligible[rows, slot]])
    return costs


def _highest(carried: Int64s, brokers: Brokers) -> Fraction:
    most = carried.max(axis=1, initial=0).tolist()
    return max((Fraction(most[b], int(brokers.capacity[b])) for b in np.flatnonzero(brokers.open)), default=Fraction(0))


def _over(highest: float, goal: Fraction) -> str:
    return f"{highest / float(goal) - 1:.2%}" if goal else "not at all"
