"""Lower the busiest broker-hour by descent of a smooth maximum over all broker-hours.

Sweep after sweep, each partition, or each of its parts, gets the leader that lowers the sum of exp(sharpness * (load /
highest load - 1)) most; a broker takes part in one change of a few, so that changes made together do not add up. The
derivatives of that sum are prices by broker and hour. A cap on changed leaders is one more term of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Floats, Int32s, Int64s, spread

Float32s = NDArray[np.float32]
_TOGETHER = 4
"""Parts for each broker that are looked at together, at least; more of them where few want other leaders."""
_MOST_TOGETHER = 8_192
_SWEEPS, _WORK = 20, 1_500_000_000
"""Most sweeps of one sharpness, and most loads that are read in all of them."""
_FEW = 1e-3
"""Share of parts that get another leader with which a stage ends."""
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
    """``carried``: load of each broker in each hour with the leaders of ``parts``. ``most``: how many may change."""

    def __init__(
        self,
        block: Block,
        loads: Float32s,
        carried: Floats,
        capacity: Floats,
        parts: Parts,
        most: int | None,
    ) -> None:
        self._block = block
        self._loads = loads
        self._capacity = capacity
        self.parts = parts
        self._relative = carried / capacity[:, None]
        # Partitions whose leader before planning may not lead count as changed in any case.
        self._home = np.where(block.home < block.brokers, block.home, -1)
        moved = (parts.leader != block.home[parts.row]) & (self._home[parts.row] >= 0)
        self._changed = float((moved / parts.count).sum())
        self._budget = None if most is None else float(most - (self._home < 0).sum())

    @property
    def highest(self) -> float:
        """The highest relative load of a broker in an hour."""
        return float(self._relative.max(initial=0))

    def prices(self, sharpness: float) -> tuple[Floats, float]:
        """What a load costs on each broker in each hour, and what a changed leader does."""
        prices = np.exp(sharpness * (self._relative / self.highest - 1)) / self._capacity[:, None]
        move = self._cap_term(0.0, sharpness) * self.highest / self._budget if self._budget else 0.0
        return prices / prices.sum(), float(move / prices.sum())

    def settle(self, sharpness: float, goal: float, *, hard: bool = False) -> None:
        """Sweep until few leaders change. Brokers below ``goal`` in all hours keep their leaders. ``hard``: the cap is
        never exceeded, else by little on the way."""
        count = len(self.parts.row)
        sweeps = int(np.clip(_WORK // max(count * self._loads.shape[1], 1), 1, _SWEEPS))
        for number in range(sweeps):
            if self.highest <= goal or self._sweep(sharpness, goal, number, hard=hard) < _FEW * count:
                break

    def _sweep(self, sharpness: float, goal: float, number: int, *, hard: bool) -> int:
        order = np.argsort(spread(np.arange(len(self.parts.row)), int(sharpness) + number), kind="stable")
        brokers, start, moved = self._block.brokers, 0, 0
        step = least = _TOGETHER * brokers
        while start < len(order):
            hot = self._relative.max(axis=1) > goal
            some = order[start : start + step]
            some = some[hot[self.parts.leader[some]]]
            better, made = self._move(some, sharpness, hard=hard) if len(some) else (0, 0)
            moved, start = moved + made, start + step
            step = min(max(brokers * step // (better + 1), least), max(least, _MOST_TOGETHER))
        return moved

    def _move(self, some: Int64s, sharpness: float, *, hard: bool) -> tuple[int, int]:
        """Give some parts better leaders: the best changes that do not share a broker.

        Returns how many parts would have better ones, and how many got them.
        """
        block, parts, top = self._block, self.parts, max(self.highest, 1e-300)
        unit = sharpness / top
        over = (self._relative - top).astype(np.float32) * np.float32(unit)
        terms = np.exp(over)
        heights = terms.sum(axis=1)
        row, origin = parts.row[some], parts.leader[some]
        loads = self._loads[row] / parts.count[some, None]
        eligible = block.eligible[row]
        at, slot = np.nonzero((eligible != origin[:, None]) & (eligible < block.brokers))
        to = eligible[at, slot]
        scaled = (unit / self._capacity).astype(np.float32)
        without = np.exp(over[origin] - loads * scaled[origin, None]).sum(axis=1)
        with_it = np.exp(np.minimum(over[to] + loads[at] * scaled[to, None], np.float32(_LARGEST))).sum(axis=1)
        gain = (heights[origin] - without)[at] + heights[to] - with_it
        changes = np.zeros(len(at))
        if self._budget is not None:
            home = self._home[row[at]]
            changes = ((to != home).astype(np.float64) - (origin[at] != home)) * (home >= 0) / parts.count[some[at]]
            gain -= self._cap_term(changes, sharpness) - self._cap_term(0.0, sharpness)
        better = np.flatnonzero(gain > _GAIN * (heights[origin[at]] + heights[to]))
        better = better[np.argsort(-gain[better], kind="stable")]
        if self._budget is not None:
            room = max(self._budget - self._changed, 0.0 if hard else self._budget / sharpness)
            better = better[changes[better] <= room]
        wanted = len(better)
        better = better[first_of_each(origin[at[better]], to[better], block.brokers)]
        if self._budget is not None:
            better = better[np.cumsum(np.maximum(changes[better], 0)) <= room]
            self._changed += float(changes[better].sum())
        mine, to = at[better], to[better]
        self._relative[origin[mine]] -= loads[mine] / self._capacity[origin[mine], None]
        self._relative[to] += loads[mine] / self._capacity[to, None]
        parts.leader[some[mine]] = to
        return wanted, len(mine)

    def _cap_term(self, changes: Floats | float, sharpness: float) -> Floats:
        """The term of the cap with so many more changed leaders."""
        if not self._budget:
            return np.zeros_like(changes)
        over = sharpness * ((self._changed + changes) / self._budget - 1)
        found: Floats = np.exp(np.minimum(over, _LARGEST))
        return found


def first_of_each(origin: Int32s, to: Int32s, brokers: int) -> NDArray[np.bool_]:
    """Of changes in order, those that share no broker with an earlier one."""
    rank = np.arange(len(to))
    first = np.full(brokers, len(to))
    np.minimum.at(first, origin, rank)
    np.minimum.at(first, to, rank)
    found: NDArray[np.bool_] = (first[origin] == rank) & (first[to] == rank)
    return found
