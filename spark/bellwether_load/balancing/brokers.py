"""The brokers of a plan as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Bools, Int64s

_ANY = 2**62
_ROUNDED = 1e-5


@dataclass(frozen=True)
class Brokers:
    """One entry a broker, by index: ids ascend.

    ``open``: may lead. ``capacity``: relative, at least 1. ``base``: what following costs. ``fixed``: base and the
    loads of partitions without a choice. ``ceiling``: load that a settled broker may not exceed, -1 for the others;
    settled brokers are as low as they can be, and the busiest of the others is minimized. Loads are in hundredths of a
    byte per second.
    """

    ids: Int64s
    open: Bools
    capacity: Int64s
    base: Int64s
    fixed: Int64s
    ceiling: Int64s

    @classmethod
    def of(cls, ids: Int64s, open_: Bools, capacity: Int64s, base: Int64s, fixed: Int64s) -> Brokers:
        """None of them settled."""
        return cls(ids, open_, capacity, base, fixed, np.full(len(ids), -1, np.int64))

    @property
    def settled(self) -> Bools:
        """The brokers that are as low as they can be."""
        return self.ceiling >= 0

    @property
    def free(self) -> Bools:
        """The open brokers that are not settled."""
        return self.open & ~self.settled

    def settle(self, which: Bools, top: Fraction) -> Brokers:
        """The same brokers, more of them settled: at this relative load."""
        return replace(self, ceiling=np.where(which, self.limits(top), self.ceiling))

    def kept(self, carried: Int64s) -> bool:
        """Whether settled brokers keep to their ceilings."""
        # The programs count in doubles.
        return bool((carried <= self.ceiling * (1 + _ROUNDED))[self.settled].all())

    def __len__(self) -> int:
        return len(self.ids)

    def busiest(self, carried: Int64s) -> Fraction:
        """The highest relative load among the open brokers that are not settled, exactly; 0 where there is none."""
        return max(
            (Fraction(int(carried[b]), int(self.capacity[b])) for b in np.flatnonzero(self.free)), default=Fraction(0)
        )

    def limits(self, top: Fraction) -> Int64s:
        """What each broker may carry so that its relative load is at most ``top``."""
        return np.array([min(int(top * int(c)), _ANY) for c in self.capacity], np.int64)
