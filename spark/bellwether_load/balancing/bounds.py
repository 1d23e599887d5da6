"""Lower bounds on the load of the busiest broker: dual prices, and what they prove by weak duality.

If every partition takes its cheapest leader at some prices of brokers and of a changed leader, what is then paid bounds
every plan from below. Prices of 1 on a set of brokers and 0 elsewhere say: loads that only the brokers of the set may
lead stay in it, whatever the plan; so these, with the set's fixed load, over the set's capacity, bound its busiest
broker. The best set is a minimum cut, and gives the optimum of divisible partitions. Candidates are the sets of the
busiest k brokers, for all k at once: a partition stays inside as soon as the least busy of its eligible brokers is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Block, Brokers, Floats, Int64s, sums


@dataclass(frozen=True)
class Prices:
    """Whole numbers, 0 or more: ``weights`` by broker (0 for closed ones), for a unit of load; ``move``: for a changed
    leader."""

    weights: Int64s
    move: int = 0


@dataclass(frozen=True)
class Priced:
    """Every partition with its cheapest leader: the load that each broker would lead, how many leaders would change,
    and what each partition would gain by its best other leader."""

    led: Int64s
    changed: int
    gains: Floats

    @classmethod
    def at(cls, block: Block, prices: Prices) -> Priced:
        """A block at these prices."""
        if not len(block):
            return cls(np.zeros(block.brokers, np.int64), 0, np.empty(0))
        costs = costs_of(block, prices)
        chosen = block.eligible[np.arange(len(block)), costs.argmin(axis=1)]
        here = block.eligible == block.leader[:, None]
        gains = np.where(here, costs, np.inf).min(axis=1) - np.where(here, np.inf, costs).min(axis=1)
        return cls(sums(chosen, block.loads, block.brokers), int((chosen != block.home).sum()), gains)

    def best(self, most: int, known: Int64s, least: float) -> Int64s:
        """Rows of the partitions that gain most, up to so many, more than ``least`` each; without those ``known``."""
        able = self.gains > least
        able[known] = False
        rows = np.flatnonzero(able)
        return np.sort(rows[np.argsort(-self.gains[rows], kind="stable")[:most]])


def costs_of(block: Block, prices: Prices) -> Floats:
    """What each partition pays with each eligible leader, in the shape of ``Block.eligible``; infinite for padding."""
    weights = np.append(prices.weights, 0).astype(np.float64)
    costs: Floats = weights[block.eligible] * block.loads[:, None]
    costs += prices.move * (block.eligible != block.home[:, None])
    costs[block.eligible == block.brokers] = np.inf
    return costs


@dataclass(frozen=True)
class Bound:
    """A lower bound on the busiest broker's relative load, and the prices that prove it."""

    value: Fraction
    prices: Prices


def highest(bounds: Iterable[Bound]) -> Bound:
    """The highest of some bounds; the first of equal ones."""
    return max(bounds, key=lambda b: b.value)


def bound_of(
    prices: Prices,
    brokers: Brokers,
    priced: Priced,
    most: int | None,
    limits: Mapping[int, Fraction] | None = None,
) -> Bound:
    """The bound of these prices, from what all partitions come to at them. ``most``: how many leaders may change.

    It is one on the busiest broker that is not settled, as long as settled ones keep to their ceilings, or to
    ``limits``: relative loads by index.
    """
    weights = prices.weights.tolist()
    paid = zip(weights, brokers.fixed, priced.led, strict=True)
    total: Fraction | int = sum(w * (int(f) + int(x)) for w, f, x in paid if w)
    if most is not None:
        total += prices.move * (priced.changed - most)
    if limits is None:
        total -= sum(w * max(int(c), 0) for w, c in zip(weights, brokers.ceiling, strict=True) if w)
    else:
        total -= sum((weights[b] * int(brokers.capacity[b]) * limit for b, limit in limits.items()), Fraction(0))
    free = brokers.free.tolist()
    capacity = sum(w * int(c) for w, c, ours in zip(weights, brokers.capacity, free, strict=True) if w and ours)
    value = Fraction(total) / capacity if capacity else Fraction(0)
    return Bound(value, prices)


def prefix_bound(block: Block, brokers: Brokers, carried: Int64s) -> Bound:
    """The best bound among the sets of the first k brokers, the busiest first by what they ``carried``.

    Settled brokers are in every set, and carry at most their ceiling of it.
    """
    order = np.lexsort((np.arange(len(carried)), -(carried / brokers.capacity), ~brokers.settled, ~brokers.open))
    place = np.empty(len(carried), np.int64)
    place[order] = np.arange(len(carried))
    inside, order = _contained(block, place), order[: int(brokers.open.sum())]
    settled = int((brokers.settled & brokers.open).sum())
    weights = np.zeros(len(brokers), np.int64)
    if settled == len(order):
        return Bound(Fraction(0), Prices(weights))
    held = (brokers.fixed[order] + inside[: len(order)] - np.maximum(brokers.ceiling[order], 0)).cumsum()
    capacity = np.where(brokers.settled, 0, brokers.capacity)[order].cumsum()
    k = settled + int((held[settled:] / capacity[settled:]).argmax())
    weights[order[: k + 1]] = 1
    return Bound(Fraction(int(held[k]), int(capacity[k])), Prices(weights))


def heaviest_item(block: Block, brokers: Brokers) -> float:
    """What a broker carries in any case, or with a partition that no settled broker may lead, on the one where it is
    least; relative to its capacity. The highest of these bounds every plan."""
    fixed, capacity = np.append(brokers.fixed, 0), np.append(brokers.capacity, 1)
    alone = (fixed[block.eligible] + block.loads[:, None]) / capacity[block.eligible]
    alone[np.append(brokers.settled, False)[block.eligible]] = 0
    items = np.where(block.eligible < block.brokers, alone, np.inf).min(axis=1)
    return float(
        max(items.max(initial=0), np.where(brokers.free, brokers.fixed / brokers.capacity, 0.0).max(initial=0))
    )


def _contained(block: Block, place: Int64s) -> Int64s:
    """Load by the place of the least busy eligible broker; ``place`` ranks the brokers, the busiest is 0."""
    ranks, last = np.append(place, -1), np.full(len(block), -1)
    for column in block.eligible.T:
        last = np.maximum(last, ranks[column])
    return sums(last, block.loads, block.brokers)
