"""A piece's share of what plans by hour read of all partitions, in whole numbers, and how shares are put together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int32s, Int64s, joined
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.choices import Choices, Costs
from bellwether_load.planning.forecasts import loads_by_hour, sums_by_hour
from bellwether_load.planning.hourly import HourlyPrices, needed_alone, prices_of
from bellwether_load.planning.hourly_descent import Float32s

PartRates = tuple[Int64s, Int64s, Int64s]
"""Of some of a piece's partitions: their rows in it, and bytes/s in and out, a column an hour."""


@dataclass(frozen=True)
class HourlyRows:
    """Some partitions with a choice, led as planned so far, and their ``loads``: a row each, a column an hour.

    ``fixed``: load of each broker in each hour without all partitions that have a choice. ``rest``: of those with one
    that are not in ``block``. ``lowest``: the lowest load in an hour of all that have one.
    """

    block: Block
    loads: Float32s
    fixed: Int64s
    rest: Int64s
    lowest: int

    @classmethod
    def joined(cls, ids: Int64s, shape: tuple[int, int], parts: Iterable[HourlyRows]) -> HourlyRows:
        """Of disjoint parts, by id; holds one of them at a time. ``ids``: of all together, ascending. ``shape``: how
        many brokers and hours there are."""
        loads, lowest = np.empty((len(ids), shape[1]), np.float32), 0
        fixed, rest = np.zeros((2, *shape), np.int64)
        blocks = []
        for part in parts:
            loads[np.searchsorted(ids, part.block.ids)] = part.loads
            blocks.append(part.block)
            fixed += part.fixed
            rest += part.rest
            lowest = min(lowest, part.lowest)
        return cls(joined(0, blocks), loads, fixed, rest, lowest)


@dataclass(frozen=True)
class Item:
    """The busiest broker-hour that a partition causes alone with its best leader, and its id."""

    load: Fraction
    id: int


@dataclass(frozen=True)
class HourlySums:
    """Load of each broker in each hour before and after the plan; ``cheapest``: if each partition with a choice has
    its cheapest leader at the prices, ``changed`` of them another one than before; ``fixed``: without these partitions.
    ``item``: the partition that needs most alone, if any needs more than the busiest broker's fixed load."""

    before: Int64s
    after: Int64s
    cheapest: Int64s
    changed: int
    fixed: Int64s
    item: Item | None

    @classmethod
    def total(cls, fixed: Int64s, parts: Iterable[HourlySums]) -> HourlySums:
        """Of disjoint parts; one at least."""
        before, after, cheapest = np.zeros((3, *fixed.shape), np.int64)
        return reduce(cls._plus, parts, cls(before, after, cheapest, 0, fixed, None))

    def _plus(self, more: HourlySums) -> HourlySums:
        items = [item for item in (self.item, more.item) if item is not None]
        return HourlySums(
            self.before + more.before,
            self.after + more.after,
            self.cheapest + more.cheapest,
            self.changed + more.changed,
            self.fixed,
            max(items, key=lambda item: (item.load, -item.id), default=None),
        )


def rows_of_part(
    found: Choices, ids: Int64s, leader: Int32s, picked: NDArray[np.bool_], costs: Costs, part: PartRates
) -> HourlyRows:
    """The loads of those ``picked``, of partitions with their ``ids``, led by ``leader``."""
    rows = part[0]
    load, base = loads_by_hour(found, costs, *part)
    free, stays = found.free[rows], found.fixed[rows]
    mine, others = free & picked[rows], free & ~picked[rows]
    fixed = base + sums_by_hour(found.leader[rows[stays]], load[stays], found.brokers)
    rest = sums_by_hour(leader[rows[others]], load[others], found.brokers)
    at = rows[mine]
    block = Block(0, found.brokers, ids[at], found.loads[at], found.eligible[at], found.home[at], leader[at])
    return HourlyRows(block, load[mine].astype(np.float32), fixed, rest, int(load[free].min(initial=0)))


def sums_of_part(
    found: Choices,
    ids: Int64s,
    leader: Int32s,
    costs: Costs,
    brokers: Brokers,
    prices: HourlyPrices,
    fixed: Int64s,
    part: PartRates,
) -> HourlySums:
    """What partitions with their ``ids``, led by ``leader`` after the plan, add up to. ``fixed``: load of each broker
    without those that have a choice."""
    rows, home = part[0], found.home
    load, base = loads_by_hour(found, costs, *part)
    free = np.flatnonzero(found.free[rows])
    mine, loads, cheapest = rows[free], load[free], found.leader[rows]
    eligible, homes = found.eligible[mine], home[mine]
    price = prices_of(eligible, found.brokers, loads, prices.weights) + prices.move * (eligible != homes[:, None])
    cheapest[free] = eligible[np.arange(len(free)), price.argmin(axis=1)]
    leaders = (found.leader[rows], leader[rows], cheapest)
    before, after, least = (base + sums_by_hour(of, load, found.brokers) for of in leaders)
    most = brokers.busiest(fixed.max(axis=1, initial=0))
    need, row = needed_alone(eligible, loads, fixed, brokers, most)
    item = None if row is None else Item(need, int(ids[mine[row]]))
    return HourlySums(before, after, least, int((cheapest[free] != homes).sum()), fixed, item)
