"""Add up the load of each broker in each hour of the week, before and after a plan, and find the busiest hour.

All hours of a partition are one large whole number with 64 bits for each, so one addition adds all of them. Bits that
would flow into the next hour are refused, never lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bellwether.plan_verifier.check_report import Faults
from bellwether.plan_verifier.hour_bound import BITS, HourBound, unpacked
from bellwether.plan_verifier.load_table import MOST
from bellwether.plan_verifier.plan_documents import Broker, Problem

HOURS = "loads by hour"

HourRow = tuple[str, str, int, memoryview | None, memoryview | None]
"""Topic, topic id, partition, and its bytes/s in and out in each known hour, as 64-bit numbers; out may be None."""

_HEAVIEST = 2**16
"""Largest cost of a byte: with it no partition reaches 2**62 in an hour."""


@dataclass(frozen=True)
class Busiest:
    """The highest relative load of an open broker in an hour, and each broker's highest one by hour."""

    load: Fraction
    loads: Mapping[int, Sequence[Fraction]]


class HourSums:
    """Sums over partitions; ``hours`` are those of the week that each row has. ``bound``: adds up each one, too."""

    def __init__(
        self,
        problem: Problem,
        hours: Sequence[int],
        rows: Iterable[HourRow],
        faults: Faults,
        bound: HourBound | None = None,
    ) -> None:
        self.hours = tuple(hours)
        self.bound = bound
        self._problem = problem
        self._faults = faults
        self._rows = iter(rows)
        self._next: HourRow | None = next(self._rows, None)
        lanes = range(len(self.hours))
        self._sign = sum(1 << (BITS * lane + BITS - 1) for lane in lanes)
        self._pad = sum((2**63 - 1 - MOST) << (BITS * lane) for lane in lanes)
        self._full = sum(3 << (BITS * lane + BITS - 2) for lane in lanes)
        self._sums = [{b.id: 0 for b in problem.brokers} for _ in ("before", "after")]

    def add(
        self,
        at: int,
        key: tuple[str, str, int],
        replicas: Sequence[int],
        leaders: tuple[int, int],
        may: Sequence[int],
        *,
        known: bool,
    ) -> None:
        """Add one partition, in row ``at`` of the problem: its leaders before and after, and who may lead it.

        ``known``: it has a load. Keys come in order.
        """
        rates = self._take(key)
        if not known:
            return
        name = f"{key[0]}-{key[2]}"
        if rates is None or rates[3] is None:
            self._faults.add(HOURS, f"{name} has a load and none by hour")
            return
        asked = self._problem
        produce, consume = self._whole(name, rates[3]), self._whole(name, rates[4])
        byte = asked.produce + asked.replication * (len(replicas) - 1)
        if max(byte, asked.consume, asked.follow) > _HEAVIEST:
            self._faults.add(HOURS, f"{name}: a byte costs {byte} %: more than {_HEAVIEST} cannot be added up by hour")
            return
        lead, follow = byte * produce + asked.consume * consume, asked.follow * produce
        for sums, leader in zip(self._sums, leaders, strict=True):
            for broker in replicas:
                found = sums[broker] + (lead if broker == leader else follow)
                if found & self._full:
                    self._faults.add(HOURS, f"broker {broker} would have more than 2**62 hundredths of a byte/s")
                    return
                sums[broker] = found
        if self.bound is not None and not self._faults.any(HOURS):
            self.bound.add(at, name, replicas, may, leaders[0], byte, (lead, follow), (rates[3], rates[4]))

    def finish(self) -> tuple[Busiest, Busiest]:
        """The busiest broker-hours before and after."""
        free = [b for b in self._problem.brokers if b.open]
        before, after = (self._busiest(free, sums) for sums in self._sums)
        return before, after

    def _take(self, key: tuple[str, str, int]) -> HourRow | None:
        row = self._next
        while row is not None and row[:3] < key:
            following = next(self._rows, None)
            if following is not None and following[:3] <= row[:3]:
                said = f"{following[0]}-{following[2]} comes after {row[0]}-{row[2]}"
                self._faults.add(HOURS, f"{said}: they must be in the order of topic, topic id and partition")
                following = None
            row = following
        self._next = row
        return row if row is not None and row[:3] == key else None

    def _whole(self, name: str, rates: memoryview | None) -> int:
        """The rates of all hours as one number."""
        if rates is None:
            return 0
        if len(rates) != len(self.hours):
            self._faults.add(HOURS, f"{name} has {len(rates)} hours where {len(self.hours)} are known")
            return 0
        found = int.from_bytes(rates, "little")
        if found & self._sign or (found + self._pad) & self._sign:
            self._faults.add(HOURS, f"{name} has a rate below 0 or above 2**45 bytes/s in an hour")
            return 0
        return found

    def _busiest(self, brokers: Iterable[Broker], sums: Mapping[int, int]) -> Busiest:
        loads = {b.id: [Fraction(load, b.capacity) for load in unpacked(sums[b.id], len(self.hours))] for b in brokers}
        return Busiest(max(max(of) for of in loads.values()), loads)
