"""Lower the busiest broker by descent of a smooth maximum over all columns of all brokers.

A load has columns: one for a statistic, one for each hour of the week, or others that are to be as low as these.
Sweep after sweep, each partition, or each of its parts, gets the leader that lowers the sum of exp(sharpness * (load /
highest load - 1)) over brokers and columns most; a broker takes part in one change of a few, so that changes made
together do not add up. The derivatives of that sum are prices by broker and column. A cap on changed leaders is one
more term of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Block, Bools, Floats, Int32s, Int64s, spread

Float32s = NDArray[np.float32]
Columns = Float32s | Floats
_TOGETHER = 4
"""Parts for each broker that are looked at together, at least; more of them where few want other leaders."""
_MOST_TOGETHER = 8_192
_SWEEPS, _WORK = 40, 1_500_000_000
"""Most sweeps of one sharpness, and most loads that are read in all of them."""
_FEW = 1e-3
"""Share of the parts that were looked at with which a stage ends, if no more get another leader."""
_NEAR_LIMIT = 0.99
"""Share of its limit from which a broker may hand on leaders, to make way for others."""
_GAIN = 1e-5
"""What a change must lower of both brokers' terms, so that rounding causes none."""
_LARGEST = 30.0
"""Most that an exponent can be: far above what any change would be made for."""


@dataclass(frozen=True)
class Parts:
    """Each partition in equal parts, one or more: its ``row`` in the block, the ``count`` of its parts, and a leader
    each, which changes."""

    row: Int64s
    count: Float32s
    leader: Int32s

    def halved(self) -> Parts:
        """Twice as many, with the same leaders."""
        return Parts(np.repeat(self.row, 2), np.repeat(self.count, 2) * 2, np.repeat(self.leader, 2))


