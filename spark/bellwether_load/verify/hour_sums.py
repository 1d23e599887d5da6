"""Add up the load of each broker in each hour of the week, before and after a plan, and find the busiest hour.

All hours of a partition are one large whole number with 64 bits for each, so one addition adds all of them. Bits that
would flow into the next hour are refused, never lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bellwether_load.verify.check_report import Faults
from bellwether_load.verify.hour_bound import BITS, HourBound, unpacked
from bellwether_load.verify.load_table import MOST
from bellwether_load.verify.plan_documents import Problem

HOURS = "loads by hour"

HourRow = tuple[str, str, int, memoryview | None, memoryview | None]
"""Topic, topic id, partition, and its bytes/s in and out in each known hour, as 64-bit numbers; out may be None."""

_HEAVIEST = 2**16
"""Largest cost of a byte: with it no partition exceeds 2**62 in an hour."""

_MASKS = (2**64 - MOST, 7 << 61)
"""Bits of an hour that are only set in rates of ``MOST`` or more, and in sums of 2**61 or more: three of them fit."""

_BEFORE, _AFTER, _BOTH = range(3)


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
        self._bound = bound
        self._problem = problem
        self._faults = faults
        self._rows = iter(rows)
        self._row: HourRow | None = None
        self._key: tuple[str, str, int] = ("", "", -1)
        self._high, self._full = (sum(mask << (BITS * lane) for lane in range(len(self.hours))) for mask in _MASKS)
        self._base = {b.id: 0 for b in problem.brokers}
        # Most partitions keep their leader: their loads are added up once, in the third.
        self._led = [dict(self._base) for _ in (_BEFORE, _AFTER, _BOTH)]
        self._less = [dict(self._base) for _ in (_BEFORE, _AFTER, _BOTH)]

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
        if rates is None or rates[3] is None:
            self._faults.add(HOURS, f"{key[0]}-{key[2]} has a load and none by hour")
            return
        asked = self._problem
        produce, consume = self._whole(key, rates[3]), self._whole(key, rates[4])
        byte = asked.produce + asked.replication * (len(replicas) - 1)
        heavy = max(byte, asked.consume, asked.follow)
        if heavy > _HEAVIEST:
            said = f"a byte costs {heavy} %: more than {_HEAVIEST} cannot be added up by hour"
            self._faults.add(HOURS, f"{key[0]}-{key[2]}: {said}")
            return
        follow = asked.follow * produce
        less = follow if byte < asked.follow else 0  # else no hour of the difference is below 0
        more = (byte if less else byte - asked.follow) * produce + asked.consume * consume
        base, full = self._base, 0
        for broker in replicas:
            base[broker] = found = base[broker] + follow
            full |= found
        before, after = leaders
        for place, leader in ((_BOTH, after),) if before == after else ((_BEFORE, before), (_AFTER, after)):
            led = self._led[place]
            if leader in led:
                led[leader] = found = led[leader] + more
                full |= found
                if less:
                    self._less[place][leader] += less
        if full & self._full:
            self._faults.add(HOURS, f"{key[0]}-{key[2]}: a broker would have more than 2**61 hundredths of a byte/s")
            for sums in (self._base, *self._led, *self._less):
                sums.update(dict.fromkeys(sums, 0))
        elif self._bound is not None and not self._faults.any(HOURS):
            self._bound.add(at, key, may, before, more, less)

    def finish(self) -> tuple[Busiest, Busiest]:
        """The busiest broker-hours before and after."""
        return self._busiest(_BEFORE), self._busiest(_AFTER)

    def proved(self, allowed: int | None) -> Fraction | None:
        """The bound, if one is added up and at most ``allowed`` leaders may change; None for any number."""
        return None if self._bound is None else self._bound.proved(self._base, allowed)

    def _take(self, key: tuple[str, str, int]) -> HourRow | None:
        while self._key < key:
            self._row = row = next(self._rows, None)
            if row is None:
                break
            if row[:3] <= self._key:
                said = f"{row[0]}-{row[2]} comes after {self._key[0]}-{self._key[2]}"
                self._faults.add(HOURS, f"{said}: they must be in the order of topic, topic id and partition")
                self._row, self._rows = None, iter(())
                break
            self._key = row[:3]
        return self._row if self._key == key else None

    def _whole(self, key: tuple[str, str, int], rates: memoryview | None) -> int:
        """The rates of all hours as one number."""
        if rates is None:
            return 0
        if len(rates) != len(self.hours):
            self._faults.add(HOURS, f"{key[0]}-{key[2]} has {len(rates)} hours where {len(self.hours)} are known")
            return 0
        found = int.from_bytes(rates, "little")
        if found & self._high and not all(0 <= rate <= MOST for rate in rates):
            self._faults.add(HOURS, f"{key[0]}-{key[2]} has a rate below 0 or above 2**45 bytes/s in an hour")
            return 0
        return found

    def _busiest(self, when: int) -> Busiest:
        loads = {}
        for b in self._problem.brokers:
            if b.open:
                led, less = (sums[when][b.id] + sums[_BOTH][b.id] for sums in (self._led, self._less))
                carried = unpacked(self._base[b.id] + led - less, len(self.hours))
                loads[b.id] = [Fraction(load, b.capacity) for load in carried]
        return Busiest(max(max(of) for of in loads.values()), loads)
