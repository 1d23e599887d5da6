"""Pruning: leaders that are out of the question in any plan whose busiest broker is below a threshold.

A partition that would bring a broker to the threshold, together with what this one carries in any case, cannot be led
there by such a plan (Lenstra, Shmoys and Tardos). The bound of the remaining choices is higher, and it or the
threshold, whichever is lower, bounds every plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Block, Int64s, first_choice
from bellwether_load.planning.brokers import Brokers

_ANY = 2**62


@dataclass(frozen=True)
class Pruning:
    """``threshold``: a relative load. ``heaviest``: the heaviest partition that each broker may lead below it."""

    threshold: float
    heaviest: Int64s

    @classmethod
    def of(cls, brokers: Brokers, threshold: float) -> Pruning:
        """Of brokers that are not settled: a settled one may be above the threshold."""
        exact = Fraction(threshold)
        limits = [-(-exact * int(c) // 1) - 1 - int(f) for c, f in zip(brokers.capacity, brokers.fixed, strict=True)]
        return cls(threshold, np.where(brokers.free, np.array(limits, np.int64), _ANY))

    def of_block(self, block: Block) -> Block:
        """The block without such choices. A partition that would have none keeps all of them.

        Where the leader is out of the question another is chosen: a mandatory change.
        """
        fits = block.loads[:, None] <= np.append(self.heaviest, -1)[block.eligible]
        fits |= ~fits.any(axis=1, keepdims=True)
        eligible = np.where(fits, block.eligible, block.brokers).astype(np.int32)
        kept = (eligible == block.leader[:, None]).any(axis=1)
        leader = np.where(kept, block.leader, first_choice(block.ids, eligible, block.brokers)).astype(np.int32)
        return replace(block, eligible=eligible, leader=leader)
