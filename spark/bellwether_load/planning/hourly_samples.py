"""Plan against the hours of the week for more partitions than can be held with all of their hours.

The heaviest partitions may change their leaders, the others keep those of the plan for the statistic. The prices by
broker and hour come from the heaviest of them and a random sample that represents all others; all partitions are read
once more for a bound that holds for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int32s, Int64s, joined, spread
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.choices import Choices, Costs
from bellwether_load.planning.forecasts import loads_by_hour, sums_by_hour
from bellwether_load.planning.hourly import HourlyBound, HourlyProblem, bound_value, improved, prices_of, with_items
from bellwether_load.planning.hourly_prices import divisible
from bellwether_load.planning.hourly_rounds import HourlyResult, adopt
from bellwether_load.planning.hourly_search import carried_by_hour
from bellwether_load.planning.pools import Pool

SEARCHED = 60_000
"""Partitions that may change their leaders: the heaviest."""
PRICED = 10_000
"""Heaviest partitions that the prices rest on, and about how many of the others."""
_SALT = 168

RatesOfPart = tuple[Int64s, Int64s, Int64s]
"""Of some of a piece's partitions: their rows in it, and bytes/s in and out, a column an hour."""
Rates = Iterator[RatesOfPart]
"""Of all of a piece's partitions, part by part."""


@dataclass(frozen=True)
class HourlyRows:
    """Some partitions with a choice, led as planned so far, and their ``loads``: a row each, a column an hour.

    ``fixed``: load of each broker in each hour without all partitions that have a choice. ``rest``: of those with one
    that are not in ``block``. ``lowest``: the lowest load in an hour of all that have one.
    """

    block: Block
    loads: Int64s
    fixed: Int64s
    rest: Int64s
    lowest: int

    @classmethod
    def joined(cls, parts: list[HourlyRows]) -> HourlyRows:
        """Of disjoint parts, by id."""
        order = np.argsort(np.concatenate([part.block.ids for part in parts]))
        return cls(
            joined(0, [part.block for part in parts]),
            np.concatenate([part.loads for part in parts])[order],
            np.sum([part.fixed for part in parts], axis=0),
            np.sum([part.rest for part in parts], axis=0),
            min(part.lowest for part in parts),
        )

    def rows(self, which: NDArray[np.bool_]) -> HourlyRows:
        """These partitions alone; the others count among the rest."""
        away = self.block.take(np.flatnonzero(~which))
        rest = carried_by_hour(away.leader, self.loads[~which], self.rest)
        return replace(self, block=self.block.take(np.flatnonzero(which)), loads=self.loads[which], rest=rest)


class Passes(Protocol):
    """Reads all partitions and their loads by hour, each time."""

    @property
    def hours(self) -> tuple[int, ...]:
        """Of the week, a column each."""
        ...

    def heaviest(self, most: int) -> Int64s:
        """Ids of the partitions with a choice that have the largest loads, the heaviest first."""
        ...

    def rows(self, ids: Int64s, share: float, changed: Int64s, to: Int32s) -> HourlyRows:
        """Loads of ``ids``, ascending, and of all this share, ``in_sample``; ``changed`` get the leaders ``to``."""
        ...

    def with_cheapest_leaders(self, weights: Int64s) -> Int64s:
        """The load of each broker in each hour if each partition has its cheapest leader at these weights."""
        ...


def by_samples(
    passes: Passes, pool: Pool, brokers: Brokers, most: int | None, tell: Callable[[str], None] = lambda _: None
) -> HourlyResult | None:
    """Change leaders in the pool if the busiest broker-hour becomes lower by 0.5 % or more; at most ``most`` in all.

    None where leading costs less than following in some hour.
    """
    heavy = passes.heaviest(SEARCHED)
    others = pool.size() - len(heavy[:PRICED])
    share = min(PRICED / max(others, 1), 1.0)
    found = passes.rows(np.sort(heavy), share, *pool.changes())
    if found.lowest < 0:
        return None
    weights, priced, balanced = _weights(found, brokers, heavy[:PRICED], share, others, tell)
    bound = HourlyBound(bound_value(weights, passes.with_cheapest_leaders(weights), brokers), weights, 0)
    mine = np.isin(found.block.ids, heavy)
    rounded = found.block.leader.copy()
    rounded[priced] = balanced
    searched = found.rows(mine)
    problem = HourlyProblem(searched.block, brokers, searched.loads, searched.fixed, None)
    bound = with_items(problem, bound)
    outside = pool.changed() - searched.block.changed
    problem = replace(problem, fixed=searched.fixed + searched.rest, most=None if most is None else most - outside)
    leader = improved(problem, bound.value, rounded[mine], tell)
    return adopt(pool, problem, leader, HourlyResult(passes.hours, bound, None), tell)


