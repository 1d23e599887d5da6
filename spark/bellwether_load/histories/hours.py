"""Mean rates of partitions by hour of the week (UTC), and the values of hours without samples.

Hour 0 begins on Monday at 00:00. Means of one hour add up: the sum over the partitions of a broker is the broker's mean
in that hour, which no sum of quantiles or maxima is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.histories.samples import UNKNOWN, Bools, Floats, Ints, inner

WEEK = 168
DAY_HOURS = 24
LEAST_SECONDS = 900
"""An hour of which less was sampled is unknown: the mean of a few minutes is not that of the hour."""

_HOUR = 3_600
_THURSDAY = 72
"""Hour of the week in which 1970 began."""

RECORD = np.dtype([("hour", "<i2"), ("produce", "<i8"), ("consume", "<i8")])
"""One hour of one partition, in whole bytes/s; ``consume`` is ``UNKNOWN`` where it was not measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """The known hours of partitions, in ascending order; those of partition i are ``bounds[i]:bounds[i + 1]``."""

    bounds: Ints
    records: NDArray[np.void]


def by_hour(bytes_in: Floats, consume: Floats, seconds: Ints, ended: Ints, bounds: Ints) -> Hours:
    """The mean rates in each hour of the week. ``consume``: bytes/s of each interval, NaN where unknown.

    An interval belongs to the hour of its last second.
    """
    at = (ended - 1) // _HOUR
    starts = np.ones(len(at), dtype=np.bool_)
    starts[1:] = (np.diff(at) != 0) | ~inner(bounds, len(at))
    firsts = np.flatnonzero(starts)
    owner = np.searchsorted(bounds, firsts, side="right") - 1
    # The same hour of several weeks is one.
    keys, where = np.unique(owner * WEEK + (at[firsts] + _THURSDAY) % WEEK, return_inverse=True)
    known = np.isfinite(consume)

    def total(values: Floats | Ints) -> Floats:
        found = np.zeros(len(keys))
        if len(firsts):
            np.add.at(found, where, np.add.reduceat(values, firsts, dtype=np.float64))
        return found

    covered, consuming = total(seconds), total(np.where(known, seconds, 0))
    records = np.empty(len(keys), RECORD)
    records["hour"] = keys % WEEK
    records["produce"] = np.rint(total(bytes_in) / covered)
    out = total(np.where(known, consume * seconds, 0.0))
    records["consume"] = np.where(consuming > 0, np.rint(out / np.maximum(consuming, 1)), UNKNOWN)
    enough = covered >= LEAST_SECONDS
    kept = np.searchsorted(keys[enough] // WEEK, np.arange(len(bounds)))
    return Hours(kept.astype(np.int64), records[enough])


def masks(hours: Hours) -> NDArray[np.int32]:
    """The known hours as bits, 24 in each of seven columns: a row a partition."""
    count = len(hours.bounds) - 1
    owner = np.repeat(np.arange(count), np.diff(hours.bounds))
    found = np.zeros((count, WEEK // DAY_HOURS), np.int32)
    at = hours.records["hour"].astype(np.int64)
    np.bitwise_or.at(found, (owner, at // DAY_HOURS), (1 << (at % DAY_HOURS)).astype(np.int32))
    return found


def of_masks(days: Sequence[int]) -> tuple[int, ...]:
    """The hours of the week of these bits."""
    return tuple(
        day * DAY_HOURS + hour for day, bits in enumerate(days) for hour in range(DAY_HOURS) if bits >> hour & 1
    )


def filled(hours: Hours, which: Sequence[int], produce: Floats, consume: Floats) -> tuple[Ints, Ints, Bools]:
    """Rates in and out of each partition in the hours ``which``, and for which partitions those out are known.

    An hour that a partition lacks gets the highest rate of the same hour of another day, or ``produce`` and ``consume``
    where no day has it: the rates that it does not exceed for most of the time.
    """
    count, known = len(hours.bounds) - 1, np.isfinite(consume)
    owner = np.repeat(np.arange(count), np.diff(hours.bounds))

    def whole(name: str, usual: Floats) -> Ints:
        found = np.full((count, WEEK), UNKNOWN, np.int64)
        found[owner, hours.records["hour"]] = hours.records[name]
        daily = found.reshape(count, -1, DAY_HOURS).max(axis=1)
        daily = np.where(daily == UNKNOWN, np.rint(usual).astype(np.int64)[:, None], daily)
        found = np.where(found == UNKNOWN, np.tile(daily, WEEK // DAY_HOURS), found)
        return found[:, list(which)]

    return whole("produce", produce), whole("consume", np.nan_to_num(consume)), known
