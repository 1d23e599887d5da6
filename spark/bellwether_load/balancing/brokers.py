"""The brokers of a plan as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Bools, Int64s

_ANY = 2**62
_ROUNDED = 1e-5
_NEAR = 1e-12


@dataclass(frozen=True)
class Brokers:
    """One entry a broker, by index: ids ascend.

    ``open``: may lead. ``capacity``: relative, at least 1. ``base``: what following costs. ``fixed``: base and the
    loads of partitions without a choice. ``ceiling``: load that a settled broker may not exceed, -1 for the others;
    settled brokers are as low as they can be, and the busiest of the others is minimized. Loads are in hundredths of a
    byte per second. ``requests``: capacity for requests; None where they do not count. They count by hour alone: a load
    then has a column for the bytes in each hour, and after these one for the requests in each hour.
    """

    ids: Int64s
    open: Bools
    capacity: Int64s
    base: Int64s
    fixed: Int64s
    ceiling: Int64s
    requests: Int64s | None = None

    @classmethod
    def of(
        cls, ids: Int64s, open_: Bools, capacity: Int64s, base: Int64s, fixed: Int64s, requests: Int64s | None = None
    ) -> Brokers:
        """None of them settled."""
        return cls(ids, open_, capacity, base, fixed, np.full(len(ids), -1, np.int64), requests)

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

    @property
    def capacities(self) -> Int64s:
        """Of each broker for each resource: bytes and, where they count, requests."""
        found = [self.capacity] if self.requests is None else [self.capacity, self.requests]
        return np.stack(found, axis=1)

    def by_column(self, columns: int) -> Int64s:
        """The capacity in each column of a load; one column where it is the same in all."""
        found = self.capacities
        return found if found.shape[1] == 1 else np.repeat(found, columns // found.shape[1], axis=1)

    def busiest_column(self, carried: Int64s) -> tuple[Fraction, int, int]:
        """The highest relative load of an open broker in a column of ``carried``, exactly; the broker and the column.

        Of equal ones the first broker, then the first column; 0 where there is none.
        """
        capacity = np.broadcast_to(self.by_column(carried.shape[1]), carried.shape)
        relative = np.where(self.open[:, None], carried / capacity, -1.0)
        top = relative.max(initial=0.0)
        # Doubles may call two loads equal that are not.
        near = np.argwhere(relative >= top * (1 - _NEAR)) if top else np.argwhere(relative >= 0)[:1]
        load, b, column = max(
            ((Fraction(int(carried[b, h]), int(capacity[b, h])), -b, -h) for b, h in near.tolist()),
            default=(Fraction(0), 0, 0),
        )
        return load, -b, -column

    def limits(self, top: Fraction) -> Int64s:
        """What each broker may carry so that its relative load is at most ``top``."""
        return np.array([min(int(top * int(c)), _ANY) for c in self.capacity], np.int64)
