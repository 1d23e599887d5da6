"""Partitions and brokers as arrays, for what happens when a broker or a rack is lost.

In: the partitions of a problem. Out: which pairs of leader and next replica each can have. Called by the plan job and
``bellwether losses``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bellwether_load.balancing.blocks import Bools, Int32s, Int64s
from bellwether_load.plan.partition_rows import Rows

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


def loss_input(rows: Rows) -> LossInput:
    """The partitions of a problem with their loads."""
    racks, open_ = [b.rack for b in rows.listed], rows.open[:-1]
    return LossInput(
        rows.size, open_, rows.base, rows.load, rows.takers, rows.may, rows.leader, rows.stays, domains(racks)
    )
