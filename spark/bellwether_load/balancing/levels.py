"""Every broker as low as it can be: the busiest first, then the busiest of the others, and so on.

The brokers that a level proves, or its busiest ones where the proof is loose, are settled at what they carry; the
next level minimizes the busiest of the rest. Each level has prices of its own, which prove how low it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.balance import TOLERANCE, Balance, at_home, capped
from bellwether_load.balancing.blocks import Block, Bools, Brokers, Int32s, Int64s, Tell
from bellwether_load.balancing.bounds import Bound, Priced, bound_of
from bellwether_load.balancing.hourly import HourlyResult

MOST_LEVELS = 8
WORTHWHILE = Fraction(995, 1000)
"""A level that leaves the busiest broker with more of its load than this is not worth its moves."""
CLOSE = 1 + 2 * float(TOLERANCE)
"""A busiest broker that is no further than this above its bound is proved to be as low as it can be."""


ByHours = Callable[[Block, Brokers, int | None, Tell], HourlyResult]
"""Changes leaders, at most so many of them, if that lowers the busiest broker-hour; says how it went on."""


@dataclass(frozen=True)
class Level:
    """One level: ``brokers`` with the earlier levels settled, its bound, and that of its heaviest partition.

    ``load``: the highest relative load of those that are not settled. ``limit``: of those settled last.
    """

    brokers: Brokers
    limit: float
    load: float
    bound: Bound
    heaviest: float

    @property
    def floor(self) -> float:
        """The lower bound on the busiest broker that is not settled."""
        return max(float(self.bound.value), self.heaviest)


@dataclass(frozen=True)
class Levels:
    """Result: the chosen leaders and the levels."""

    block: Block
    levels: tuple[Level, ...]
    hourly: HourlyResult | None = None

    def led_by(self, leader: Int32s, brokers: Brokers, most: int | None) -> Levels:
        """The same levels with other leaders, and what is proved of these."""
        block = self.block.led_by(leader)
        carried = brokers.fixed + block.led
        return replace(self, block=block, levels=_proved(block.start, self.levels, carried, most))


def levelled(
    start: Block,
    brokers: Brokers,
    most: int | None,
    by_hours: ByHours | None = None,
    tell: Tell = lambda _: None,
) -> Levels:
    """Lower all brokers level by level, with at most ``most`` changed leaders; mandatory changes always happen.

    With ``by_hours`` the busiest broker-hour is lowered last, and counts most; the levels are those of the result.
    """
    every, allowed = brokers, None if most is None else max(most, start.changed)
    found = capped(start, brokers, most, tell)
    block, levels = found.block, [_level(brokers, found)]
    while len(levels) < MOST_LEVELS and found.floor:
        carried = brokers.fixed + block.led
        brokers = brokers.settle(_settling(brokers, found, carried), brokers.busiest(carried))
        if not brokers.free.any():
            break
        tell(f"level {len(levels) + 1}: {int(brokers.settled.sum()):,} of {len(brokers):,} brokers are settled")
        found = capped(block, brokers, most, tell)
        top = brokers.busiest(carried)
        lower = found.kept(brokers) and found.top(brokers) < top * WORTHWHILE
        block = found.block if lower else block
        levels.append(_level(brokers, found))
        if not lower and top > found.floor * CLOSE:
            # Without a lower or a proved busiest broker, the next level differs by that one broker alone.
            break
    before = block.changed
    block = at_home(block, every, _limits([level.brokers for level in levels], every.fixed + block.led))
    tell(f"{before:,} leaders change for these levels, {block.changed:,} are enough")
    hourly = None if by_hours is None else by_hours(block, every, allowed, tell)
    block = block if hourly is None else hourly.block
    carried = every.fixed + block.led
    return Levels(block, _proved(start, levels, carried, allowed), hourly)


def _limits(levels: Sequence[Brokers], carried: Int64s) -> Int64s:
    """The load of each broker with which every level stays as low as it is."""
    limits = carried
    for brokers in levels:
        # Later levels replace it for those that are not settled there.
        limits = np.where(brokers.free, brokers.limits(brokers.busiest(carried)), limits)
    return limits


def _settling(brokers: Brokers, found: Balance, carried: Int64s) -> Bools:
    """The brokers that the prices prove to be as low as they can be if they do, and the busiest ones."""
    top = float(brokers.busiest(carried))
    busiest = carried / brokers.capacity >= top * (1 - float(TOLERANCE))
    proved = found.bound.prices.weights > 0
    return brokers.free & (busiest | (proved if top <= float(found.bound.value) * CLOSE else False))


def _level(brokers: Brokers, found: Balance) -> Level:
    return Level(brokers, 0.0, float(found.top(brokers)), found.bound, found.heaviest)


def _proved(start: Block, found: Sequence[Level], carried: Int64s, most: int | None) -> tuple[Level, ...]:
    """The levels with their bounds, given that settled brokers keep to the limits of their levels."""
    levels: list[Level] = []
    limits: dict[int, Fraction] = {}
    for level in found:
        limit, brokers = 0.0, level.brokers
        if levels:
            above = levels[-1]
            # A perfect plan is at the bound; where this one is close to it, the next level is judged by that.
            limit = above.floor if above.load <= above.floor * CLOSE else above.load
            more = np.flatnonzero(brokers.settled & ~above.brokers.settled)
            limits |= dict.fromkeys(more.tolist(), Fraction(limit))
        prices = level.bound.prices
        bound = bound_of(prices, brokers, Priced.at(start, prices), most, limits)
        bound = Bound(max(bound.value, Fraction(0)), prices)
        levels.append(Level(brokers, limit, float(brokers.busiest(carried)), bound, level.heaviest))
    return tuple(levels)
