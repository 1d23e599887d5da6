"""Exchanges: move a partition from the busiest broker, with a second move to make room if needed.

The descent leaves a broker too busy if its partitions are heavy compared to the remaining capacity. All pairs of the
busiest broker's partitions with those of the brokers that may lead them are tried.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Block, Brokers, Int64s

MOST_STEPS = 400
"""And as many as there are brokers, or without a limit of changed leaders, when steps are cheap, four times as many."""


def exchanged(block: Block, brokers: Brokers, goal: Fraction, most: int | None = None) -> Block:
    """The block with leaders exchanged while that lowers the busiest broker's load and it is above ``goal``.

    ``most``: how many leaders may be changed in all, None for any number. With such a limit the heaviest partition that
    helps goes, without one the lightest.
    """
    if brokers.busiest(brokers.fixed + block.led) <= goal:
        return block
    exchanges, left = _Exchanges(block, brokers), None if most is None else most - block.changed
    for _ in range(MOST_STEPS + len(brokers) * (4 if most is None else 1)):
        relative = np.where(brokers.free, exchanges.carried / brokers.capacity, -np.inf)
        busiest = int(relative.argmax())
        if relative[busiest] <= float(goal):
            break
        step = exchanges.found(busiest, left)
        if step is None:
            break
        for partition, to in step:
            left = left if left is None else left - int(exchanges.cost(partition, to))
            exchanges.move(partition, to)
    return block.led_by(exchanges.leader)


class _Exchanges:
    """Leaders that change, and what each broker leads and carries with them."""

    def __init__(self, block: Block, brokers: Brokers) -> None:
        self._block, self._brokers = block, brokers
        self.leader, self.carried = block.leader.copy(), brokers.fixed + block.led
        order = np.argsort(self.leader, kind="stable")
        self._led = np.split(order, np.searchsorted(self.leader[order], np.arange(1, len(brokers))))

    def move(self, partition: int, to: int) -> None:
        """Change one leader."""
        was, load = int(self.leader[partition]), self._block.loads[partition]
        self._led[was] = self._led[was][self._led[was] != partition]
        self._led[to] = np.sort(np.append(self._led[to], partition))
        self.leader[partition] = to
        self.carried[was] -= load
        self.carried[to] += load

    def cost(self, partition: Any, to: Any) -> Any:
        """How many more leaders are changed if these partitions move there: -1, 0 or 1 each."""
        home = self._block.home[partition]
        return (to != home).astype(np.int64) - (self.leader[partition] != home)

    def found(self, busiest: int, left: int | None) -> list[tuple[int, int]] | None:
        """The first partition of the busiest broker that can leave it, and one that makes way for it if one must. They
        change ``left`` leaders more at most: one that moves on changes none, and one that goes home gives one back."""
        room, loads = self._room(busiest), self._block.loads
        leaving = self._by_load(self._led[busiest])
        most = len(self._block) if left is None else left
        for p in leaving if left is None else leaving[::-1]:
            others = [int(b) for b in self._block.eligible[p] if b < len(self._brokers) and b != busiest]
            for v in others:
                if loads[p] <= room[v] and self.cost(p, v) <= most:
                    return [(int(p), v)]
            after = room.copy()
            after[busiest] += loads[p]
            for v in others:
                way = self._making_way(after, v, int(loads[p]), most - int(self.cost(p, v)))
                if way is not None:
                    return [way, (int(p), v)]
        return None

    def _making_way(self, room: Int64s, v: int, load: int, left: int) -> tuple[int, int] | None:
        """The lightest partition that ``v`` can hand on so that ``load`` fits there."""
        theirs = self._by_load(self._led[v], load - int(room[v]))
        eligible, loads = self._block.eligible[theirs], self._block.loads[theirs]
        space = room[eligible]
        space[eligible == v] = -1
        space[self.cost(theirs[:, None], eligible) > left] = -1
        found = np.flatnonzero((space >= loads[:, None]).any(axis=1))
        if not len(found):
            return None
        first = int(found[0])
        return int(theirs[first]), int(eligible[first, int(space[first].argmax())])

    def _by_load(self, rows: NDArray[np.int64], least: int = 1) -> NDArray[np.int64]:
        """Those of the partitions with at least this load, the lightest first."""
        loads = self._block.loads[rows]
        rows, loads = rows[loads >= max(least, 1)], loads[loads >= max(least, 1)]
        return rows[np.argsort(loads, kind="stable")]

    def _room(self, busiest: int) -> Int64s:
        """What each broker can take without being as busy as this one is; -1 past the last."""
        brokers = self._brokers
        reach = np.where(brokers.free, brokers.capacity, 0)
        top = self.carried[busiest] / brokers.capacity[busiest]
        ceiling = np.where(brokers.settled, brokers.ceiling, np.ceil(top * reach).astype(np.int64) - 1)
        return np.append(ceiling - self.carried, -1)
