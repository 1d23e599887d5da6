"""Local search over whole leaders: partitions leave the busiest broker-hour, one at a time or in exchange.

The step that lowers a smooth maximum of both brokers' hours most is taken, so that a partition goes where its own busy
hours are quiet ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int32s, Int64s
from bellwether_load.planning.forecasts import Number, sums_by_hour

Floats = NDArray[np.float64]
MOST_STEPS = 20_000
EXCHANGES = 60
"""Partitions of the busiest broker for which an exchange is tried."""
_SHARPNESS = 300.0
_GAIN = 1e-12
_LARGEST = 50.0


@dataclass(frozen=True)
class Found:
    """Leaders, and their highest relative load of a broker in an hour."""

    leader: Int32s
    highest: float


def carried_by_hour(leader: Int32s, loads: NDArray[Number], fixed: NDArray[Number]) -> NDArray[Number]:
    """The load of each broker in each hour, a row each: ``fixed``, and that of the partitions that it leads."""
    found: NDArray[Number] = fixed + sums_by_hour(leader, loads, len(fixed))
    return found


class Search:
    """Partitions with loads by hour; ``capacity`` is infinite for closed brokers."""

    def __init__(self, block: Block, loads: Floats, fixed: Floats, capacity: Floats) -> None:
        self._block = block
        self._loads = loads
        self._fixed = fixed
        self._capacity = capacity

    def improve(self, leader: Int32s, goal: float, most: int | None) -> Found:
        """Take steps until no broker is above ``goal`` in any hour, or none helps; at most ``most`` leave home."""
        leader, carried = leader.copy(), carried_by_hour(leader, self._loads, self._fixed)
        for _ in range(MOST_STEPS):
            relative = carried / self._capacity[:, None]
            if relative.max(initial=0) <= goal:
                break
            busiest = int(relative.max(axis=1).argmax())
            left = None if most is None else most - int((leader != self._block.home).sum())
            steps = self._step(leader, carried, relative, busiest, left)
            if not steps:
                break
            for row, to in steps:
                carried[leader[row]] -= self._loads[row]
                carried[to] += self._loads[row]
                leader[row] = to
        return Found(leader, float((carried / self._capacity[:, None]).max(initial=0)))

    def within(self, leader: Int32s, most: int | None) -> Int32s:
        """The same leaders; if too many changed, the lightest of them return to where they were."""
        block = self._block
        over = 0 if most is None else int((leader != block.home).sum()) - most
        if over <= 0:
            return leader
        added = np.flatnonzero((leader != block.home) & (block.leader == block.home))
        back = added[np.argsort(self._loads[added].max(axis=1), kind="stable")[:over]]
        kept = leader.copy()
        kept[back] = block.leader[back]
        return kept

    def returned(self, found: Found) -> Int32s:
        """The leaders; those that changed without need have the leader before planning, or that of the block, again.

        Only those that are not as in the block: what it does for brokers that are less busy is left.
        """
        leader, carried = found.leader.copy(), carried_by_hour(found.leader, self._loads, self._fixed)
        limit = found.highest * self._capacity
        block = self._block
        away = np.flatnonzero(leader != block.leader)
        for row in away[np.argsort(self._loads[away].max(axis=1), kind="stable")].tolist():
            for to in (int(block.home[row]), int(block.leader[row])):
                if leader[row] == block.home[row]:
                    break
                if to in (block.brokers, leader[row]) or not (carried[to] + self._loads[row] <= limit[to]).all():
                    continue
                carried[to] += self._loads[row]
                carried[leader[row]] -= self._loads[row]
                leader[row] = to
                break
        return leader

    def _step(
        self, leader: Int32s, carried: Floats, relative: Floats, busiest: int, left: int | None
    ) -> list[tuple[int, int]]:
        block, highest = self._block, float(relative.max())
        mine = np.flatnonzero(leader == busiest)
        row, slot = np.nonzero((block.eligible[mine] != busiest) & (block.eligible[mine] < block.brokers))
        row, to = mine[row], block.eligible[mine[row], slot]
        if left is not None:
            costs = (leader[row] == block.home[row]).astype(np.int64) - (to == block.home[row])
            row, to = row[costs <= left], to[costs <= left]
        if not len(row):
            return []

        def height(loads: Floats, brokers: NDArray[np.integer] | int) -> Floats:
            over = loads / np.atleast_1d(self._capacity[brokers])[:, None] / highest - 1
            found: Floats = np.exp(np.minimum(over * _SHARPNESS, _LARGEST)).sum(axis=1)
            return found

        before = height(carried[[busiest]], busiest) + height(carried, np.arange(len(carried)))[to]
        after = height(carried[to] + self._loads[row], to) + height(carried[busiest] - self._loads[row], busiest)
        gain = before - after
        best = int(gain.argmax())
        if gain[best] > _GAIN:
            return [(int(row[best]), int(to[best]))]
        found: tuple[float, list[tuple[int, int]]] = (_GAIN, [])
        for at in np.argsort(-gain, kind="stable")[:EXCHANGES]:
            mover, other = int(row[at]), int(to[at])
            theirs = self._exchangeable(leader, other, busiest, mover, left)
            if not len(theirs):
                continue
            there = height(carried[other] + self._loads[mover] - self._loads[theirs], other)
            here = height(carried[busiest] - self._loads[mover] + self._loads[theirs], busiest)
            gains = before[at] - there - here
            pick = int(gains.argmax())
            if gains[pick] > found[0]:
                found = float(gains[pick]), [(mover, other), (int(theirs[pick]), busiest)]
        return found[1]

    def _exchangeable(self, leader: Int32s, other: int, busiest: int, mover: int, left: int | None) -> Int64s:
        """Partitions of the other broker that the busiest one may lead; both steps change at most ``left`` leaders."""
        block = self._block
        theirs = np.flatnonzero((leader == other) & (block.eligible == busiest).any(axis=1))
        if left is None:
            return theirs
        first = int(leader[mover] == block.home[mover]) - int(other == block.home[mover])
        costs = (leader[theirs] == block.home[theirs]).astype(np.int64) - (block.home[theirs] == busiest)
        found: Int64s = theirs[first + costs <= left]
        return found
