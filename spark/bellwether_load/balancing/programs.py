"""The linear and the integer program over some partitions: the lowest busiest broker with so many changed leaders.

All other partitions stay where they are. HiGHS solves both; the same input gives the same answer. Which partitions are
worth moving, column generation finds: the linear program over candidates gives prices; all partitions then name the
moves that gain most at these prices, until none gains. The prices prove the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array

from bellwether_load.balancing.blocks import Block, Bools, Brokers, Floats, Int32s, Int64s, Tell
from bellwether_load.balancing.bounds import Bound, Priced, Prices, bound_of, costs_of, highest

CORE = 1_500
"""Columns of which the integer program decides."""
NODES, WORK = 20, 30_000
"""Nodes that it may search, and columns in all of them if that is more: a limit in seconds would not give the same plan
twice."""
GAP = 3e-3
"""Relative distance to the optimum at which it stops."""

MOST_ROUNDS = 60
FRESH = 2_000
"""New candidates in a round, or as many as leaders may change if that is more."""
CLOSE = 1e-4

_WEIGHT, _MOVE = 2.0**30, 2.0**62
_DIVIDED = 1e-7
_PENALTY = 1e3


@dataclass(frozen=True)
class Relaxed:
    """The optimum of a linear program: the busiest broker's relative load, its prices, and each column's share."""

    highest: float
    prices: Prices
    shares: Floats


class Program:
    """Minimize the relative load of the busiest broker that is not settled, by moves of a block's partitions: each
    column is one, of row ``partition`` of the block to broker ``to``.

    ``carried``: load of all brokers before these moves. ``most``: how many partitions may leave their home.
    """

    def __init__(self, block: Block, brokers: Brokers, carried: Int64s, most: int) -> None:
        other = (block.eligible < block.brokers) & (block.eligible != block.leader[:, None])
        partition, slot = np.nonzero(other)
        self.block = block
        self.partition, self.to = partition, block.eligible[partition, slot]
        self._open = np.flatnonzero(brokers.open)
        self._load = max(float(carried[self._open].mean()), 1.0)
        self._capacity = float(brokers.capacity[self._open].mean())
        self._matrix, self._most = self._rows(brokers, carried, most)
        self._objective = np.append(np.zeros(len(partition)), [1.0, _PENALTY])

    def __len__(self) -> int:
        return len(self.to)

    def relaxed(self) -> Relaxed:
        """The optimum of divisible partitions."""
        count = len(self)
        # The stubs know neither a sparse matrix nor an array of limits.
        matrix: Any = self._matrix
        limits: Any = np.stack([np.zeros(count + 2), np.append(np.ones(count), [np.inf, np.inf])], axis=1)
        found = linprog(self._objective, A_ub=matrix, b_ub=self._most, bounds=limits, method="highs-ds")
        if found.x is None:
            raise ArithmeticError(f"the linear program of {count:,} moves has no solution: {found.message}")
        highest = float(found.x[-2]) * self._load / self._capacity
        return Relaxed(highest, self._prices(-found.ineqlin.marginals), found.x[:-2])

    def rounded(self, relaxed: Relaxed) -> list[Int32s]:
        """Leaders of all partitions, in up to two ways: divided ones stay; or the integer program decides about these,
        and where prices leave little doubt, if it finds an answer in time."""
        count = len(self)
        fixed = np.rint(relaxed.shares)
        doubtful = self._doubtful(relaxed)[self.partition]
        lower, upper = (np.where(doubtful, limit, fixed) for limit in (0.0, 1.0))
        found = milp(
            self._objective,
            constraints=LinearConstraint(self._matrix, -np.inf, self._most),
            bounds=Bounds(np.append(lower, [0, 0]), np.append(upper, [np.inf, 0])),
            integrality=np.append(np.ones(count), [0, 0]),
            options={"node_limit": max(NODES, WORK // max(int(doubtful.sum()), 1)), "mip_rel_gap": GAP},
        )
        return [self.above(relaxed.shares, 1 - _DIVIDED), *([] if found.x is None else [self.above(found.x[:-2], 0.5)])]

    def above(self, shares: Floats, least: float) -> Int32s:
        """A leader for each partition: the one with the largest share of it above ``least``, else the present one."""
        taken = np.flatnonzero(shares > least)
        taken = taken[np.argsort(shares[taken], kind="stable")]
        leader = self.block.leader.copy()
        leader[self.partition[taken]] = self.to[taken]
        return leader

    def _doubtful(self, relaxed: Relaxed) -> Bools:
        """Partitions that are divided or whose best two leaders cost nearly the same: up to ``CORE`` columns."""
        block, costs = self.block, np.sort(costs_of(self.block, relaxed.prices), axis=1)
        divided = np.zeros(len(block), np.bool_)
        divided[self.partition[np.abs(relaxed.shares - np.rint(relaxed.shares)) > _DIVIDED]] = True
        order = np.lexsort((costs[:, 1] - costs[:, 0], ~divided))
        width = np.bincount(self.partition, minlength=len(block))
        doubtful = np.zeros(len(block), np.bool_)
        doubtful[order[width[order].cumsum() <= CORE]] = True
        return doubtful

    def _rows(self, brokers: Brokers, carried: Int64s, most: int) -> tuple[csr_array, Floats]:
        """One row a broker, one for the moves, one for each partition with several columns.

        The last two columns are the highest relative load, and by how much settled brokers exceed their ceilings.
        """
        block, partition, count = self.block, self.partition, len(self)
        place = np.full(block.brokers + 1, -1)
        place[self._open] = np.arange(len(self._open))
        at = np.arange(count)
        loads = block.loads[partition] / self._load
        leaves = place[block.leader[partition]]
        cap = len(self._open)
        home = np.flatnonzero(block.leader[partition] == block.home[partition])
        several = np.bincount(partition, minlength=len(block)) > 1
        row = np.cumsum(several) + cap
        shared = np.flatnonzero(several[partition])
        rows = [place[self.to], leaves, np.arange(cap), np.full(len(home), cap), row[partition[shared]]]
        cols = [at, at, count + brokers.settled[self._open], home, shared]
        capacity = -brokers.capacity[self._open] / self._capacity
        values = [loads, -loads, capacity, np.ones(len(home)), np.ones(len(shared))]
        room = (np.maximum(brokers.ceiling, 0) - carried)[self._open] / self._load
        limits = np.concatenate([room, [most], np.ones(int(several.sum()))])
        matrix = coo_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(len(limits), count + 2)
        )
        return matrix.tocsr(), limits

    def _prices(self, duals: Floats) -> Prices:
        weights = np.maximum(duals[: len(self._open)], 0)
        if not weights.any():  # an optimum of 0 has no price, and equal ones prove as much
            weights = np.ones_like(weights)
        move = max(float(duals[len(self._open)]), 0.0) * self._load
        unit = min(_WEIGHT / max(float(weights.max()), 1e-300), _MOVE / max(move, 1e-300))
        by_broker = np.zeros(self.block.brokers, np.int64)
        by_broker[self._open] = np.rint(weights * unit)
        return Prices(by_broker, int(move * unit))


@dataclass(frozen=True)
class Relaxation:
    """The optimum of divisible partitions: the best bound of all rounds, the last prices, and rows of candidates."""

    bound: Bound
    prices: Prices
    candidates: Int64s


def relax(
    block: Block,
    brokers: Brokers,
    most: int | None,
    prices: Prices,
    bound: Bound,
    tell: Tell = lambda _: None,
) -> Relaxation:
    """Relax the choice of leaders, from those of the block and at most ``most`` changed. ``bound``: one that is
    known."""
    allowed = len(block) if most is None else most - block.changed
    many, top = max(FRESH, min(allowed, len(block))), float("inf")
    candidates = np.empty(0, np.int64)
    for _ in range(MOST_ROUNDS):
        priced = Priced.at(block, prices)
        bound = highest([bound, bound_of(prices, brokers, priced, most)])
        fresh = priced.best(many, candidates, 0.0)
        if not len(fresh) or top <= float(bound.value) * (1 + CLOSE):
            break
        candidates = np.sort(np.append(candidates, fresh))
        found = Program(block.take(candidates), brokers, brokers.fixed + block.led, allowed).relaxed()
        top, prices = found.highest, found.prices
        over = max(0.0, top / float(bound.value) - 1) if bound.value else 0.0
        tell(f"{len(candidates):,} candidates: the busiest broker is {over:.3%} over the bound")
    return Relaxation(bound, prices, candidates)
