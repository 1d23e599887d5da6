"""Balance with a limited number of changed leaders.

An integer program over the moves that are worth it at the prices of a linear program, or nearly so, makes the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import joined
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.exchanges import exchange
from bellwether_load.planning.fewest_changes import MOST_PARTITIONS, reduce_changes
from bellwether_load.planning.pools import Pool, carried_by, place_changed
from bellwether_load.planning.prices import Prices, best_of
from bellwether_load.planning.programs import CORE, Program
from bellwether_load.planning.relaxations import Limit, candidate_ids, pruned_bound, relax
from bellwether_load.planning.rounds import Alternative, Balance, balance


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
    # Those of the first level are enough: the cap is one for all.
    others = _alternatives(pool, brokers, most, forced, found) if most and over and not brokers.settled.any() else ()
    pool.reset()
    whole = pool.gathered() if few else None
    other = _programmed(pool, brokers, most, forced, found, tell)
    if over:
        found = replace(other, alternatives=better(others, brokers.busiest(other.carried)))
    elif brokers.busiest(other.carried) < brokers.busiest(found.carried):
        found = other
    else:
        pool.restore(state)
        found = replace(found, bound=other.bound)
    if whole is None or found.tight(brokers):
        return found
    return replace(found, bound=pruned_bound(whole, brokers, most, found.bound, found.floor, found.carried))


def _alternatives(pool: Pool, brokers: Brokers, most: int, forced: int, found: Balance) -> tuple[Alternative, ...]:
    """Plans with higher caps, the last without one: ``found``, with no more changed leaders than it needs."""
    top = brokers.busiest(found.carried)
    limits = np.array([int(top * int(c)) for c in brokers.capacity], np.int64)
    reduce_changes(pool, brokers, limits, found.carried)
    free = Alternative(None, top, pool.changed(), found.floor, found.bound.prices)
    others = []
    for cap in (2 * most, 4 * most) if pool.size() <= MOST_PARTITIONS else ():
        if cap < free.changed:
            pool.reset()
            other = _programmed(pool, brokers, cap, forced, found, lambda _: None)
            load = brokers.busiest(other.carried)
            others.append(Alternative(cap, load, pool.changed(), other.floor, other.bound.prices))
    return (*others, free)


def better(others: Sequence[Alternative], load: Fraction) -> tuple[Alternative, ...]:
    """Of these plans, in order, those whose busiest broker is less busy than ``load`` and than in the one before."""
    found: list[Alternative] = []
    for other in others:
        if other.load < (found[-1].load if found else load):
            found.append(other)
    return tuple(found)


def _programmed(
    pool: Pool, brokers: Brokers, most: int | None, forced: int, free: Balance, tell: Callable[[str], None]
) -> Balance:
    """Balance with at most ``most`` changed leaders, from those at the start; ``free``: without that limit."""
    size = pool.size()
    start = carried_by(pool, brokers)
    limit = size if most is None else most - forced
    prices = Prices(np.where(brokers.open & (start > free.carried), 1, 0).astype(np.int64))
    bound, prices, candidates = relax(pool, brokers, start, Limit(most, limit, size), prices, free.bound, tell)
    near = best_of(pool.priced(prices, candidate_ids(candidates), CORE, near=True), CORE)
    if not candidates and not near:
        return Balance(start, bound, free.heaviest, free.rounds)
    program = Program(joined(0, [*candidates, *near]), brokers, start, limit)
    before = program.block
    leader = program.rounded(program.relaxed())
    if leader is None:
        return Balance(start, bound, free.heaviest, free.rounds)
    after = before.led_by(leader)
    place_changed(pool, before, after)
    carried = exchange(pool, brokers, start - before.led + after.led, Fraction(bound.value), most, after)
    return Balance(carried, bound, free.heaviest, free.rounds)
