"""Fewer and lighter moves: the cheapest changes of leaders that keep every broker as low as the plan has it.

A changed leader costs its load, and a fixed part, since each costs clients an election and new metadata. A linear
program over candidates, prices, more candidates, whole partitions of those; then the rounds repair what does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bellwether_load.planning.blocks import Block, Int64s, joined
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.pools import Pool
from bellwether_load.planning.prices import Prices, best_of
from bellwether_load.planning.programs import CORE, Program
from bellwether_load.planning.relaxations import FRESH, MOST_ROUNDS, candidate_ids
from bellwether_load.planning.rounds import balance

SLACK = 0.02
"""What whole partitions may exceed the aim by until others make way, as a share of the mean load."""

EXCESS = 1e-4
"""What a broker may be above its limit by, as a share of it."""

LEADER = 5
"""Cost of a changed leader, in loads of the mean partition."""

MOST_MOVES = 20_000
"""More changed leaders than this are left as they are: the programs would take too long."""


@dataclass(frozen=True)
class Limits:
    """Load of each broker: what is aimed at for divisible partitions, and the most that whole ones may come to."""

    aim: Int64s
    most: Int64s


def fewer(pool: Pool, brokers: Brokers, limits: Limits, carried: Int64s, most: int | None, forced: int) -> Int64s:
    """The load of each broker after the leaders are changed again where that is cheaper."""
    changed = pool.changed()
    if not forced < changed <= MOST_MOVES + forced:
        return carried
    state, size = pool.state(), pool.size()
    limited = replace(brokers, ceiling=np.where(brokers.open, limits.aim, -1))
    moved = pool.moved()
    pool.reset()
    start = brokers.fixed + np.sum([o.led for o in pool.open(brokers, np.zeros(len(brokers), np.int64))], axis=0)
    each = LEADER * max(float((start - brokers.fixed).sum()) / size, 1.0)
    # The moves of the plan as it is cost 1.
    cost = each / (each * changed + moved), 1.0 / (each * changed + moved)
    allowed = (size if most is None else most) - forced
    prices = Prices(np.where(brokers.open & (start > limits.aim), 1, 0).astype(np.int64))
    candidates: list[Block] = []
    for _ in range(MOST_ROUNDS):
        fresh = best_of(pool.priced(prices, candidate_ids(candidates), FRESH), FRESH)
        if not fresh:
            break
        candidates = [joined(0, [*candidates, *fresh])]
        prices = Program(candidates[0], limited, start, allowed, cost, SLACK).relaxed().prices
    near = best_of(pool.priced(prices, candidate_ids(candidates), CORE, near=True), CORE)
    if candidates or near:
        program = Program(joined(0, [*candidates, *near]), limited, start, allowed, cost, SLACK)
        relaxed = program.relaxed()
        leader = program.rounded(relaxed)
        program.place(pool, program.nearest(relaxed) if leader is None else leader)
        # Whole partitions fit where the divided ones did, or nearly so.
        found = balance(pool, replace(brokers, ceiling=np.where(brokers.open, limits.most, -1))).carried
        now = pool.changed()
        cheaper = each * now + pool.moved() < each * changed + moved and (most is None or now <= most)
        if cheaper and bool((found <= limits.most * (1 + EXCESS))[brokers.open].all()):
            return found
    pool.restore(state)
    return carried
