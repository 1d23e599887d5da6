"""Offers of a block's partitions, and the moves that the driver requests.

In a round every partition is offered to one other eligible broker; the driver requests an amount of load per pair of
brokers, and each block moves partitions of about that load, the heaviest first, so that the moves are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int32s, Int64s, spread

FILLS = 4


@dataclass(frozen=True)
class Terms:
    """What a round asks for. ``pull``: int64 a broker, how much it draws offers. ``heaviest``: heavier loads stay."""

    round: int
    pull: Int64s
    heaviest: int


@dataclass(frozen=True)
class Pairs:
    """Load between two brokers: ``keys`` are from * brokers + to, ascending, without repetition."""

    keys: Int64s
    loads: Int64s


def offered(block: Block, terms: Terms) -> Pairs:
    """How much load this block's partitions offer from each broker to each other one."""
    _, keys, willing = _offers(block, terms)
    found, where = np.unique(keys[willing], return_inverse=True)
    loads = np.bincount(where, weights=block.loads[willing], minlength=len(found)).astype(np.int64)
    return Pairs(found, loads)


def settle(block: Block, terms: Terms, asked: Pairs) -> Block:
    """The block after its partitions have followed the offers of these terms, as far as load was asked for."""
    if not len(asked.keys):
        return block
    to, keys, willing = _offers(block, terms)
    at = np.minimum(np.searchsorted(asked.keys, keys), len(asked.keys) - 1)
    free = willing & (asked.keys[at] == keys)
    left = asked.loads.astype(np.float64)
    leader = block.leader.copy()
    for fill in range(FILLS):
        # Only the last filling may overshoot, by at most half a partition: on the whole that evens out.
        over = 0.5 if fill == FILLS - 1 else 0.0
        fits = np.flatnonzero(free & (block.loads * (1 - over) <= left[at]))
        if not len(fits):
            continue
        fits = fits[np.lexsort((block.ids[fits], -block.loads[fits], at[fits]))]
        pair, loads = at[fits], block.loads[fits].astype(np.float64)
        chosen = fits[_before(pair, loads) + loads * (1 - over) <= left[pair]]
        left -= np.bincount(at[chosen], weights=block.loads[chosen], minlength=len(left))
        leader[chosen] = to[chosen]
        free[chosen] = False
    return block.led_by(leader)


def _offers(block: Block, terms: Terms) -> tuple[Int32s, Int64s, NDArray[np.bool_]]:
    """To whom every partition offers itself, by chance in proportion to the pull; its pair's key; whether it does."""
    pull = np.append(terms.pull, 0)[block.eligible]
    pull[block.eligible == block.leader[:, None]] = 0
    reach = pull.cumsum(axis=1)
    drawn = spread(block.ids, terms.round) * reach[:, -1]
    slot = np.minimum((reach <= drawn[:, None]).sum(axis=1), block.eligible.shape[1] - 1)
    to = block.eligible[np.arange(len(block)), slot]
    keys = block.leader.astype(np.int64) * block.brokers + to
    return to, keys, (block.loads > 0) & (block.loads <= terms.heaviest) & (reach[:, -1] > 0)


def _before(groups: NDArray[np.integer], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For values sorted by group: the sum of those before it in its group."""
    total = values.cumsum() - values
    first = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    return total - np.repeat(total[first], np.diff(np.r_[first, len(groups)]))
