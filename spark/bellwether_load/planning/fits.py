"""Move single partitions: after the flows the remaining excess is smaller than a partition.

A partition may be heavier than its broker's excess: that broker then has room again for others. One that fits nowhere
goes to a broker that it overfills.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bellwether_load.planning.blocks import Block, Int64s

MOST_PER_BROKER = 4


@dataclass(frozen=True)
class Fit:
    """One partition that could leave a broker that carries too much, and where it fits."""

    id: int
    load: int
    leader: int
    to: int


def fitting(block: Block, excess: Int64s, room: Int64s) -> list[Fit]:
    """Up to ``MOST_PER_BROKER`` partitions for each broker with excess, the most useful first."""
    block = block.take(np.flatnonzero((excess[block.leader] > 0) & (block.loads > 0)))
    space = np.append(room, -1)[block.eligible]
    space[block.eligible == block.leader[:, None]] = -1
    slot = space.argmax(axis=1)
    able = np.flatnonzero(space[np.arange(len(block)), slot] >= block.loads)
    if not len(able):
        return []
    leader, loads = block.leader[able], block.loads[able]
    # The lightest that takes all of the excess away is best; if none does, the heaviest.
    short = excess[leader] - loads
    order = np.lexsort((block.ids[able], np.where(short <= 0, -short, short), short > 0, leader))
    able, leader = able[order], leader[order]
    first = np.flatnonzero(np.r_[True, leader[1:] != leader[:-1]])
    rank = np.arange(len(able)) - np.repeat(first, np.diff(np.r_[first, len(able)]))
    kept = able[rank < MOST_PER_BROKER]
    return [
        Fit(int(block.ids[p]), int(block.loads[p]), int(block.leader[p]), int(block.eligible[p, slot[p]])) for p in kept
    ]


def choose(found: list[Fit], excess: Int64s, room: Int64s) -> Iterator[Fit]:
    """Of all blocks' fits those that still fit one after the other, for the broker with the most excess first."""
    excess, room = excess.copy(), room.copy()

    def use(fit: Fit) -> tuple[bool, int]:
        short = int(excess[fit.leader]) - fit.load
        return short > 0, abs(short)

    for fit in sorted(found, key=lambda f: (-int(excess[f.leader]), f.leader, *use(f), f.id)):
        if excess[fit.leader] > 0 and fit.load <= room[fit.to]:
            excess[fit.leader] -= fit.load
            room[fit.to] -= fit.load
            yield fit


def overfilling(block: Block, busy: Int64s, room: Int64s, able: Int64s) -> dict[int, int]:
    """New leaders, by id, for a partition of each of the ``busy`` brokers that fits nowhere.

    ``room``: of each broker; ``able``: what each can lead at most. The new leader has too little room for it,
    but it can lead it: in the next rounds lighter ones make way.
    """
    able, wanted = np.append(able, -1), dict[int, int]()
    for broker in busy.tolist():
        rows = np.flatnonzero((block.leader == broker) & (block.loads > 0))
        short = -room[broker] - block.loads[rows]
        # The lightest that takes all of the excess away is best; if none does, the heaviest.
        for row in rows[np.lexsort((np.abs(short), short > 0))].tolist():
            load, others = int(block.loads[row]), [int(b) for b in block.eligible[row] if b != broker]
            to = max(others, key=lambda b: int(able[b]), default=-1)
            if able[to] >= load:
                wanted[int(block.ids[row])] = to
                able[to] = -1  # one partition each
                break
    return wanted


def place(block: Block, wanted: dict[int, int]) -> Block:
    """The block with some partitions (by id) led by others."""
    ids = np.fromiter(wanted, np.int64, len(wanted))
    rows = np.searchsorted(block.ids, ids)
    mine = np.append(block.ids, -1)[rows] == ids
    if not mine.any():
        return block
    leader = block.leader.copy()
    leader[rows[mine]] = np.fromiter(wanted.values(), np.int32, len(wanted))[mine]
    return block.led_by(leader)
