"""Partitions and brokers as arrays, for what happens when a broker or a rack is lost.

In: plain arrays, as the plan job and ``bellwether losses`` have them. Out: which pairs of leader and next replica each
partition can have. Pure numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bellwether_load.plan.problem import NO_BROKER, PartitionInput, ProblemHeader

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BROKER, RACK = "broker", "rack"


@dataclass(frozen=True)
class Pairs:
    """Alternatives of each partition with a choice, a column each: ``leader`` (partitions, alternatives), and by kind
    of loss the ``heir`` that the partition falls to, ``brokers`` for none. ``valid``: whether it is one. ``row``: the
    partition."""

    row: Int64s
    leader: Int32s
    second: Int32s
    heir: Mapping[str, Int32s]
    valid: Bools


@dataclass(frozen=True)
class LossInput:
    """Brokers by index, partitions by row; loads in hundredths of a byte/s.

    ``takers``: (partitions, widest) in the partition's order, its replicas on open brokers in the ISR, padded with the
    number of brokers. ``may``: which of them a plan may make the leader. ``leader``: at present, the number of brokers
    for none. ``stays``: leader and order are not to be chosen. ``domains``: by kind of loss the domain of each broker
    that is lost as a whole, -1 for none.
    """

    capacity: Int64s
    open: Bools
    base: Int64s
    loads: Int64s
    takers: Int32s
    may: Bools
    leader: Int32s
    stays: Bools
    domains: Mapping[str, Int32s]

    @property
    def brokers(self) -> int:
        """How many brokers there are."""
        return len(self.capacity)

    @cached_property
    def free(self) -> Bools:
        """Partitions whose leader or order can be chosen."""
        there = self.takers < self.brokers
        found: Bools = ~self.stays & (there.sum(axis=1) > 1) & (self.may & there).any(axis=1)
        return found

    def heirs(self, kind: str, leader: Int32s, takers: Int32s) -> Int32s:
        """Who leads each partition once its leader's domain is lost: the first in its order outside of it."""
        domain = np.append(self.domains[kind], -2)
        lost = np.append(self.domains[kind], -1)[leader]
        outside = (takers < self.brokers) & (domain[takers] != lost[:, None]) & (takers != leader[:, None])
        first = np.argmax(outside, axis=1)
        rows = np.arange(len(leader))
        found = np.where(outside[rows, first] & (lost >= 0), takers[rows, first], self.brokers)
        return found.astype(np.int32)

    @cached_property
    def pairs(self) -> Pairs:
        """All alternatives of partitions with a choice: a leader, and who comes next; the others keep their order."""
        rows = np.flatnonzero(self.free)
        takers, may, none = self.takers[rows], self.may[rows], np.int32(self.brokers)
        width = takers.shape[1]
        spots = [(i, j) for i in range(width) for j in range(width) if i != j]
        first = takers[:, [i for i, _ in spots]]
        second = takers[:, [j for _, j in spots]]
        valid = (first < none) & (second < none) & may[:, [i for i, _ in spots]]
        heir: dict[str, Int32s] = {}
        for kind, of in self.domains.items():
            domain = np.append(of, -2)
            lost = np.append(of, -1)[first]
            found = np.where((domain[second] != lost) & (lost >= 0), second, none)
            for spot in range(width):
                other = takers[:, spot, None]
                fits = (found == none) & (lost >= 0) & (other < none) & (domain[other] != lost) & (other != first)
                found = np.where(fits, other, found)
            heir[kind] = found.astype(np.int32)
        return Pairs(rows, first, second, heir, valid)

    def ordered(self, second: Int32s, leader: Int32s) -> Int32s:
        """The takers of all partitions in the order leader, second, others."""
        rank = np.where(self.takers == leader[:, None], 0, np.where(self.takers == second[:, None], 1, 2))
        order = np.argsort(rank, axis=1, kind="stable")
        return np.take_along_axis(self.takers, order, axis=1)


def domains(racks: Sequence[str | None]) -> dict[str, Int32s]:
    """Each broker is a domain; so is each rack, if there are two or more of them."""
    names = sorted({rack for rack in racks if rack})
    found = {BROKER: np.arange(len(racks), dtype=np.int32)}
    if len(names) > 1:
        found[RACK] = np.array([names.index(rack) if rack else -1 for rack in racks], np.int32)
    return found


Rates = Callable[[str, int], tuple[int, int | None] | None]
"""P and C of a partition in bytes/s, by topic id and index; None without a measured load."""


def input_of(terms: ProblemHeader, slots: Iterable[PartitionInput], rates: Rates) -> LossInput:
    """A problem with its measured loads as arrays (docs/load/files.md, "The arithmetic").

    Brokers are in the order of their ids. Partitions that are held, have no load, or no candidate stay as they are.
    """
    brokers, cost = sorted(terms.brokers, key=lambda b: b.id), terms.objective
    number = {b.id: at for at, b in enumerate(brokers)} | {NO_BROKER: len(brokers)}
    open_ = {b.id for b in brokers if b.open}
    places = {rack: at for at, rack in enumerate(cost.preferred_racks)}
    rank = {b.id: places.get(b.rack or "", len(places)) for b in brokers}
    base, loads, leaders, stays = [0] * len(brokers), list[int](), list[int](), list[bool]()
    takers, may = list[list[int]](), list[list[bool]]()
    for slot in slots:
        found = rates(slot.topic_id, slot.partition)
        produced, consumed = (0, 0) if found is None else (found[0], found[1] or 0)
        for b in slot.replicas:
            base[number[b]] += cost.following(produced)
        able = [b for b in slot.replicas if b in open_ and b in slot.isr]
        best = min((rank[b] for b in able), default=0)
        loads.append(cost.leading(produced, consumed, len(slot.replicas)))
        leaders.append(number[slot.leader])
        stays.append(bool(slot.held) or found is None or not able)
        takers.append([number[b] for b in able])
        may.append([rank[b] == best for b in able])
    return LossInput(
        np.array([b.capacity for b in brokers], np.int64),
        np.array([b.open for b in brokers], np.bool_),
        np.array(base, np.int64),
        np.array(loads, np.int64),
        _matrix(takers, len(brokers)).astype(np.int32),
        _matrix(may, 0).astype(np.bool_),
        np.array(leaders, np.int32),
        np.array(stays, np.bool_),
        domains([b.rack for b in brokers]),
    )


def _matrix(rows: Sequence[Sequence[int]], padding: int) -> Int64s:
    width = max((len(row) for row in rows), default=1) or 1
    lengths = np.array([len(row) for row in rows], np.int64)
    found = np.full((len(rows), width), padding, np.int64)
    found[np.arange(width) < lengths[:, None]] = [value for row in rows for value in row]
    return found
