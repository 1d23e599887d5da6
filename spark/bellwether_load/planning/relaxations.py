"""Linear programs by column generation: the best bound, its prices, and the partitions that are worth moving.

A linear program over candidates gives prices; all partitions then name the moves that gain most at these prices, until
none gains. The prices prove the bound, with a limit on changed leaders or without one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Block, Int64s, joined
from bellwether_load.planning.bounds import Bound, better
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.pools import Pool
from bellwether_load.planning.prices import Prices, best_of, bound_of, total_of
from bellwether_load.planning.programs import Program
from bellwether_load.planning.pruning import Pruning

MOST_ROUNDS = 60
FRESH = 2_000
"""New candidates in a round, or as many as leaders may change if that is more."""
CLOSE = Fraction(1, 10_000)
MOST_HALVINGS = 12
_LARGEST_PRICE = 2**62


@dataclass(frozen=True)
class Limit:
    """``most``: how many leaders may change, None for any number. ``chosen``: of them those that need not change.

    ``size``: how many partitions there are.
    """

    most: int | None
    chosen: int
    size: int


def relax(
    pool: Pool,
    brokers: Brokers,
    start: Int64s,
    limit: Limit,
    prices: Prices,
    bound: Bound,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Bound, Prices, list[Block]]:
    """The optimum of divisible partitions: the best bound of all rounds, the last prices, and the candidates.

    ``start``: the load of each broker with the pool's leaders. ``bound``: one that is known.
    """
    many = max(FRESH, min(limit.chosen, limit.size))
    candidates: list[Block] = []
    highest = float("inf")
    for _ in range(MOST_ROUNDS):
        answers = pool.priced(prices, candidate_ids(candidates), many)
        led, changed = total_of(answers, brokers)
        bound = better([bound, Bound(bound_of(prices, brokers, led, changed, limit.most), prices)])
        fresh = best_of(answers, many)
        if not fresh or highest <= float(bound.value * (1 + CLOSE)):
            break
        candidates = [joined(0, [*candidates, *fresh])]
        found = Program(candidates[0], brokers, start, limit.chosen).relaxed()
        highest, prices = found.highest, replace(found.prices, pruning=prices.pruning)
        over = max(0.0, highest / float(bound.value) - 1) if bound.value else 0.0
        tell(f"{len(candidates[0]):,} candidates: the busiest broker is {over:.3%} over the bound")
    return bound, prices, candidates


def candidate_ids(blocks: list[Block]) -> Int64s:
    """The ids of these blocks."""
    return np.concatenate([np.empty(0, np.int64), *(b.ids for b in blocks)])


def pruned_bound(
    whole: Block, brokers: Brokers, most: int | None, bound: Bound, floor: float, carried: Int64s
) -> Bound:
    """A better bound from pruned choices: the highest threshold that its own bound reaches, by halving.

    ``floor``: the best bound so far. ``carried``: load of each broker as planned, which the bound cannot exceed.
    """
    low, high = floor, float(brokers.busiest(carried))
    threshold = high
    for _ in range(MOST_HALVINGS):
        pruning = Pruning.of(brokers, threshold)
        pruned = pruning.of_block(whole)
        value = 0.0
        if (pruned.eligible != whole.eligible).any():
            found = _bound_of_pruned(pruned, brokers, most, replace(bound.prices, pruning=pruning))
            bound, value = better([bound, found]), float(found.value)
        low = max(low, value)
        if value < threshold:
            high = threshold
        if high <= low * float(1 + CLOSE):
            break
        threshold = (low + high) / 2
    return bound


def _bound_of_pruned(pruned: Block, brokers: Brokers, most: int | None, prices: Prices) -> Bound:
    forced = int((pruned.leader != pruned.home).sum())
    if most is not None and forced > most:
        # One leader too many must change: the cost of that one exceeds every load.
        prices = replace(prices, weights=brokers.free.astype(np.int64), move=_LARGEST_PRICE)
    pool, start = Pool([pruned]), brokers.fixed + pruned.led
    led, changed = total_of(pool.priced(prices, np.empty(0, np.int64), 0), brokers)
    bound = Bound(bound_of(prices, brokers, led, changed, most), prices)
    if prices.move == _LARGEST_PRICE:
        return bound
    size = len(pruned)
    return relax(pool, brokers, start, Limit(most, size if most is None else most - forced, size), prices, bound)[0]
