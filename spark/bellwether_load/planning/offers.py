"""Offers of a block's partitions, and the moves that the driver requests.

In a round every partition is offered to one other eligible broker; the driver requests an amount of load per pair of
brokers, and each block moves partitions of about that load, the heaviest first, so that the moves are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Floats, Int32s, Int64s, spread, sums

FILLS = 4
DENSE = 32


@dataclass(frozen=True)
class Terms:
    """What a round asks for. ``pull``: int64 a broker, how much it draws offers. ``heaviest``: heavier loads stay.
    ``need``: a broker's room as a share of the largest one, each relative to capacity; below 0 its excess, likewise.
    ``direct``: only load that goes from excess to room is offered. ``most``: how many pairs of brokers a block
    reports: those with the largest product of load and need."""

    round: int
    pull: Int64s
    heaviest: int
    need: Floats
    direct: bool
    most: int


@dataclass(frozen=True)
class Pairs:
    """Load between two brokers: ``keys`` are from * brokers + to, ascending, without repetition."""

    keys: Int64s
    loads: Int64s


class Drawn(NamedTuple):
    """One offer a partition: the broker ``to`` lead it, the key of both brokers, and whether it may move at all."""

    to: Int32s
    keys: Int64s
    movable: NDArray[np.bool_]


def draw(block: Block, terms: Terms) -> Drawn:
    """The broker that each partition is offered to: pseudo-random, in proportion to the pull."""
    pull = np.append(terms.pull, 0)
    # By columns: numpy is slow along an axis that is as short as a list of replicas.
    columns = list(block.eligible.T)
    total, reach = np.zeros(len(block), np.int64), []
    for column in columns:
        mine = pull[column]
        mine[column == block.leader] = 0
        total = total + mine
        reach.append(total)
    drawn = spread(block.ids, terms.round) * total
    to = columns[-1].copy()
    for column, reached in zip(columns[-2::-1], reach[-2::-1], strict=True):
        to = np.where(reached > drawn, column, to)
    keys = block.leader.astype(np.int64) * block.brokers + to
    return Drawn(to, keys, (block.loads > 0) & (block.loads <= terms.heaviest) & (total > 0))


def offered(block: Block, drawn: Drawn, terms: Terms) -> Pairs:
    """How much load this block's partitions offer from each broker to each other one."""
    movable = drawn.movable
    if terms.direct:
        movable = movable & (terms.need < 0)[block.leader] & np.append(terms.need > 0, False)[drawn.to]
    keys, loads = drawn.keys[movable], block.loads[movable]
    if _dense(block):
        total = sums(keys, loads, block.brokers**2)
        found = np.flatnonzero(total)  # what may move has a load
        total = total[found]
    else:
        found, where = np.unique(keys, return_inverse=True)
        total = sums(where, loads, len(found))
    if len(found) > terms.most:
        excess, room = np.maximum(-terms.need, 0), np.maximum(terms.need, 0)
        useful = total * (excess[found // block.brokers] + room[found % block.brokers])
        kept = np.sort(np.lexsort((found, -useful))[: terms.most])
        found, total = found[kept], total[kept]
    return Pairs(found, total)


def settle(block: Block, drawn: Drawn, asked: Pairs) -> Block:
    """The block after its partitions have followed these offers, as far as load was asked for."""
    if not len(asked.keys):
        return block
    at, wanted = _places(block, drawn.keys, asked.keys)
    free = drawn.movable & wanted
    left = asked.loads.astype(np.float64)
    leader = block.leader.copy()
    for fill in range(FILLS):
        # Only the last filling may overshoot, by at most half a partition: on the whole that evens out.
        over = 0.5 if fill == FILLS - 1 else 0.0
        rows = np.flatnonzero(free)
        fits = rows[block.loads[rows] * (1 - over) <= left[at[rows]]]
        if not len(fits):
            continue
        fits = fits[np.lexsort((block.ids[fits], -block.loads[fits], at[fits]))]
        pair, loads = at[fits], block.loads[fits].astype(np.float64)
        chosen = fits[_before(pair, loads) + loads * (1 - over) <= left[pair]]
        left -= np.bincount(at[chosen], weights=block.loads[chosen], minlength=len(left))
        leader[chosen] = drawn.to[chosen]
        free[chosen] = False
    return block.led_by(leader)


def _dense(block: Block) -> bool:
    """Whether a table of all pairs of brokers is no larger than some columns of the block."""
    return block.brokers**2 <= DENSE * len(block)


def _places(block: Block, keys: Int64s, asked: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
    """Where each key is in ``asked``, which is sorted, and whether it is there."""
    if _dense(block):
        table = np.full(block.brokers * (block.brokers + 1), -1)
        table[asked] = np.arange(len(asked))
        at = table[keys]
        return np.maximum(at, 0), at >= 0
    at = np.minimum(np.searchsorted(asked, keys), len(asked) - 1)
    return at, asked[at] == keys


def _before(groups: NDArray[np.integer], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For values sorted by group: the sum of those before it in its group."""
    total = values.cumsum() - values
    first = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    return total - np.repeat(total[first], np.diff(np.r_[first, len(groups)]))
