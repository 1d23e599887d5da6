"""Balancing rounds: bound the optimum, request flows towards it, settle, repeat.

Work on partitions happens in the pool; the arrays here have one entry per broker or pair. The same input gives the same
plan on any number of executors: all sums are of integers, all pseudo-random choices are hashes of the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Floats, Int64s, sums
from bellwether_load.planning.bounds import Bound, best_prefix, better, busiest_first
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.exchanges import exchange
from bellwether_load.planning.fits import choose, overfilling, place
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
MOST_OVERFILLED = 100
"""Brokers that hand on a partition which fits nowhere, at once."""
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

    def goal(self, target: Fraction) -> Fraction:
        """What the busiest broker is to come down to: the lower bound, or a target above it."""
        return max(self.bound.value, target, Fraction(self.heaviest))

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
    most = MOST_PAIRS // max(1, blocks)
    now = _rounds(pool, brokers, Balance(carried, bound, heaviest, 0), target, most, tell)
    while now.rounds < MOST_ROUNDS - 1:
        state = pool.state()
        started = _overfilled(pool, brokers, now, target)
        if started is None:
            break
        after = _rounds(pool, brokers, started, target, most, tell)
        now = replace(now, bound=after.bound, rounds=after.rounds)
        lower = brokers.busiest(after.carried) < brokers.busiest(now.carried)
        if not lower or not brokers.kept(after.carried):
            pool.restore(state)
            break
        now = after
    return replace(now, carried=exchange(pool, brokers, now.carried, now.goal(target) * (1 + TOLERANCE)))


def _rounds(
    pool: Pool, brokers: Brokers, now: Balance, target: Fraction, most: int, tell: Callable[[str], None]
) -> Balance:
    """As many rounds as help. ``most``: how many pairs of brokers a block reports."""
    carried, bound = now.carried, now.bound
    excesses = list[int]()
    for number in range(now.rounds, MOST_ROUNDS):
        goal = replace(now, bound=bound).goal(target)
        busiest = brokers.busiest(carried)
        tell(f"round {number}: the busiest broker is {_over(busiest, goal)} over the goal")
        if busiest <= goal * (1 + TOLERANCE) and brokers.kept(carried):
            break
        excesses.append(int(_excess(brokers.room(carried, goal)).sum()))
        if len(excesses) > PATIENCE and excesses[-1] > PROGRESS * min(excesses[:-PATIENCE]):
            break
        near = goal * (1 + TOLERANCE * (Fraction(1, 2) if number < CLOSE_ROUND else Fraction(9, 10)))
        room = brokers.room(carried, near)
        places = busiest_first(brokers, carried)
        pull, need = _pull(room, near, brokers), _need(room, brokers)
        terms = Terms(number, pull, _heaviest(room, number), need, number < DIRECT_ROUNDS, most)
        offers = pool.offers(terms, places)
        bound = better([bound, best_prefix(brokers, places, _total([o.inside for o in offers], brokers))])
        asked = route(_merged(offers), _excess(room), np.maximum(room, 0))
        carried = brokers.fixed + _total(pool.settle(terms, _shares(offers, asked)), brokers)
        if number >= FITTING_ROUND:
            carried = _fit(pool, brokers, carried, near)
    return replace(now, carried=carried, bound=bound, rounds=number)


def _overfilled(pool: Pool, brokers: Brokers, now: Balance, target: Fraction) -> Balance | None:
    """After each of the busiest brokers has handed on a partition that fits nowhere; None if none has one."""
    goal = now.goal(target) * (1 + TOLERANCE)
    room = brokers.room(now.carried, goal)
    busy = np.flatnonzero(brokers.free & (room < 0))
    busy = busy[np.argsort(room[busy] / brokers.capacity[busy], kind="stable")[:MOST_OVERFILLED]]
    if not len(busy):
        return None
    chosen = np.zeros(len(brokers), np.bool_)
    chosen[busy] = True
    theirs = pool.gathered(chosen)
    wanted = overfilling(theirs, busy, room, brokers.room(brokers.fixed, goal))
    pool.place(wanted)
    return replace(now, carried=now.carried - theirs.led + place(theirs, wanted).led) if wanted else None


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
