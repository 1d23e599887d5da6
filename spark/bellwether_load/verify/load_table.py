"""Load table: the load of each partition by topic id and index, kept small; and what loads rest on.

In: rows in the order of (topic id, partition). Out: P and C as whole bytes/s, no C where it is not measured. A row is
only judged when a partition of the problem asks for it: what others carry is of no concern.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bellwether_load.verify.plan_documents import Evidence

MOST = 2**45
"""Bytes/s that no partition can carry; with weights and sums they stay within 64 bits."""

LoadRow = tuple[str, int, float | None, float | None]
"""Topic id, partition, the statistic of produce, and of consume."""


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


EVIDENCE = "evidence"


def evidence_faults(
    said: Evidence, account: Mapping[str, Any], partitions: int, without_load: int, hours: int
) -> Iterator[str]:
    """What differs. ``hours``: how many hours of the week the loads' files have."""
    for name, claimed in (("since", said.since), ("until", said.until)):
        if claimed != account.get(name):
            yield f"{name} is {claimed!r}, the loads have {account.get(name)!r}"
    if hours and account.get("hours") != hours:
        yield f"the account of the loads says {account.get('hours')!r} hours, their files have {hours}"
    if said.hours != account.get("hours", 0):
        yield f"hours is {said.hours}, the loads know {account.get('hours', 0)!r}"
    share = _share(account, partitions, without_load)
    if abs(said.share - share) > 1e-9:
        yield f"share is {said.share!r}, the loads give {share!r}"


def _share(account: Mapping[str, Any], partitions: int, without: int) -> float:
    """As docs/load/files.md defines it."""
    sampled, loads, known, few = (account.get(k, 0) for k in ("partitions", "loads", "logBytes", "logBytesWithoutLoad"))
    if not partitions or not sampled or not known + few:
        return 1 - without / partitions if partitions else 1.0
    thin = min(without, sampled - loads)
    inside = known * min(1.0, (partitions - without) / loads) if loads else 0.0
    outside = (few * thin / (sampled - loads) if thin else 0.0) + (without - thin) * (known + few) / sampled
    return float(inside / (inside + outside)) if inside + outside else 0.0
