"""A block: partitions with a choice, with their loads, eligible brokers and leaders, as arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Number = TypeVar("Number", np.int64, np.float64)

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Tell = Callable[[str], None]
"""Takes a line about how planning goes on."""


@dataclass(frozen=True)
class Block:
    """Partitions with a choice. All arrays have one row a partition.

    ``brokers``: how many brokers there are. ``ids``: int64, unique: rows of the problem. ``loads``: int64, what leading
    costs more than following. ``eligible``: int32, (partitions, widest), broker indices padded with ``brokers``.
    ``home``: the leader before planning, ``brokers`` where that one may not lead. ``leader``: the leader as planned so
    far.
    """

    brokers: int
    ids: Int64s
    loads: Int64s
    eligible: Int32s
    home: Int32s
    leader: Int32s

    @classmethod
    def at_start(cls, brokers: int, ids: Int64s, loads: Int64s, eligible: Int32s, home: Int32s) -> Block:
        """Led as before planning; those whose leader may not lead by one of the eligible."""
        block = cls(brokers, ids, loads, eligible, home, home)
        return block.led_by(np.where(home < brokers, home, block.spread_leaders).astype(np.int32))

    def __len__(self) -> int:
        return len(self.ids)

    def led_by(self, leader: Int32s) -> Block:
        """The same partitions with other leaders."""
        return replace(self, leader=leader)

    @property
    def spread_leaders(self) -> Int32s:
        """One of the eligible for each partition, evenly spread and deterministic."""
        eligible = np.sort(self.eligible, axis=1)  # padding is the highest index
        count = (eligible < self.brokers).sum(axis=1)
        pick = (spread(self.ids, 0) * count).astype(np.int64)
        chosen: Int32s = eligible[np.arange(len(self)), pick]
        return chosen

    @property
    def start(self) -> Block:
        """With the leaders before planning."""
        return Block.at_start(self.brokers, self.ids, self.loads, self.eligible, self.home)

    def take(self, rows: NDArray[np.integer]) -> Block:
        """Some of the partitions, in the order of ``rows``."""
        return Block(self.brokers, *(a[rows] for a in (self.ids, self.loads, self.eligible, self.home, self.leader)))

    def put(self, rows: NDArray[np.integer], leader: Int32s) -> Block:
        """With other leaders of some partitions."""
        changed = self.leader.copy()
        changed[rows] = leader
        return self.led_by(changed)

    @property
    def changed(self) -> int:
        """Number of partitions with a changed leader."""
        return int((self.leader != self.home).sum())

    @property
    def led(self) -> Int64s:
        """The load that each broker leads here, one entry a broker."""
        return sums(self.leader, self.loads, self.brokers)


def sums(at: NDArray[np.integer], values: Int64s, length: int) -> Int64s:
    """Exact sums of ``values`` by index: a float64 holds every integer up to 2**53, and larger loads are refused."""
    return np.bincount(at, weights=values, minlength=length).astype(np.int64)


def column_sums(at: NDArray[np.integer], values: NDArray[Number], brokers: int) -> NDArray[Number]:
    """Exact sums of rows by broker: ``at`` has the broker or the brokers of each row, padded with ``brokers``."""
    count, width = len(at), at.shape[1] if at.ndim > 1 else 1
    ones = np.ones(count * width, np.int64)
    where = csr_array((ones, at.ravel(), np.arange(0, count * width + 1, width)), shape=(count, brokers + 1))
    found: NDArray[Number] = (where.T @ values)[:brokers]
    return found


def spread(ids: Int64s, salt: int) -> Floats:
    """A pseudo-random, deterministic number in [0, 1) for each id (the finaliser of SplitMix64)."""
    z = ids.astype(np.uint64) + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