def _weights(
    found: HourlyRows, brokers: Brokers, heaviest: Int64s, share: float, others: int, tell: Callable[[str], None]
) -> tuple[Int64s, NDArray[np.bool_], Int32s]:
    """Prices by broker and hour, the partitions that they rest on, and leaders of these if they were divisible."""
    alone = np.isin(found.block.ids, heaviest)
    sampled = ~alone & in_sample(found.block.ids, share)
    priced = alone | sampled
    represents = np.where(alone, 1.0, others / max(int(sampled.sum()), 1))[priced]
    loads = np.rint(found.loads[priced] * represents[:, None]).astype(np.int64)
    block = found.block.take(np.flatnonzero(priced))
    balanced = divisible(HourlyProblem(block, brokers, loads, found.fixed, None), tell)
    return balanced.bound.weights, priced, balanced.leader


def in_sample(ids: Int64s, share: float) -> NDArray[np.bool_]:
    """Which of these are in a random sample of that share; the same each time."""
    found: NDArray[np.bool_] = spread(ids, _SALT) < share
    return found


def heaviest(ids: Int64s, loads: Int64s, most: int) -> tuple[Int64s, Int64s]:
    """The ``most`` partitions with the largest loads, the heaviest first."""
    order = np.lexsort((ids, -loads))[:most]
    return ids[order], loads[order]


def rows_by_hour(
    found: Choices,
    ids: Int64s,
    leader: Int32s,
    picked: NDArray[np.bool_],
    costs: Costs,
    hours: int,
    rates: Rates,
) -> HourlyRows:
    """A piece's part of :meth:`Passes.rows`: of partitions with their ``ids``, led by ``leader``, those ``picked``.

    ``rates``: of so many ``hours``.
    """
    kept, parts, lowest = [np.empty(0, np.int64)], [np.empty((0, hours), np.int64)], 0
    fixed, rest = np.zeros((2, found.brokers, hours), np.int64)
    for rows, produce, consume in rates:
        load, base = loads_by_hour(found, costs, rows, produce, consume)
        free, stays = found.free[rows], found.fixed[rows]
        mine, others = free & picked[rows], free & ~picked[rows]
        fixed += base + sums_by_hour(found.leader[rows[stays]], load[stays], found.brokers)
        rest += sums_by_hour(leader[rows[others]], load[others], found.brokers)
        lowest = min(lowest, int(load[free].min(initial=0)))
        kept.append(rows[mine])
        parts.append(load[mine])
    at, loads = np.concatenate(kept), np.concatenate(parts)
    home = np.where(found.at_home, found.leader, found.brokers).astype(np.int32)
    block = Block(0, found.brokers, ids[at], found.loads[at], found.eligible[at], home[at], leader[at])
    return HourlyRows(block, loads, fixed, rest, lowest)


def carried_with_cheapest(
    found: Choices, costs: Costs, weights: Int64s, rows: Int64s, produce: Int64s, consume: Int64s
) -> Int64s:
    """A part's share of :meth:`Passes.with_cheapest_leaders`."""
    load, base = loads_by_hour(found, costs, rows, produce, consume)
    leader, free = found.leader[rows], np.flatnonzero(found.free[rows])
    eligible = found.eligible[rows[free]]
    slot = prices_of(eligible, found.brokers, load[free], weights).argmin(axis=1)
    leader[free] = eligible[np.arange(len(free)), slot]
    return base + sums_by_hour(leader, load, found.brokers)
