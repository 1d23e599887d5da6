"""Plan against the hours of the week: the lowest busiest broker-hour, and a bound on it.

A linear program over all leaders, with a row for each broker-hour that can be the busiest, gives prices by broker and
hour; they prove the bound, as prices by broker do for one number a partition. Whole partitions then leave the busiest
broker-hour one by one, from the leaders at the start and from those of the linear program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from bellwether_load.planning.blocks import Block, Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.hourly_search import Search

Floats = NDArray[np.float64]
CLOSE = 1e-3
"""Relative distance to the bound at which the search ends."""
FINE = 5e-3
"""A plan from the leaders at the start, which changes fewer of them, is taken if it is that close to the bound."""
_ROUNDS = 12
_NEAR = 0.97
_VIOLATED = 5e-4
_WEIGHT = 2.0**20


@dataclass(frozen=True)
class HourlyProblem:
    """Partitions with a choice, and ``loads``: a row each, a column an hour. ``fixed``: likewise of each broker,
    without them. ``most``: how many leaders may change, None for any number."""

    block: Block
    brokers: Brokers
    loads: Int64s
    fixed: Int64s
    most: int | None

    def carried(self, leader: Int32s) -> Int64s:
        """The load of each broker in each hour."""
        ones = np.ones(len(leader), np.int64)
        led = csr_array((ones, leader, np.arange(len(leader) + 1)), shape=(len(leader), len(self.brokers)))
        found: Int64s = self.fixed + led.T @ self.loads
        return found


@dataclass(frozen=True)
class HourlyBound:
    """A lower bound on the busiest broker-hour, and the whole numbers that prove it: ``weights`` by broker and hour,
    ``move`` for a changed leader."""

    value: Fraction
    weights: Int64s
    move: int


@dataclass(frozen=True)
class HourlyPlan:
    """A leader for each partition of the block, and the bound."""

    leader: Int32s
    bound: HourlyBound


def plan_hours(problem: HourlyProblem, tell: Callable[[str], None] = lambda _: None) -> HourlyPlan:
    """The leaders with the lowest busiest broker-hour that is found."""
    capacity = np.where(problem.brokers.open, problem.brokers.capacity, np.inf)
    start = problem.block.leader
    bound, shares, columns = _relaxed(problem, capacity, tell)
    goal = float(bound.value)
    search = Search(problem.block, problem.loads.astype(np.float64), problem.fixed.astype(np.float64), capacity)
    found = search.improve(start, goal * (1 + CLOSE), problem.most)
    tell(f"from the leaders at the start the busiest hour is {_over(found.highest, goal)} over the bound")
    if found.highest > goal * (1 + FINE):
        taken = np.flatnonzero(shares > 0.5)
        rounded = start.copy()
        rounded[columns[0][taken]] = columns[1][taken]
        other = search.improve(search.within(rounded, problem.most), goal * (1 + CLOSE), problem.most)
        tell(f"from those of the linear program it is {_over(other.highest, goal)} over it")
        found = min(found, other, key=lambda result: result.highest)
    return HourlyPlan(search.returned(found), bound)


def bound_of(problem: HourlyProblem, weights: Int64s, move: int) -> HourlyBound:
    """The bound that these prices prove: every partition pays least with its cheapest leader (weak duality)."""
    block = problem.block
    costs = np.full(block.eligible.shape, np.inf)
    for slot in range(block.eligible.shape[1]):
        rows = np.flatnonzero(block.eligible[:, slot] < block.brokers)
        to = block.eligible[rows, slot]
        costs[rows, slot] = np.einsum(
            "ij,ij->i", problem.loads[rows].astype(np.float64), weights[to].astype(np.float64)
        )
        costs[rows, slot] += move * (to != block.home[rows])
    chosen = block.eligible[np.arange(len(block)), costs.argmin(axis=1)]
    carried = problem.carried(chosen)
    at = np.argwhere(weights > 0).tolist()
    total = sum(int(weights[b, h]) * int(carried[b, h]) for b, h in at)
    if problem.most is not None:
        total += move * (int((chosen != block.home).sum()) - problem.most)
    capacity = sum(int(weights[b, h]) * int(problem.brokers.capacity[b]) for b, h in at)
    return HourlyBound(max(Fraction(total, capacity), Fraction(0)) if capacity else Fraction(0), weights, move)


def _relaxed(
    problem: HourlyProblem, capacity: Floats, tell: Callable[[str], None]
) -> tuple[HourlyBound, Floats, tuple[Int64s, Int32s]]:
    """The optimum of divisible partitions: its bound, and the share of each move (row of the block, broker)."""
    block, loads = problem.block, problem.loads.astype(np.float64)
    partition, slot = np.nonzero((block.eligible < block.brokers) & (block.eligible != block.leader[:, None]))
    to, leaves = block.eligible[partition, slot], block.leader[partition]
    carried = problem.carried(block.leader).astype(np.float64)
    relative = carried / capacity[:, None]
    rows = relative >= relative.max() * _NEAR
    rows[np.arange(len(rows)), relative.argmax(axis=1)] = True
    rows &= problem.brokers.open[:, None]
    best = HourlyBound(Fraction(0), np.zeros(relative.shape, np.int64), 0)
    shares = np.zeros(len(to))
    for _ in range(_ROUNDS if len(to) else 0):
        highest, weights, move, shares = _solved(problem, (partition, to), rows, carried, capacity)
        best = max(best, bound_of(problem, weights, move), key=lambda bound: bound.value)
        after = carried.copy()
        np.add.at(after, to, loads[partition] * shares[:, None])
        np.add.at(after, leaves, loads[partition] * -shares[:, None])
        after /= capacity[:, None]
        more = (after > highest * (1 + _VIOLATED)) & ~rows
        tell(f"{int(rows.sum()):,} broker-hours: the bound is {float(best.value) / 100:,.0f} bytes/s")
        if not more.any() or after.max() <= float(best.value) * (1 + CLOSE):
            break
        rows |= more
    return best, shares, (partition, to)


def _solved(
    problem: HourlyProblem, columns: tuple[Int64s, Int32s], rows: NDArray[np.bool_], carried: Floats, capacity: Floats
) -> tuple[float, Int64s, int, Floats]:
    """The linear program with these broker-hours: highest relative load, prices, and the share of each column."""
    block, (partition, to) = problem.block, columns
    leaves, count = block.leader[partition], len(to)
    broker, hour = np.nonzero(rows)
    place = np.full(rows.shape, -1)
    place[broker, hour] = np.arange(len(broker))
    unit, size = max(float(carried[broker, hour].mean()), 1.0), float(capacity[broker].mean())
    at, cols, values = [np.arange(len(broker))], [np.full(len(broker), count)], [-capacity[broker] / size]
    for h in np.unique(hour):
        load = problem.loads[partition, h] / unit
        for sign, brokers in ((1, to), (-1, leaves)):
            inside = np.flatnonzero(place[brokers, h] >= 0)
            at.append(place[brokers[inside], h])
            cols.append(inside)
            values.append(sign * load[inside])
    several = np.bincount(partition, minlength=len(block)) > 1
    shared = np.flatnonzero(several[partition])
    home = np.flatnonzero(leaves == block.home[partition])
    cap = len(broker)
    at += [np.full(len(home), cap), (np.cumsum(several) + cap)[partition[shared]]]
    cols += [home, shared]
    values += [np.ones(len(home)), np.ones(len(shared))]
    forced = int((block.leader != block.home).sum())
    most = len(block) if problem.most is None else max(problem.most - forced, 0)
    limits = np.concatenate([-carried[broker, hour] / unit, [most], np.ones(int(several.sum()))])
    matrix: Any = coo_array(
        (np.concatenate(values), (np.concatenate(at), np.concatenate(cols))), shape=(len(limits), count + 1)
    ).tocsr()
    bounds: Any = np.stack([np.zeros(count + 1), np.append(np.ones(count), np.inf)], axis=1)
    found = linprog(np.append(np.zeros(count), 1.0), A_ub=matrix, b_ub=limits, bounds=bounds, method="highs-ds")
    if found.x is None:
        raise ArithmeticError(f"the linear program of {count:,} moves has no solution: {found.message}")
    duals = np.maximum(-found.ineqlin.marginals, 0)
    scale = _WEIGHT / max(float(duals[:cap].max()), 1e-300)
    weights = np.zeros(rows.shape, np.int64)
    weights[broker, hour] = np.rint(duals[:cap] * scale)
    move = 0 if problem.most is None else int(duals[cap] * unit * scale)
    return float(found.x[-1]) * unit / size, weights, move, found.x[:-1]


def _over(highest: float, goal: float) -> str:
    return f"{highest / goal - 1:.2%}" if goal else "not at all"
