"""Every broker as low as it can be: the busiest first, then the busiest of the others, and so on.

The brokers that a level proves, or its busiest ones where the proof is loose, are settled at what they carry; the
next level minimizes the busiest of the rest. Each level has prices of its own, which prove how low it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Int64s
from bellwether_load.planning.bounds import Bound
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.caps import better, capped
from bellwether_load.planning.fewest_changes import reduce_changes
from bellwether_load.planning.hourly_rounds import HourlyResult
from bellwether_load.planning.pools import Pool, carried_by
from bellwether_load.planning.prices import bound_of, total_of
from bellwether_load.planning.rounds import TOLERANCE, Alternative, Balance

MOST_LEVELS = 8
WORTHWHILE = Fraction(995, 1000)
"""A level that leaves the busiest broker with more of its load than this is not worth its moves."""


ByHours = Callable[[Pool, Brokers, int | None, Callable[[str], None]], HourlyResult | None]
"""Changes leaders in the pool, at most so many of them, if that lowers the busiest broker-hour; says how it went on."""


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
    """Result: the load of each broker, the levels, the number of rounds, and plans with higher caps on moves."""

    carried: Int64s
    levels: tuple[Level, ...]
    rounds: int
    alternatives: tuple[Alternative, ...] = ()
    hourly: HourlyResult | None = None


def levelled(
    pool: Pool,
    brokers: Brokers,
    most: int | None,
    by_hours: ByHours | None = None,
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> Levels:
    """Lower all brokers level by level, with at most ``most`` changed leaders; mandatory changes always happen.

    With ``by_hours`` the busiest broker-hour is lowered last, and counts most; the levels are those of the result.
    """
    forced = pool.changed()
    allowed = None if most is None else max(most, forced)
    found = capped(pool, brokers, most, forced, tell)
    carried, rounds, alternatives = found.carried, found.rounds, found.alternatives
    levels = [(brokers, found)]
    while len(levels) < MOST_LEVELS and found.floor:
        brokers = brokers.settle(_settling(brokers, found, carried), brokers.busiest(carried))
        if not brokers.free.any():
            break
        tell(f"level {len(levels) + 1}: {int(brokers.settled.sum()):,} of {len(brokers):,} brokers are settled")
        state = pool.state()
        found = capped(pool, brokers, most, forced, tell)
        rounds += found.rounds
        top = brokers.busiest(carried)
        lower = brokers.kept(found.carried) and brokers.busiest(found.carried) < top * WORTHWHILE
        if lower:
            carried = found.carried
        else:
            pool.restore(state)
        levels.append((brokers, found))
        if not lower and top > found.floor * (1 + 2 * float(TOLERANCE)):
            # Without a lower or a proved busiest broker, the next level differs by that one broker alone.
            break
    before = pool.changed()
    carried = reduce_changes(pool, levels[0][0], _limits([brokers for brokers, _ in levels], carried), carried)
    tell(f"{before:,} leaders change for these levels, {pool.changed():,} are enough")
    hourly = None if by_hours is None else by_hours(pool, levels[0][0], allowed, tell)
    if hourly is not None and hourly.replaced is not None:
        carried = carried_by(pool, levels[0][0])
    # Fewer changes, or the hours, can have made the plan better than one with a higher cap.
    alternatives = better(alternatives, levels[0][0].busiest(carried))
    return Levels(carried, _proved(pool, levels, carried, allowed), rounds, alternatives, hourly)


def _limits(levels: Sequence[Brokers], carried: Int64s) -> Int64s:
    """The load of each broker with which every level stays as low as it is."""
    limits = carried
    for brokers in levels:
        # Later levels replace it for those that are not settled there.
        top = brokers.busiest(carried)
        limits = np.where(brokers.free, [int(top * int(c)) for c in brokers.capacity], limits)
    return limits


def _settling(brokers: Brokers, found: Balance, carried: Int64s) -> NDArray[np.bool_]:
    """The brokers that the prices prove to be as low as they can be if they do, and the busiest ones."""
    top = float(brokers.busiest(carried))
    busiest = carried / brokers.capacity >= top * (1 - float(TOLERANCE))
    proved = (found.bound.prices.weights > 0) & found.bound.by_weights
    return brokers.free & (busiest | (proved if top <= found.floor * (1 + 2 * float(TOLERANCE)) else False))


def _proved(
    pool: Pool, found: Sequence[tuple[Brokers, Balance]], carried: Int64s, most: int | None
) -> tuple[Level, ...]:
    """The levels with their bounds, given that settled brokers keep to the limits of their levels."""
    levels: list[Level] = []
    limits: dict[int, Fraction] = {}
    for brokers, balance in found:
        limit = 0.0
        if levels:
            above = levels[-1]
            # A perfect plan is at the bound; where this one is close to it, the next level is judged by that.
            limit = above.floor if above.load <= above.floor * (1 + 2 * float(TOLERANCE)) else above.load
            more = np.flatnonzero(brokers.settled & ~above.brokers.settled)
            limits |= dict.fromkeys(more.tolist(), Fraction(limit))
        prices = balance.bound.prices
        answers = pool.priced(prices, np.empty(0, np.int64), 0)
        led, changed = total_of(answers, brokers)
        bound = Bound(max(bound_of(prices, brokers, led, changed, most, limits), Fraction(0)), prices)
        levels.append(Level(brokers, limit, float(brokers.busiest(carried)), bound, balance.heaviest))
    return tuple(levels)
