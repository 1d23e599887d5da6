"""Lower bounds on the load of the busiest broker.

Loads that only the brokers of a set may lead stay in that set, whatever the plan. So the set's fixed load and these,
over the set's capacity, bound the busiest broker from below; by linear-programming duality the best such set gives the
optimum of the divisible problem, and its dual weights are 1 on the set and 0 elsewhere. Candidates are the sets of the
busiest k brokers, for all k at once: a partition stays inside as soon as the least busy of its eligible brokers is in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Block, Int64s, sums
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.prices import Prices


@dataclass(frozen=True)
class Bound:
    """A lower bound on the busiest broker's relative load, and the prices that prove it."""

    value: Fraction
    prices: Prices

    @property
    def by_weights(self) -> bool:
        """Whether the weights decide it, not the threshold of pruning."""
        return self.prices.pruning is None or self.value < Fraction(self.prices.pruning.threshold)


def contained(block: Block, place: Int64s) -> Int64s:
    """Load by the place of the least busy eligible broker; ``place`` ranks the brokers, the busiest is 0."""
    ranks, last = np.append(place, -1), np.full(len(block), -1)
    for column in block.eligible.T:
        last = np.maximum(last, ranks[column])
    return sums(last, block.loads, block.brokers)


def busiest_first(brokers: Brokers, carried: Int64s) -> Int64s:
    """Rank of every broker: settled ones, open ones by relative load, the busiest first; closed ones last."""
    busy = -(carried / brokers.capacity)
    order = np.lexsort((np.arange(len(carried)), busy, ~brokers.settled, ~brokers.open))
    place = np.empty(len(carried), np.int64)
    place[order] = np.arange(len(carried))
    return place


def best_prefix(brokers: Brokers, place: Int64s, inside: Int64s) -> Bound:
    """The best bound among the sets of the first k brokers. ``inside`` is what :func:`contained` adds up to.

    Settled brokers are in every set, and carry at most their ceiling of it.
    """
    order = np.argsort(place)[: int(brokers.open.sum())]
    settled = int((brokers.settled & brokers.open).sum())
    held = (brokers.fixed[order] + inside[: len(order)] - np.maximum(brokers.ceiling[order], 0)).cumsum()
    capacity = np.where(brokers.settled, 0, brokers.capacity)[order].cumsum()
    if settled == len(order):
        return Bound(Fraction(0), Prices(np.zeros(len(brokers), np.int64)))
    k = settled + int((held[settled:] / capacity[settled:]).argmax())
    weights = np.zeros(len(brokers), np.int64)
    weights[order[: k + 1]] = 1
    return Bound(Fraction(int(held[k]), int(capacity[k])), Prices(weights))


def heaviest_item(block: Block, brokers: Brokers) -> float:
    """Heaviest partition that no settled broker may lead: the least relative load of a broker that leads it."""
    if not len(block):
        return 0.0
    fixed, capacity = np.append(brokers.fixed, 0), np.append(brokers.capacity, 1)
    alone = (fixed[block.eligible] + block.loads[:, None]) / capacity[block.eligible]
    alone[np.append(brokers.settled, False)[block.eligible]] = 0
    return float(np.where(block.eligible < block.brokers, alone, np.inf).min(axis=1).max())


def better(bounds: Iterable[Bound]) -> Bound:
    """The highest of some bounds; the first of equal ones."""
    return max(bounds, key=lambda b: b.value)
