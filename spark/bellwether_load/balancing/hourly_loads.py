"""Loads of partitions and brokers by hour of the week: each call reads all partitions, some thousands at a time.

In whole numbers, by the rules of the files' documentation, as the other loads of a plan are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellwether.core.settings.objective import WHOLE, Objective
from bellwether_load.balancing.blocks import Block, Brokers, Int32s, Int64s, column_sums
from bellwether_load.balancing.descent import Float32s
from bellwether_load.balancing.hourly_prices import HourlyPrices, Item, needed_alone, prices_of
from bellwether_load.plan.forecast import BrokerHour, BusiestRequests, Forecast

Part = tuple[Int64s, Int64s, Int64s]
"""Some partitions: rows of the problem; what leading each costs more than following, a column an hour; what following
them costs each broker, likewise."""


@dataclass(frozen=True)
class HeldLoads:
    """``loads`` of a block's partitions, a column an hour; ``fixed``: of each broker without them."""

    loads: Float32s
    fixed: Int64s


@dataclass(frozen=True)
class HourlySums:
    """Load of each broker in each hour if each partition with a choice has its ``cheapest`` leader at the prices,
    ``changed`` of them another one than before.

    ``item``: the partition that needs most alone, if any needs more than the busiest broker's fixed load.
    """

    cheapest: Int64s
    changed: int
    item: Item | None


@dataclass(frozen=True)
class HourlyLoads:
    """``hours``: of the week, a column each. ``leaders``: of all partitions before planning; one past the last broker
    where there is none. ``parts``: reads all partitions. ``resources``: 2 where requests have a column an hour, too."""

    hours: tuple[int, ...]
    leaders: Int32s
    parts: Callable[[], Iterator[Part]]
    resources: int = 1

    @property
    def columns(self) -> int:
        """How many a load has."""
        return len(self.hours) * self.resources

    def held(self, block: Block) -> HeldLoads:
        """The loads of the block's partitions, and of brokers without them."""
        loads = np.zeros((len(block), self.columns), np.float32)
        fixed, places = np.zeros((block.brokers, self.columns), np.int64), self._places(block)
        for rows, load, base in self.parts():
            at = places[rows]
            mine = at >= 0
            loads[at[mine]] = load[mine]
            fixed += base + column_sums(self.leaders[rows[~mine]], load[~mine], block.brokers)
        return HeldLoads(loads, fixed)

    def sums(self, block: Block, brokers: Brokers, prices: HourlyPrices, fixed: Int64s) -> HourlySums:
        """What all partitions add up to at these prices. ``fixed``: of each broker without those of the block."""
        cheapest, places, changed, items = np.zeros_like(fixed), self._places(block), 0, list[Item]()
        most, _, _ = brokers.busiest_column(fixed)
        for rows, load, base in self.parts():
            free = np.flatnonzero(places[rows] >= 0)
            some, least = block.take(places[rows[free]]), self.leaders[rows]
            cost = prices_of(some.eligible, block.brokers, load[free], prices.weights)
            cost += prices.move * (some.eligible != some.home[:, None])
            least[free] = some.eligible[np.arange(len(free)), cost.argmin(axis=1)]
            changed += int((least[free] != some.home).sum())
            cheapest += base + column_sums(least, load, block.brokers)
            need, row = needed_alone(some.eligible, load[free], fixed, brokers, most)
            items += [] if row is None else [Item(need, int(some.ids[row]))]
        return HourlySums(cheapest, changed, max(items, key=lambda item: (item.load, -item.id), default=None))

    def by_broker(self, brokers: int, *leaders: Int32s) -> list[Int64s]:
        """Load of each broker in each hour, for each of these leaders of all partitions."""
        totals = [np.zeros((brokers, self.columns), np.int64) for _ in leaders]
        for rows, load, base in self.parts():
            for at, of in enumerate(leaders):
                totals[at] += base + column_sums(of[rows], load, brokers)
        return totals

    def _places(self, block: Block) -> Int64s:
        """The row in the block of each partition; -1 for those that are not there."""
        places = np.full(len(self.leaders), -1, np.int64)
        places[block.ids] = np.arange(len(block))
        return places


def loads_by_hour(
    replicas: Int32s, brokers: int, costs: Objective, rows: Int64s, produce: Int64s, consume: Int64s,
    requests: Int64s | None = None,
) -> Part:  # fmt: skip
    """Some ``rows`` of partitions from their bytes/s in and out, a column an hour; and from hundredths of a request/s,
    if given. ``replicas``: of all partitions, so many ``brokers``."""
    replicas = replicas[rows]
    rf = (replicas < brokers).sum(axis=1)
    load = WHOLE * ((rf - 1)[:, None] * produce + costs.consumption * consume)
    base = column_sums(replicas, WHOLE * produce, brokers)
    if requests is None:
        return rows, load, base
    return rows, np.hstack([load, costs.request_bytes * requests]), np.hstack([base, np.zeros_like(base)])


def forecast(brokers: Brokers, hours: Sequence[int], before: Int64s, after: Int64s, request_bytes: int = 0) -> Forecast:
    """The busiest open broker in its busiest hour, before and after. ``hours``: of the week, a column each, and another
    one for requests, of which each counts as ``request_bytes``, if that is not 0."""
    count = len(hours)

    def busiest(of: Brokers, carried: Int64s, unit: int = 1) -> BrokerHour:
        load, b, hour = of.busiest_column(carried)
        return BrokerHour(int(of.ids[b]), int(hours[hour]), float(load / unit))

    by_bytes, requests = replace(brokers, requests=None), None
    if brokers.requests is not None:
        of = replace(by_bytes, capacity=brokers.requests)
        first, then = (busiest(of, carried[:, count:], request_bytes) for carried in (before, after))
        requests = BusiestRequests(first, then)
    first, then = (busiest(by_bytes, carried[:, :count]) for carried in (before, after))
    return Forecast(count, first, then, requests)
