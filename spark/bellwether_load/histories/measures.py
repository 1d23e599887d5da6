"""Compute the loads of many partitions from their samples, in one call.

In: samples, rules. Out: arrays with one row per partition. Called by the transform, a few million samples at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellwether_load.histories.hours import Hours, by_hour
from bellwether_load.histories.intervals import between
from bellwether_load.histories.order import usable
from bellwether_load.histories.quantiles import at_weights
from bellwether_load.histories.rules import Rules
from bellwether_load.histories.samples import Bools, Floats, Ints, Samples, counted, inner, summed
from bellwether_load.histories.sizes import produced

DAY = 86_400


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Of a rate over time: half of the time it is at most ``median``, 95 % of the time at most ``p95``.

    ``peak``: the highest rate that was reached or exceeded for a few minutes of one day. NaN where unknown.
    """

    median: Floats
    p95: Floats
    peak: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """Loads of partitions. Rates per second; ``samples`` bound the usable intervals, which cover ``covered`` seconds.

    ``sized``: whether bytes are known; if not, ``produce`` is invalid.
    """

    produce: Levels
    consume: Levels
    messages_median: Floats
    samples: Ints
    covered: Ints
    sized: Bools
    hours: Hours


def measure(samples: Samples, rules: Rules) -> Measures:
    """Load of each partition. A partition with fewer than two usable samples has ``samples`` 0 and NaN."""
    intervals = between(usable(samples, rules.shortest), rules.longest)
    seconds, bounds = intervals.seconds, intervals.bounds
    bytes_in, sized = produced(intervals)
    covered = summed(seconds, bounds)
    (messages_median,) = at_weights(intervals.messages / seconds, seconds, bounds, [(covered + 1) // 2])
    known = np.isfinite(intervals.consume) & (intervals.consume >= 0)
    consume = intervals.consume[known].astype(np.float64)
    every = np.where(known, intervals.consume, np.nan)
    bytes_in = np.nan_to_num(bytes_in)
    return Measures(
        produce=_levels(bytes_in / seconds, seconds, intervals.ended, bounds, rules.peak),
        consume=_levels(consume, seconds[known], intervals.ended[known], counted(known, bounds), rules.peak),
        messages_median=messages_median,
        samples=intervals.samples,
        covered=covered,
        sized=sized,
        hours=by_hour(bytes_in, every, seconds, intervals.ended, bounds),
    )


def _levels(rates: Floats, seconds: Ints, ended: Ints, bounds: Ints, peak: int) -> Levels:
    """The peak is the highest of the days' peaks; an interval belongs to the UTC day of its last second.

    With few samples, less than ``peak`` seconds are required: a twentieth of the covered seconds per day on average, so
    that the peak is never below the 95th percentile.
    """
    total = summed(seconds, bounds)
    owner, day_bounds = _days(ended, bounds)
    days = np.bincount(owner, minlength=len(total))
    required = np.clip(total // np.maximum(days * 20, 1), 1, peak)
    levels = [(total + 1) // 2, (total * 95 + 99) // 100]
    if (days <= 1).all():
        # The usual case, at half the cost: all intervals of each partition are on one day.
        return Levels(*at_weights(rates, seconds, bounds, [*levels, total - required + 1]))
    median, p95 = at_weights(rates, seconds, bounds, levels)
    on_day = summed(seconds, day_bounds)
    (peaks,) = at_weights(rates, seconds, day_bounds, [on_day - required[owner] + 1])
    enough = on_day >= required[owner]
    found = np.full(len(total), np.nan)
    np.fmax.at(found, owner[enough], peaks[enough])
    return Levels(median, p95, found)


def _days(ended: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Days of all partitions: the partition of each day, and the bounds of its intervals."""
    begins = np.ones(len(ended), dtype=np.bool_)
    begins[1:] = (np.diff((ended - 1) // DAY) != 0) | ~inner(bounds, len(ended))
    firsts = np.flatnonzero(begins)
    return np.searchsorted(bounds, firsts, side="right") - 1, np.append(firsts, len(ended))
