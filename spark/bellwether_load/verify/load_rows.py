"""Loads of partitions in columns of 64 bits of one large number: the statistic, then each known hour of the week, and
the same hours again for requests where these count.

One addition adds all columns. A row is only judged when a partition of the problem asks for it: what others carry is of
no concern.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bellwether_load.verify.checks import Faults
from bellwether_load.verify.row_streams import Key, Stream

LOADS = "loads"
HOURS = "loads by hour"

MOST = 2**45
"""Bytes/s that no partition can carry; with weights and sums they stay within 64 bits."""
MOST_REQUESTS = 2**30
"""Hundredths of a request/s that no partition can get."""
BITS = 64
"""Bits of a column."""

LoadRow = tuple[str, str, int, float | None, float | None, memoryview | None, memoryview | None, memoryview | None]
"""Topic, topic id, partition, the statistic of produce and of consume, and bytes/s in and out and hundredths of a
request/s in each known hour of the week, as 64-bit numbers; consume and requests may be None."""


class Load(NamedTuple):
    """Whole bytes/s in and out, in columns; nothing out where that is not measured. ``requests``: in their columns."""

    produce: int
    consume: int
    consume_known: bool
    requests: int = 0
    requests_known: bool = False


class LoadRows:
    """Loads by partition. ``hours``: those of the week that each row has. ``requests``: whether they count."""

    def __init__(
        self,
        rows: Iterable[LoadRow],
        faults: Faults,
        statistic: str = "P95",
        hours: Sequence[int] = (),
        *,
        requests: bool = False,
    ) -> None:
        self.hours = tuple(hours)
        self.columns = 1 + len(self.hours) * (1 + requests)
        self._names = f"produce_{statistic.lower()}", f"consume_{statistic.lower()}"
        self._faults = faults
        self._ones = sum(1 << BITS * lane for lane in range(len(self.hours)))
        wrong = "loads must be in the order of topic, topic id and partition, each once"
        self._rows = Stream(rows, lambda text: faults.add(LOADS, f"{text}: {wrong}"))

    def of(self, key: Key) -> Load | None:
        """The load of a partition; None where it has none, or none that a plan can rest on. Keys come in order."""
        row = self._rows.take(key)
        if row is None:
            return None
        name = f"{key[0]}-{key[2]}"
        wrong = [f"{self._names[0]} is null"] if row[3] is None else []
        for column, value in zip(self._names, row[3:5], strict=True):
            if value is not None and not 0 <= value <= MOST:
                what = "is not a number" if math.isnan(value) else f"is {value:g}"
                wrong.append(f"{column} {what}: bytes/s from 0 to 2**45 are wanted")
        if wrong:
            self._faults.add(LOADS, f"{name}: {wrong[0]}")
            return None
        produce, consume = round(row[3] or 0), round(row[4] or 0)  # halves to the even number
        if self.hours:
            if row[5] is None:
                self._faults.add(HOURS, f"{name} has a load and none by hour")
            produce |= self._packed(name, row[5]) << BITS
            consume |= self._packed(name, row[6]) << BITS
        if self.columns <= 1 + len(self.hours):
            return Load(produce, consume, row[4] is not None)
        requests = self._packed(name, row[7], MOST_REQUESTS) << BITS * (1 + len(self.hours))
        return Load(produce, consume, row[4] is not None, requests, row[7] is not None)

    def _packed(self, name: str, rates: memoryview | None, most: int = MOST) -> int:
        """The rates of all hours as one number."""
        if rates is None:
            return 0
        if len(rates) != len(self.hours):
            self._faults.add(HOURS, f"{name} has {len(rates)} hours where {len(self.hours)} are known")
            return 0
        found = int.from_bytes(rates, "little")
        if found & self._ones * (2**BITS - most) and not all(0 <= rate <= most for rate in rates):
            limit = "2**45 bytes/s" if most == MOST else "2**30 hundredths of a request/s"
            self._faults.add(HOURS, f"{name} has a rate below 0 or above {limit} in an hour")
            return 0
        return found


def unpacked(packed: int, columns: int) -> memoryview:
    """The numbers of all columns that one number holds, each from 0 to 2**63 - 1."""
    return memoryview(packed.to_bytes(columns * BITS // 8, "little")).cast("q")
