"""The brokers of a plan as arrays: small enough for the driver, sent to every task."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Int64s


@dataclass(frozen=True)
class Brokers:
    """One entry a broker, by index: ids ascend.

    ``open``: may lead. ``capacity``: relative, at least 1. ``base``: what following costs. ``fixed``: base and the
    loads of partitions without a choice. Loads are in hundredths of a byte per second.
    """

    ids: Int64s
    open: NDArray[np.bool_]
    capacity: Int64s
    base: Int64s
    fixed: Int64s

    def __len__(self) -> int:
        return len(self.ids)

    def busiest(self, carried: Int64s) -> Fraction:
        """The highest relative load among the open brokers, exactly; 0 where none is open."""
        return max(
            (Fraction(int(carried[b]), int(self.capacity[b])) for b in np.flatnonzero(self.open)), default=Fraction(0)
        )

    def room(self, carried: Int64s, target: Fraction) -> Int64s:
        """Remaining capacity of each broker under ``target``; negative above it, 0 for closed brokers."""
        allowed = np.array([int(target * int(c)) for c in self.capacity], np.int64)
        return np.where(self.open, allowed - carried, 0)
