"""Samples of partitions made up from a few words, for the arithmetic of loads.

In: how much is sent, and what happens to the log. Out: samples one by one, and as the arrays that are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from bellwether_load.histories.loads import Levels, Loads, LoadSums
from bellwether_load.histories.rollups import HOUR, LONGEST, MARGINS, SHORTEST, roll
from bellwether_load.histories.samples import UNKNOWN, Floats, Ints, Samples, between, usable
from bellwether_load.histories.sizes import produced
from bellwether_load.jobs.load_parts import hour_of_week
from bellwether_load.store.rollups.rollup_files import rows_of, table_of

MIDNIGHT = 1_795_132_800


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample; None for what was not answered. Moments count from midnight."""

    at: int
    end: int | None
    size: int | None = None
    leader: int = 1
    epoch: int = 1
    consume: float | None = None
    requests: float | None = None


History = Sequence[Sample]


def steady(minutes: int = 60, messages: int = 100, each: int = 10, *, first: int = 0) -> list[Sample]:
    """A sample a minute of a partition to which as many messages, of so many bytes, are sent in each minute."""
    return [Sample(60 * m, messages * m, messages * each * m) for m in range(first, first + minutes)]


def rates(per_minute: Sequence[int], each: int = 10) -> list[Sample]:
    """A sample a minute of a partition that gets so many messages in one minute after the other."""
    ends = np.cumsum([0, *per_minute]).tolist()
    return [Sample(60 * m, end, end * each) for m, end in enumerate(ends)]


def deleted(history: History, minute: int, size: int) -> list[Sample]:
    """From that minute on so many bytes of the log are gone."""
    return [replace(s, size=s.size - size if s.at >= 60 * minute and s.size is not None else s.size) for s in history]


def led(history: History, minute: int, leader: int, *, larger: int = 0) -> list[Sample]:
    """From that minute on another replica leads, whose log is larger by so many bytes."""
    return [
        replace(s, leader=leader, epoch=s.epoch + 1, size=None if s.size is None else s.size + larger)
        if s.at >= 60 * minute
        else s
        for s in history
    ]


def samples(*histories: History) -> Samples:
    """The samples of some partitions side by side, in the order given."""
    rows = [sample for history in histories for sample in history]
    return Samples(
        bounds=np.cumsum([0, *map(len, histories)]),
        at=np.array([MIDNIGHT + s.at for s in rows], dtype=np.int64),
        leader=np.array([s.leader for s in rows], dtype=np.int32),
        epoch=np.array([s.epoch for s in rows], dtype=np.int32),
        end=np.array([UNKNOWN if s.end is None else s.end for s in rows], dtype=np.int64),
        size=np.array([UNKNOWN if s.size is None else s.size for s in rows], dtype=np.int64),
        consume=np.array([np.nan if s.consume is None else s.consume for s in rows], dtype=np.float32),
        requests=np.array([np.nan if s.requests is None else s.requests for s in rows], dtype=np.float32),
    )


def measured(*histories: History) -> Loads:
    """What these partitions carry, by way of hourly rollups as they are stored."""
    found = samples(*histories)
    sums = LoadSums(len(found))
    for _, hours in groupby(sorted(set((found.at // HOUR).tolist())), key=lambda hour: hour // 24):
        tables, owners, weeks = [], [], []
        for hour in hours:
            start = hour * HOUR
            around = (found.at >= start - MARGINS[0]) & (found.at <= start + HOUR + MARGINS[1])
            there, rows = roll(found.keep(around), start)
            owner = np.flatnonzero(there)
            keys = {"topic": ["t"] * len(owner), "topic_id": ["i"] * len(owner), "partition": owner}
            tables.append(table_of(pa.table(keys), start, rows))
            owners.append(owner)
            weeks.append(np.full(len(owner), hour_of_week(start)))
        sums.add(np.concatenate(owners), np.concatenate(weeks), rows_of(pa.concat_tables(tables)))
    return sums.loads()


def exact(*histories: History) -> Levels:
    """Median and 95th percentile of bytes/s in, from all intervals of the whole histories; no peak."""
    intervals = between(usable(samples(*histories), SHORTEST, MARGINS[0]), LONGEST)
    bytes_in, _ = produced(intervals)
    rates, ends = np.nan_to_num(bytes_in) / intervals.seconds, intervals.bounds[1:-1]
    found = [_levels(*of) for of in zip(np.split(rates, ends), np.split(intervals.seconds, ends), strict=True)]
    median, p95 = np.array(found).T
    return Levels(median, p95, np.full(len(median), np.nan))


def _levels(rates: Floats, seconds: Ints) -> tuple[float, float]:
    """The rates that are not exceeded for half and for 95 % of the seconds; NaN without any."""
    order, total = np.argsort(rates), int(seconds.sum())
    reached = np.cumsum(seconds[order])
    at = np.searchsorted(reached, [(total + 1) // 2, (total * 95 + 99) // 100])
    median, p95 = rates[order[at]] if total else (np.nan, np.nan)
    return float(median), float(p95)
