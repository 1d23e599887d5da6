"""Loads of partitions: the statistic in a small table, and rates by hour of the week as rows that are read once.

Out: whole bytes/s, no consumption where it is not measured. A row is only judged when a partition of the problem asks
for it: what others carry is of no concern.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from bellwether_load.verify.checks import Faults

HOURS = "loads by hour"

MOST = 2**45
"""Bytes/s that no partition can carry; with weights and sums they stay within 64 bits."""

BITS = 64
"""Bits of a column in a number that holds all columns."""

LoadRow = tuple[str, int, float | None, float | None]
"""Topic id, partition, the statistic of produce, and of consume."""

HourRow = tuple[str, str, int, memoryview | None, memoryview | None]
"""Topic, topic id, partition, and its bytes/s in and out in each known hour, as 64-bit numbers; out may be None."""


class Unusable(ValueError):
    """A load that no plan can rest on: says which column, and why."""


class LoadTable:
    """Millions of loads in arrays of 21 bytes a row. Rows come in the order of (topic id, partition)."""

    def __init__(self, rows: Iterable[LoadRow] = (), columns: tuple[str, str] = ("produce", "consume")) -> None:
        self._columns = columns
        self._ranges: dict[str, tuple[int, int]] = {}
        self._partitions = array("i")
        self._produce = array("d")
        self._consume = array("d")
        self._known = array("b")
        self.extend(rows)

    def __len__(self) -> int:
        return len(self._partitions)

    def extend(self, rows: Iterable[LoadRow]) -> None:
        """Add rows that go on where the last ones ended."""
        topic_id, start = None, 0
        for row in rows:
            if row[0] != topic_id:
                if topic_id is not None:
                    self._ranges[topic_id] = (start, len(self))
                topic_id = row[0]
                start, end = self._ranges.get(topic_id, (len(self), len(self)))
                if end != len(self):
                    raise ValueError("load rows must come in the order of (topic id, partition)")
            self._partitions.append(row[1])
            self._produce.append(math.nan if row[2] is None else row[2])
            self._consume.append(0.0 if row[3] is None else row[3])
            self._known.append((row[2] is not None) + 2 * (row[3] is not None))
        if topic_id is not None:
            self._ranges[topic_id] = (start, len(self))

    def of(self, topic_id: str, partition: int) -> tuple[int, int | None] | None:
        """P and C of a partition, or None where there is no row; C is None if null. Unusable names the column."""
        start, end = self._ranges.get(topic_id, (0, 0))
        partitions = self._partitions
        at = start + partition  # its row if no partition is missing
        if at >= end or partitions[at] != partition:
            at = bisect_left(partitions, partition, start, end)
            if at >= end or partitions[at] != partition:
                return None
        if (at + 1 < end and partitions[at + 1] == partition) or (at > start and partitions[at - 1] == partition):
            raise Unusable("the loads have more than one row for it")
        if not self._known[at] & 1:
            raise Unusable(f"{self._columns[0]} is null")
        consumed = self._whole(self._consume[at], 1) if self._known[at] & 2 else None
        return self._whole(self._produce[at], 0), consumed

    def _whole(self, value: float, column: int) -> int:
        if not 0 <= value <= MOST:
            what = "is not a number" if math.isnan(value) else f"is {value:g}"
            raise Unusable(f"{self._columns[column]} {what}: bytes/s from 0 to 2**45 are wanted")
        return round(value)  # halves to the even number


class HourRates:
    """Rates in the known ``hours`` of the week. Rows come in the order of (topic, topic id, partition), as keys do.

    All hours of a partition are one large whole number with 64 bits for each, so one addition adds all of them.
    """

    def __init__(self, hours: Sequence[int], rows: Iterable[HourRow], faults: Faults) -> None:
        self.hours = tuple(hours)
        self._rows = iter(rows)
        self._row: HourRow | None = None
        self._key: tuple[str, str, int] = ("", "", -1)
        self._faults = faults
        self._high = sum((2**BITS - MOST) << BITS * lane for lane in range(len(self.hours)))

    def of(self, key: tuple[str, str, int]) -> tuple[int, int]:
        """Bytes/s in and out of a partition that has a load; 0 where something is wrong with them."""
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
        row = self._row if self._key == key else None
        if row is None or row[3] is None:
            self._faults.add(HOURS, f"{key[0]}-{key[2]} has a load and none by hour")
            return 0, 0
        return self._whole(key, row[3]), self._whole(key, row[4])

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


def unpacked(packed: int, columns: int) -> memoryview:
    """The numbers of all columns that one number holds, each from 0 to 2**63 - 1."""
    return memoryview(packed.to_bytes(columns * BITS // 8, "little")).cast("q")
