"""Choose leaders by the hours of the week, from those of a plan for the statistic, if the busiest hour gets lower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.exchanges import MOST_PARTITIONS
from bellwether_load.planning.hourly import HourlyBound, HourlyProblem, improved
from bellwether_load.planning.hourly_prices import divisible
from bellwether_load.planning.pools import Pool

WORTHWHILE = Fraction(995, 1000)
"""Leaders that leave more than this of the busiest hour's load are not worth their changes."""


@dataclass(frozen=True)
class HourlyInput:
    """Loads by hour, a column for each of ``hours`` of the week: of the partitions with a choice, a row for each of
    ``ids``, ascending; and ``fixed``, of each broker without them."""

    hours: tuple[int, ...]
    ids: Int64s
    loads: Int64s
    fixed: Int64s

    @property
    def usable(self) -> bool:
        """Whether there are few partitions, and none costs less to lead than to follow in some hour."""
        return len(self.ids) <= MOST_PARTITIONS and bool((self.loads >= 0).all())


@dataclass(frozen=True)
class HourlyResult:
    """The bound on the busiest broker-hour. ``replaced``: busiest broker-hour and number of changed leaders of the plan
    for the statistic, where leaders were chosen for the hours instead."""

    hours: tuple[int, ...]
    bound: HourlyBound
    replaced: tuple[Fraction, int] | None


def by_hours(
    given: HourlyInput, pool: Pool, brokers: Brokers, most: int | None, tell: Callable[[str], None] = lambda _: None
) -> HourlyResult:
    """Change leaders in the pool if the busiest broker-hour becomes lower by 0.5 % or more; at most ``most`` in all."""
    block = pool.gathered()
    problem = HourlyProblem(block, brokers, given.loads, given.fixed, most)
    found = divisible(problem, tell)
    leader = improved(problem, found.bound.value, found.leader, tell)
    return adopt(pool, problem, leader, HourlyResult(given.hours, found.bound, None), tell)


def adopt(
    pool: Pool, problem: HourlyProblem, leader: Int32s, found: HourlyResult, tell: Callable[[str], None]
) -> HourlyResult:
    """Give the problem's partitions these leaders in the pool, if that lowers the busiest broker-hour by 0.5 %."""
    block = problem.block
    before, after = problem.highest(block.leader), problem.highest(leader)
    if after >= before * WORTHWHILE:
        tell("the plan for the statistic is as good by hour: no other plan lowers its busiest hour by 0.5 %")
        return found
    changed = pool.changed()
    rows = np.flatnonzero(leader != block.leader)
    pool.place(dict(zip(block.ids[rows].tolist(), leader[rows].tolist(), strict=True)))
    lower = float(1 - after / before)
    tell(
        f"by hour: the busiest hour is {lower:.1%} lower with {pool.changed():,} changed leaders than with {changed:,}"
    )
    return replace(found, replaced=(before, changed))
