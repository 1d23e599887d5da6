"""Samples of many partitions as arrays, the input of all computations in this folder.

The samples of one partition are consecutive. The names of the partitions are the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# In the columns end and size: not answered, or no number that Kafka could have given.
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rows of samples; those of partition i are ``bounds[i]:bounds[i + 1]``.

    ``at``: seconds since 1970. ``leader``, ``epoch``: as sampled. ``end``: the end offset, ``UNKNOWN`` where there is
    none. ``size``: bytes of the leader's log, likewise. ``consume``: bytes/s out to consumers, NaN where unknown;
    ``requests``: requests/s, likewise.
    """

    bounds: Ints
    at: Ints
    leader: NDArray[np.int32]
    epoch: NDArray[np.int32]
    end: Ints
    size: Ints
    consume: NDArray[np.float32]
    requests: NDArray[np.float32]

    def __len__(self) -> int:
        """How many partitions."""
        return len(self.bounds) - 1

    @property
    def owner(self) -> Ints:
        """For each row the number of its partition."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.bounds))

    def keep(self, kept: Bools) -> Samples:
        """The rows that a mask keeps."""
        return self._rows(kept, counted(kept, self.bounds))

    def take(self, order: Rows) -> Samples:
        """The same rows in another order within each partition."""
        return self._rows(order, self.bounds)

    def _rows(self, rows: Rows | Bools, bounds: Ints) -> Samples:
        return Samples(
            bounds,
            self.at[rows],
            self.leader[rows],
            self.epoch[rows],
            self.end[rows],
            self.size[rows],
            self.consume[rows],
            self.requests[rows],
        )


def counted(kept: Bools, bounds: Ints) -> Ints:
    """The bounds of what a mask leaves of each group."""
    found = np.zeros(len(bounds), dtype=np.int64)
    np.cumsum(summed(kept, bounds), out=found[1:])
    return found


def summed(values: Ints | Bools, bounds: Ints) -> Ints:
    """The sum of each group, exact; 0 for an empty one. The groups hold all values."""
    found = np.zeros(len(bounds) - 1, dtype=np.int64)
    there = bounds[1:] > bounds[:-1]
    if there.any():
        found[there] = np.add.reduceat(values, bounds[:-1][there], dtype=np.int64)
    return found


def inner(bounds: Ints, length: int) -> Bools:
    """Of the steps from each of so many rows to the next, those that stay in one group."""
    found = np.ones(max(0, length - 1), dtype=np.bool_)
    ends = bounds[1:-1] - 1
    found[ends[(ends >= 0) & (ends < length - 1)]] = False
    return found
