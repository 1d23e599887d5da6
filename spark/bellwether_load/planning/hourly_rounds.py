"""Choose leaders by the hours of the week, from those of a plan for the statistic, if the busiest hour gets lower.

All partitions are read twice: for the loads by hour of those that may change, and for what the prices prove of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.hourly import HourlyPrices, HourlyProblem, balanced, divided
from bellwether_load.planning.hourly_parts import HourlyRows, HourlySums
from bellwether_load.planning.pools import Pool

WORTHWHILE = 0.995
"""Leaders that leave more than this of the busiest hour's load are not worth their changes."""
HELD = 2_000_000
"""Partitions that may change their leaders, the heaviest: at most 1.3 GB of loads by hour."""


class Passes(Protocol):
    """Reads all partitions and their loads by hour, each time."""

    @property
    def hours(self) -> tuple[int, ...]:
        """Of the week, a column each."""
        ...

    def rows(self, ids: Int64s, changed: Int64s, to: Int32s) -> HourlyRows:
        """Loads of ``ids``, ascending, which have a choice; ``changed``, ascending, get the leaders ``to``."""
        ...

    def sums(self, prices: HourlyPrices, fixed: Int64s, changed: Int64s, to: Int32s) -> HourlySums:
        """What all partitions add up to; ``changed``, ascending, get the leaders ``to``."""
        ...


@dataclass(frozen=True)
class HourlyBound:
    """A lower bound on the busiest broker-hour, and the prices that prove it. ``item``: the id of a partition that
    decides it alone, or None."""

    value: Fraction
    prices: HourlyPrices
    item: int | None


@dataclass(frozen=True)
class HourlyResult:
    """The load of each broker in each hour before and after, and the bound. ``replaced``: busiest broker-hour and
    number of changed leaders of the plan for the statistic, where leaders were chosen for the hours instead."""

    hours: tuple[int, ...]
    before: Int64s
    after: Int64s
    bound: HourlyBound
    replaced: tuple[float, int] | None


def by_hours(
    passes: Passes, pool: Pool, brokers: Brokers, most: int | None, tell: Callable[[str], None] = lambda _: None
) -> HourlyResult | None:
    """Change leaders in the pool if the busiest broker-hour becomes lower by 0.5 % or more; at most ``most`` in all.

    None where leading costs less than following in some hour.
    """
    every = pool.gathered()
    ids = np.sort(every.ids[np.lexsort((every.ids, -every.loads))[:HELD]])
    found = passes.rows(ids, *pool.changes())
    tell(f"by hour: {len(ids):,} partitions may get other leaders")
    if found.lowest < 0:
        return None
    block = found.block
    others = pool.changed() - block.changed
    allowed = None if most is None else most - others
    problem = HourlyProblem(block, brokers, passes.hours, found.loads, found.fixed + found.rest, allowed)
    best = divided(problem, tell)
    replaced = _adopt(pool, problem, balanced(problem, best, tell), tell)
    sums = passes.sums(best.prices, found.fixed, *pool.changes())
    return HourlyResult(passes.hours, sums.before, sums.after, bound_of(best.prices, sums, brokers, most), replaced)


def bound_of(prices: HourlyPrices, sums: HourlySums, brokers: Brokers, most: int | None) -> HourlyBound:
    """The bound that the prices prove, or that of a broker's fixed load or of a single partition, if higher; exactly.

    At most ``most`` leaders may change.
    """
    weights, at = prices.weights, np.argwhere(prices.weights > 0).tolist()
    total = prices.move * (sums.changed - most) if most is not None else 0
    total += sum(int(weights[b, h]) * int(sums.cheapest[b, h]) for b, h in at)
    capacity = sum(int(weights[b, h]) * int(brokers.capacity[b]) for b, h in at)
    value = max(Fraction(total, capacity), Fraction(0)) if capacity else Fraction(0)
    value = max(value, brokers.busiest(sums.fixed.max(axis=1, initial=0)))
    item = None if sums.item is None or sums.item.load <= value else sums.item
    return HourlyBound(value if item is None else item.load, prices, None if item is None else item.id)


def _adopt(pool: Pool, problem: HourlyProblem, leader: Int32s, tell: Callable[[str], None]) -> tuple[float, int] | None:
    """Give the problem's partitions these leaders in the pool, if that lowers the busiest broker-hour by 0.5 %.

    Returns the busiest broker-hour and the number of changed leaders that it had before, if so.
    """
    block = problem.block
    before, after = problem.highest(block.leader), problem.highest(leader)
    if after >= before * WORTHWHILE:
        tell("the plan for the statistic is as good by hour: no other plan lowers its busiest hour by 0.5 %")
        return None
    changed = pool.changed()
    rows = np.flatnonzero(leader != block.leader)
    pool.place(dict(zip(block.ids[rows].tolist(), leader[rows].tolist(), strict=True)))
    lower, now = 1 - after / before, pool.changed()
    tell(f"by hour: the busiest hour is {lower:.1%} lower with {now:,} changed leaders than with {changed:,}")
    return before, changed