class Descent:
    """``loads``: of each partition, a column each. ``carried``: of each broker, likewise, with the leaders of
    ``parts``. ``capacity``: of each broker, one number or one a column. ``most``: how many leaders may change.
    ``limits``: relative loads that brokers never exceed, if any."""

    def __init__(
        self,
        block: Block,
        loads: Columns,
        carried: Floats,
        capacity: Floats,
        parts: Parts,
        most: int | None,
        limits: Floats | None = None,
    ) -> None:
        self._block = block
        self._loads = loads
        self._capacity = capacity if capacity.ndim == 2 else capacity[:, None]
        self._limits = np.full(block.brokers, np.inf) if limits is None else limits
        self.parts = parts
        self._relative = carried / self._capacity
        # Partitions whose leader before planning may not lead count as changed in any case.
        self._home = np.where(block.home < block.brokers, block.home, -1)
        moved = (parts.leader != block.home[parts.row]) & (self._home[parts.row] >= 0)
        self._changed = float((moved / parts.count).sum())
        self._budget = None if most is None else float(most - (self._home < 0).sum())

    @property
    def highest(self) -> float:
        """The highest relative load in a column, of brokers without a limit."""
        return float(self._relative[np.isinf(self._limits)].max(initial=0))

    def prices(self, sharpness: float) -> tuple[Floats, float]:
        """What a load costs on each broker in each column, and what a changed leader does."""
        prices = np.exp(sharpness * (self._relative / self.highest - 1)) / self._capacity
        move = self._cap_term(0.0, sharpness) * self.highest / self._budget if self._budget else 0.0
        return prices / prices.sum(), float(move / prices.sum())

    def settle(self, sharpness: float, goal: float, *, hard: bool = False) -> None:
        """Sweep until few leaders change. Brokers below ``goal`` in all columns keep their leaders. ``hard``: the cap
        is never exceeded, else by little on the way."""
        columns, left = self._loads.shape[1], _WORK
        for number in range(_SWEEPS):
            rows = np.flatnonzero(self._hot(goal)[self.parts.leader])
            left -= len(rows) * columns
            if self.highest <= goal or not len(rows) or (number and left < 0):
                break
            if self._sweep(rows, sharpness, goal, number, hard=hard) <= _FEW * len(rows):
                break

    def _hot(self, goal: float) -> Bools:
        """Brokers whose partitions may leave: those above the goal, or with a limit and near it, to make way."""
        hot: Bools = self._relative.max(axis=1, initial=0) > np.minimum(goal, self._limits * _NEAR_LIMIT)
        return hot

    def _sweep(self, rows: Int64s, sharpness: float, goal: float, number: int, *, hard: bool) -> int:
        order = rows[np.argsort(spread(rows, int(sharpness) + number), kind="stable")]
        brokers, start, moved = self._block.brokers, 0, 0
        step = least = _TOGETHER * max(int(self._hot(goal).sum()), 1)
        while start < len(order):
            some = order[start : start + step]
            some = some[self._hot(goal)[self.parts.leader[some]]]
            better, made = self._move(some, sharpness, hard=hard) if len(some) else (0, 0)
            moved, start = moved + made, start + step
            step = min(max(brokers * step // (better + 1), least), max(least, _MOST_TOGETHER))
        return moved

    def _move(self, some: Int64s, sharpness: float, *, hard: bool) -> tuple[int, int]:
        """Give some parts better leaders: the best changes that do not share a broker.

        Returns how many parts would have better ones, and how many got them.
        """
        block, parts, top = self._block, self.parts, max(float(self._relative.max(initial=0)), 1e-300)
        unit = sharpness / top
        kind: Any = self._loads.dtype
        over = ((self._relative - top) * unit).astype(kind)
        terms = np.exp(over)
        heights = terms.sum(axis=1)
        row, origin = parts.row[some], parts.leader[some]
        loads = self._loads[row] / parts.count[some, None]
        eligible = block.eligible[row]
        at, slot = np.nonzero((eligible != origin[:, None]) & (eligible < block.brokers))
        to = eligible[at, slot]
        scaled = (unit / self._capacity).astype(kind)
        without = np.exp(over[origin] - loads * scaled[origin]).sum(axis=1)
        with_it = np.exp(np.minimum(over[to] + loads[at] * scaled[to], kind.type(_LARGEST))).sum(axis=1)
        gain = (heights[origin] - without)[at] + heights[to] - with_it
        changes = np.zeros(len(at))
        if self._budget is not None:
            home = self._home[row[at]]
            changes = ((to != home).astype(np.float64) - (origin[at] != home)) * (home >= 0) / parts.count[some[at]]
            gain -= self._cap_term(changes, sharpness) - self._cap_term(0.0, sharpness)
        fits = (self._relative[to] + loads[at] / self._capacity[to] <= self._limits[to, None]).all(axis=1)
        better = np.flatnonzero((gain > _GAIN * (heights[origin[at]] + heights[to])) & fits)
        better = better[np.argsort(-gain[better], kind="stable")]
        if self._budget is not None:
            room = max(self._budget - self._changed, 0.0 if hard else self._budget / sharpness)
            better = better[changes[better] <= room]
        wanted = len(better)
        better = better[first_of_each(block.brokers, origin[at[better]], to[better])]
        if self._budget is not None:
            better = better[np.cumsum(np.maximum(changes[better], 0)) <= room]
            self._changed += float(changes[better].sum())
        mine, to = at[better], to[better]
        self._relative[origin[mine]] -= loads[mine] / self._capacity[origin[mine]]
        self._relative[to] += loads[mine] / self._capacity[to]
        parts.leader[some[mine]] = to
        return wanted, len(mine)

    def _cap_term(self, changes: Floats | float, sharpness: float) -> Floats:
        """The term of the cap with so many more changed leaders."""
        if not self._budget:
            return np.zeros_like(changes)
        over = sharpness * ((self._changed + changes) / self._budget - 1)
        found: Floats = np.exp(np.minimum(over, _LARGEST))
        return found


def first_of_each(size: int, *at: NDArray[np.integer]) -> Bools:
    """Of changes in order, those that share nothing with an earlier one: each has an index below ``size`` in every
    array, such as a broker that it takes from and one that it gives to."""
    rank = np.arange(len(at[0]))
    first = np.full(size, len(rank))
    for of in at:
        np.minimum.at(first, of, rank)
    found: Bools = np.all([first[of] == rank for of in at], axis=0)
    return found


def returned(block: Block, loads: Columns, carried: Floats, limit: Floats, back: Int32s) -> Int32s:
    """The leaders, of which those that changed without need have an earlier one again, the lightest first: that of the
    first row of ``back`` with which no broker is above its ``limit`` in any column. The last row's stay."""
    leader, carried = block.leader.copy(), carried.copy()
    away = np.flatnonzero((leader != back[-1]) & (leader != block.home))
    away = away[np.argsort(loads[away].max(axis=1, initial=0), kind="stable")]
    for targets in back:
        rows = away[(leader[away] != targets[away]) & (targets[away] < block.brokers)]
        for start in range(0, len(rows), block.brokers):
            some = rows[start : start + block.brokers]
            to = targets[some]
            some = some[(carried[to] + loads[some] <= limit[to]).all(axis=1)]
            some = some[first_of_each(block.brokers, leader[some], targets[some])]
            carried[leader[some]] -= loads[some]
            carried[targets[some]] += loads[some]
            leader[some] = targets[some]
        away = away[leader[away] != block.home[away]]
    return leader
