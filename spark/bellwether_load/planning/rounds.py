"""Balancing rounds: bound the optimum, request flows towards it, settle, repeat.

Work on partitions happens in the pool; the arrays here have one entry per broker or pair. The same input gives the same
plan on any number of executors: all sums are of integers, all pseudo-random choices are hashes of the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Floats, Int64s, sums
from bellwether_load.planning.bounds import Bound, best_prefix, better, busiest_first
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.exchanges import MOST_PARTITIONS, exchange
from bellwether_load.planning.fits import choose
from bellwether_load.planning.flows import route
from bellwether_load.planning.offers import Pairs, Terms
from bellwether_load.planning.pools import Offer, Pool
from bellwether_load.planning.prices import Prices

TOLERANCE = Fraction(1, 1000)
MOST_ROUNDS = 40
# Rounds in which load goes only from brokers with excess to brokers with room: the cheapest moves there are.
DIRECT_ROUNDS = 1
# From this round on single partitions are fitted, too.
FITTING_ROUND = 2
# Towards the end the whole tolerance is used; before, room is kept for what flows overshoot by.
CLOSE_ROUND = 6
# So many rounds must leave less than this of the excess, or they are the last ones.
PATIENCE, PROGRESS = 4, 0.9
MOST_PAIRS = 1_000_000
"""Pairs of brokers that all blocks together report in a round: some 200 MB where they are routed."""


@dataclass(frozen=True)
class Alternative:
    """A plan with another cap on moves (None: without one), for comparison: its busiest broker, how many leaders it
    changes, and the bound of all plans with that cap, with its prices."""

    most: int | None
    load: Fraction
    changed: int
    bound: float
    prices: Prices


@dataclass(frozen=True)
class Balance:
    """Result: load of each broker, the bound with the brokers that prove it, and the number of rounds.

    ``alternatives``: better plans with higher caps on moves, in order.
    """

    carried: Int64s
    bound: Bound
    heaviest: float
    rounds: int
    alternatives: tuple[Alternative, ...] = ()

    def tight(self, brokers: Brokers) -> bool:
        """Whether the busiest broker is within the tolerance of the bound."""
        return brokers.busiest(self.carried) <= Fraction(self.floor) * (1 + TOLERANCE)

    @property
    def floor(self) -> float:
        """The lower bound on the busiest broker: by a set of brokers, or by the heaviest partition alone."""
        return max(float(self.bound.value), self.heaviest)


def balance(
    pool: Pool,
    brokers: Brokers,
    *,
    target: Fraction = Fraction(0),
    tell: Callable[[str], None] = lambda _: None,
) -> Balance:
    """Move leaders in the pool until the busiest broker is within the tolerance of its lower bound, or of ``target``.

    A higher ``target`` than the bound is reached with fewer moves.
    """
    carried, bound, heaviest, blocks = _open(pool, brokers)
    excesses = list[int]()
    for number in range(MOST_ROUNDS):
        goal = max(bound.value, target, Fraction(heaviest))
        busiest = brokers.busiest(carried)
        tell(f"round {number}: the busiest broker is {_over(busiest, goal)} over the goal")
        if busiest <= goal * (1 + TOLERANCE) and brokers.kept(carried):
            break
        excesses.append(int(_excess(brokers.room(carried, goal)).sum()))
        if number >= PATIENCE and excesses[-1] > PROGRESS * min(excesses[:-PATIENCE]):
            break
        near = goal * (1 + TOLERANCE * (Fraction(1, 2) if number < CLOSE_ROUND else Fraction(9, 10)))
        room = brokers.room(carried, near)
        places = busiest_first(brokers, carried)
        pull, need = _pull(room, near, brokers), _need(room, brokers)
        terms = Terms(number, pull, _heaviest(room, number), need, number < DIRECT_ROUNDS, MOST_PAIRS // max(1, blocks))
        offers = pool.offers(terms, places)
        bound = better([bound, best_prefix(brokers, places, _total([o.inside for o in offers], brokers))])
        asked = route(_merged(offers), _excess(room), np.maximum(room, 0))
        carried = brokers.fixed + _total(pool.settle(terms, _shares(offers, asked)), brokers)
        if number >= FITTING_ROUND:
            carried = _fit(pool, brokers, carried, near)
    goal = max(bound.value, target, Fraction(heaviest))
    carried = _exchange(pool, brokers, carried, goal * (1 + TOLERANCE))
    return Balance(carried, bound, heaviest, number)


def _open(pool: Pool, brokers: Brokers) -> tuple[Int64s, Bound, float, int]:
    """Loads before the first round, the better bound of two broker orders, by load and by fixed load, that of the
    heaviest partition, and the number of blocks."""
    by_fixed = busiest_first(brokers, brokers.fixed)
    answers = pool.open(brokers, by_fixed)
    carried = brokers.fixed + _total([s.led for s in answers], brokers)
    bound = best_prefix(brokers, by_fixed, _total([s.inside for s in answers], brokers))
    by_load = busiest_first(brokers, carried)
    again = pool.open(brokers, by_load)
    bound = better([bound, best_prefix(brokers, by_load, _total([s.inside for s in again], brokers))])
    held = np.where(brokers.free, brokers.fixed / brokers.capacity, 0.0)
    return carried, bound, max([s.heaviest for s in answers] + held.tolist(), default=0.0), len(answers)


def _fit(pool: Pool, brokers: Brokers, carried: Int64s, near: Fraction) -> Int64s:
    room = brokers.room(carried, near)
    excess, free = _excess(room), np.where(brokers.open, np.maximum(room, 0), -1)
    if not excess.any():
        return carried
    chosen = list(choose(pool.fitting(excess, free), excess, free))
    if not chosen:
        return carried
    pool.place({fit.id: fit.to for fit in chosen})
    carried = carried.copy()
    for fit in chosen:
        carried[fit.leader] -= fit.load
        carried[fit.to] += fit.load
    return carried


def _exchange(pool: Pool, brokers: Brokers, carried: Int64s, goal: Fraction) -> Int64s:
    """Exchange step for few and heavy partitions."""
    if brokers.busiest(carried) <= goal or pool.size() > MOST_PARTITIONS:
        return carried
    before = pool.gathered()
    after = exchange(before, brokers, carried, goal)
    changed = np.flatnonzero(after.leader != before.leader)
    pool.place({int(before.ids[p]): int(after.leader[p]) for p in changed})
    return carried - before.led + after.led


def _total(parts: Sequence[Int64s], brokers: Brokers) -> Int64s:
    return np.sum(parts, axis=0) if parts else np.zeros(len(brokers), np.int64)


def _excess(room: Int64s) -> Int64s:
    return np.maximum(-room, 0)


def _pull(room: Int64s, near: Fraction, brokers: Brokers) -> Int64s:
    """Weights for choosing targets: brokers with room, by its size; others slightly, to allow load to pass through."""
    hardly = np.maximum(1, brokers.capacity * int(near) // 1_000_000)
    return np.where(brokers.open, np.maximum(room, 0) + hardly, 0)


def _need(room: Int64s, brokers: Brokers) -> Floats:
    """Room as a share of the largest, each relative to capacity; below 0 excess, likewise."""
    relative = room / brokers.capacity
    largest = np.where(relative < 0, -relative.min(initial=-1e-300), relative.max(initial=1e-300))
    need: Floats = relative / largest
    return need


def _heaviest(room: Int64s, number: int) -> int:
    """Maximum load of an offered partition: small flows exclude heavy partitions."""
    most = int(_excess(room).max())
    if number < 2 or number % 3 == 0:
        return 2**62
    return max(1, most if number % 3 == 1 else most * 3 // 10)


def _merged(offers: Sequence[Offer]) -> Pairs:
    keys = np.concatenate([o.pairs.keys for o in offers])
    loads = np.concatenate([o.pairs.loads for o in offers])
    found, where = np.unique(keys, return_inverse=True)
    return Pairs(found, sums(where, loads, len(found)))


def _shares(offers: Sequence[Offer], asked: Pairs) -> dict[int, Pairs]:
    """Request to each block: a pair's load, from one block after the other, up to its offer."""
    left = asked.loads.copy()
    shares = {}
    for offer in offers:
        at = np.minimum(np.searchsorted(asked.keys, offer.pairs.keys), max(len(asked.keys) - 1, 0))
        if not len(asked.keys) or not len(offer.pairs.keys):
            continue
        take = np.where(asked.keys[at] == offer.pairs.keys, np.minimum(offer.pairs.loads, left[at]), 0)
        wanted = take > 0
        if wanted.any():
            left[at[wanted]] -= take[wanted]
            shares[offer.block] = Pairs(offer.pairs.keys[wanted], take[wanted])
    return shares


def _over(busiest: Fraction, goal: Fraction) -> str:
    return f"{float(busiest / goal - 1):.3%}" if goal else "not at all"
