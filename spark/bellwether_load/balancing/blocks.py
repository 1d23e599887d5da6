"""Brokers, and blocks of partitions with a choice (their loads, eligible brokers and leaders), as arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bellwether_load.plan.partition_rows import Rows

Number = TypeVar("Number", np.int64, np.float64)

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Tell = Callable[[str], None]
"""Takes a line about how planning goes on."""
_ANY = 2**62
_ROUNDED = 1e-5
_NEAR = 1e-12


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
    def of(cls, rows: Rows) -> Block:
        """The partitions of a problem that have a choice."""
        ids = np.flatnonzero(rows.free)
        return cls.at_start(rows.brokers, ids, rows.load[ids], rows.eligible[ids], rows.home[ids])

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
