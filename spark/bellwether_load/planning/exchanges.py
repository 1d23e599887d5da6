"""Last step for few partitions: move one from the busiest broker, with a second move to make room if needed.

Flows, single fits and the integer program leave a broker too busy if its partitions are heavy compared to the remaining
capacity. This is rare with thousands of partitions per broker, and common with a dozen. All pairs are tried, hence only
few partitions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int64s
from bellwether_load.planning.brokers import Brokers

MOST_PARTITIONS = 20_000
MOST_STEPS = 400


def exchange(block: Block, brokers: Brokers, carried: Int64s, goal: Fraction, most: int | None = None) -> Block:
    """The block with leaders exchanged while that lowers the busiest broker's load and it is above ``goal``.

    ``most``: how many of its leaders may be changed, None for any number. With such a limit the heaviest partition that
    helps goes, without one the lightest.
    """
    leader, carried = block.leader.copy(), carried.copy()
    reach = np.where(brokers.free, brokers.capacity, 0)
    for _ in range(MOST_STEPS):
        relative = np.where(brokers.free, carried / brokers.capacity, -np.inf)
        busiest = int(relative.argmax())
        if relative[busiest] <= float(goal):
            break
        # Load limit of every broker after a step, so that none is as busy as this one was.
        ceiling = np.where(brokers.settled, brokers.ceiling, np.ceil(relative[busiest] * reach).astype(np.int64) - 1)
        mine = np.flatnonzero((leader == busiest) & (block.loads > 0))
        mine = mine[np.argsort(block.loads[mine], kind="stable")]
        left = len(block) if most is None else most - int((leader != block.home).sum())
        present = block.led_by(leader)
        step = _step(present, ceiling - carried, mine if most is None else mine[::-1], left)
        if step is None:
            break
        for partition, to in step:
            carried[leader[partition]] -= block.loads[partition]
            carried[to] += block.loads[partition]
            leader[partition] = to
    return block.led_by(leader)


def _step(block: Block, room: Int64s, leaving: NDArray[np.int64], left: int) -> list[tuple[int, int]] | None:
    """The first of the ``leaving`` that can, and one that makes way for it if one must. They change ``left`` leaders
    more at most: one that moves on changes none, and one that goes home gives one back."""
    loads, room = block.loads, np.append(room, -1)
    for p in leaving:
        busiest = block.leader[p]
        others = [int(b) for b in block.eligible[p] if b < block.brokers and b != busiest]
        for v in others:
            if loads[p] <= room[v] and _costs(block, p, v) <= left:
                return [(int(p), v)]
        after = room.copy()
        after[busiest] += loads[p]
        for v in others:
            way = _making_way(block, after, v, int(loads[p]), left - int(_costs(block, p, v)))
            if way is not None:
                return [way, (int(p), v)]
    return None


def _making_way(block: Block, room: Int64s, v: int, load: int, left: int) -> tuple[int, int] | None:
    """The lightest partition that ``v`` can hand on so that ``load`` fits there."""
    theirs = np.flatnonzero((block.leader == v) & (block.loads >= load - room[v]) & (block.loads > 0))
    theirs = theirs[np.argsort(block.loads[theirs], kind="stable")]
    space = room[block.eligible[theirs]]
    space[block.eligible[theirs] == v] = -1
    space[_costs(block, theirs[:, None], block.eligible[theirs]) > left] = -1
    fits = space >= block.loads[theirs, None]
    found = np.flatnonzero(fits.any(axis=1))
    if not len(found):
        return None
    first = int(found[0])
    return int(theirs[first]), int(block.eligible[theirs[first], int(space[first].argmax())])


def _costs(block: Block, partition: Any, to: Any) -> Any:
    """How many more leaders are changed if these partitions move there: -1, 0 or 1 each."""
    home = block.home[partition]
    return (to != home).astype(np.int64) - (block.leader[partition] != home)
