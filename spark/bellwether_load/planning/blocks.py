"""A block: some partitions with their loads, eligible brokers and leaders, as arrays.

A partition belongs to the block of the broker that leads it at the start, so that most decisions about
a broker are made in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """Partitions with a choice. All arrays have one row a partition, sorted by ``ids``.

    ``ids``: int64, unique in the plan. ``loads``: int64, what leading costs more than following. ``eligible``: int32,
    (partitions, widest), broker indices padded with ``brokers``. ``home``: the leader before planning, ``brokers``
    where that one may not lead. ``leader``: the leader as planned so far. ``brokers``: how many brokers there are.
    """

    number: int
    brokers: int
    ids: Int64s
    loads: Int64s
    eligible: Int32s
    home: Int32s
    leader: Int32s

    def __len__(self) -> int:
        return len(self.ids)

    def led_by(self, leader: Int32s) -> Block:
        """The same partitions with other leaders."""
        return replace(self, leader=leader)

    def take(self, rows: NDArray[np.integer]) -> Block:
        """Some of the partitions, in the order of ``rows``."""
        picked = (a[rows] for a in (self.ids, self.loads, self.eligible, self.home, self.leader))
        return Block(self.number, self.brokers, *picked)

    @property
    def changed(self) -> int:
        """Number of partitions with a changed leader."""
        return int((self.leader != self.home).sum())

    @property
    def changes(self) -> tuple[Int64s, Int32s]:
        """Ids of these partitions, and their new leaders."""
        away = self.leader != self.home
        return self.ids[away], self.leader[away]

    @property
    def led(self) -> Int64s:
        """The load that each broker leads here, one entry a broker."""
        return sums(self.leader, self.loads, self.brokers)


def joined(number: int, parts: list[Block]) -> Block:
    """Merge several disjoint blocks, sorted by id."""
    width = max(p.eligible.shape[1] for p in parts)
    brokers = parts[0].brokers
    wide = [np.pad(p.eligible, ((0, 0), (0, width - p.eligible.shape[1])), constant_values=brokers) for p in parts]
    ids = np.concatenate([p.ids for p in parts])
    order = np.argsort(ids)
    return Block(
        number,
        brokers,
        ids[order],
        np.concatenate([p.loads for p in parts])[order],
        np.concatenate(wide)[order],
        np.concatenate([p.home for p in parts])[order],
        np.concatenate([p.leader for p in parts])[order],
    )


def sums(at: NDArray[np.integer], values: Int64s, length: int) -> Int64s:
    """Exact sums of ``values`` by index. A float64 holds every integer up to 2**53, and no cluster's load is larger."""
    return np.bincount(at, weights=values, minlength=length).astype(np.int64)


def first_choice(ids: Int64s, eligible: Int32s, brokers: int) -> Int32s:
    """A leader for partitions whose own is not eligible: one of the eligible, evenly spread and deterministic."""
    eligible = np.sort(eligible, axis=1)  # padding is the highest index
    count = (eligible < brokers).sum(axis=1)
    pick = (spread(ids, 0) * count).astype(np.int64)
    chosen: Int32s = eligible[np.arange(len(ids)), pick]
    return chosen


def spread(ids: Int64s, salt: int) -> NDArray[np.float64]:
    """A pseudo-random, deterministic number in [0, 1) for each id (the finaliser of SplitMix64)."""
    z = ids.astype(np.uint64) + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
