"""Balance with a limited number of changed leaders.

A linear program over candidates gives prices; all partitions then name the moves that gain most at these prices, until
none gains (column generation). The prices prove the bound with the limit; an integer program over the moves that are
nearly worth it makes the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Block, Int64s, joined
from bellwether_load.planning.bounds import Bound, better
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.exchanges import MOST_PARTITIONS
from bellwether_load.planning.pools import Pool
from bellwether_load.planning.prices import Prices, best_of, bound_of, total_of
from bellwether_load.planning.programs import CORE, Program
from bellwether_load.planning.rounds import Balance, balance

MOST_ROUNDS = 60
FRESH = 2_000
"""New candidates in a round, or as many as leaders may change if that is more."""
CLOSE = Fraction(1, 10_000)


def capped(
    pool: Pool, brokers: Brokers, most: int | None, forced: int, tell: Callable[[str], None] = lambda _: None
) -> Balance:
    """Balance with at most ``most`` changed leaders; the ``forced`` ones count, and always change.

    Few partitions that are not within the tolerance of the bound are left to the programs, too.
    """
    found = balance(pool, brokers, tell=tell)
    most = None if most is None else max(most, forced)
    few = pool.size() <= MOST_PARTITIONS
    over = (most is not None and pool.changed() > most) or (few and not brokers.kept(found.carried))
    if not over and (found.tight(brokers) or not few):
        return found
    state = pool.state()
    pool.reset()
    other = _programmed(pool, brokers, most, forced, found, tell)
    if over or brokers.busiest(other.carried) < brokers.busiest(found.carried):
        return other
    pool.restore(state)
    return replace(found, bound=other.bound)


def _programmed(
    pool: Pool, brokers: Brokers, most: int | None, forced: int, free: Balance, tell: Callable[[str], None]
) -> Balance:
    """Balance with at most ``most`` changed leaders, from those at the start; ``free``: without that limit."""
    size = pool.size()
    start = brokers.fixed + np.sum([o.led for o in pool.open(brokers, np.zeros(len(brokers), np.int64))], axis=0)
    bound, limit = free.bound, size if most is None else most - forced
    many = max(FRESH, min(limit, size))
    prices = Prices(np.where(brokers.open & (start > free.carried), 1, 0).astype(np.int64))
    candidates: list[Block] = []
    highest = float("inf")
    for _ in range(MOST_ROUNDS):
        answers = pool.priced(prices, _ids(candidates), many)
        led, changed = total_of(answers, brokers)
        bound = better([bound, Bound(bound_of(prices, brokers, led, changed, most), prices)])
        fresh = best_of(answers, many)
        if not fresh or highest <= float(bound.value * (1 + CLOSE)):
            break
        candidates = [joined(0, [*candidates, *fresh])]
        found = Program(candidates[0], brokers, start, limit).relaxed()
        highest, prices = found.highest, found.prices
        over = highest / float(bound.value) - 1 if bound.value else 0.0
        tell(f"{len(candidates[0]):,} candidates: the busiest broker is {over:.3%} over the bound")
    near = best_of(pool.priced(prices, _ids(candidates), CORE, near=True), CORE)
    if not candidates and not near:
        return Balance(start, bound, free.heaviest, free.rounds)
    program = Program(joined(0, [*candidates, *near]), brokers, start, limit)
    before = program.block
    leader = program.rounded(program.relaxed())
    if leader is None:
        return Balance(start, bound, free.heaviest, free.rounds)
    after = before.led_by(leader)
    moved = np.flatnonzero(after.leader != before.leader)
    pool.place(dict(zip(before.ids[moved].tolist(), after.leader[moved].tolist(), strict=True)))
    return Balance(start - before.led + after.led, bound, free.heaviest, free.rounds)


def _ids(blocks: list[Block]) -> Int64s:
    return np.concatenate([np.empty(0, np.int64), *(b.ids for b in blocks)])
