"""Bytes received during an interval, also if the log shrank or the leader changed.

In: intervals. Out: bytes for each of them, and for which partitions they are known. The size of a log counts the bytes
of its segments, compressed as they are stored and sent (Kafka: ``UnifiedLog.size``), without indexes and without what
is allocated beforehand; so what it grows by is what producers sent.
"""

from __future__ import annotations

import numpy as np

from bellwether_load.histories.samples import Bools, Floats, Intervals, Ints, counted, summed

# Of the usual bytes per message: below this, something was taken away meanwhile. Above a half, which is what is seen
# when followers lag for a minute and the end that clients see catches up in the next.
LEAST = 0.625


def produced(intervals: Intervals) -> tuple[Floats, Bools]:
    """Bytes of each interval, NaN where unknown; and for each partition whether all are known.

    Growth of the log under one leader gives the bytes directly. If the log shrank, or hardly grew for its messages,
    segments were deleted or compacted; if the leader changed, the sizes of two replicas cannot be compared. Then the
    bytes are messages times the partition's bytes per message, taken from the intervals near its median. A partition
    whose log never grew has no bytes per message, and its load is unknown if it had messages.
    """
    ratio = np.zeros(len(intervals.messages))
    growing = intervals.sized & (intervals.messages > 0) & (intervals.grown > 0)
    np.divide(intervals.grown, intervals.messages, out=ratio, where=growing)
    bounds = counted(growing, intervals.bounds)
    messages, grown, ratio = intervals.messages[growing], intervals.grown[growing], ratio[growing]
    # By messages, so that a few large ones in quiet minutes do not outvote the busy hours.
    median = medians(ratio, messages, bounds)
    usual = np.repeat(median, np.diff(bounds))
    believed = ratio >= usual * LEAST
    near = believed & (ratio * LEAST <= usual)
    per_message = np.full(len(median), np.nan)
    near_messages = summed(np.where(near, messages, 0), bounds)
    np.divide(summed(np.where(near, grown, 0), bounds), near_messages, out=per_message, where=near_messages > 0)

    known = ~np.isnan(per_message) | (summed(intervals.messages, intervals.bounds) == 0)
    bytes_in = np.zeros(len(intervals.messages))
    moved = intervals.messages > 0
    bytes_in[moved] = (intervals.messages * np.repeat(per_message, np.diff(intervals.bounds)))[moved]
    bytes_in[np.flatnonzero(growing)[believed]] = grown[believed]
    return bytes_in, known


def medians(values: Floats, weights: Ints, bounds: Ints) -> Floats:
    """The least value of each group with which half of its weight is reached, exactly; NaN for an empty group.

    ``weights`` are at least 1. All groups are rows of one matrix: those of an hour have much the same length.
    """
    inside = np.arange(np.diff(bounds).max(initial=0)) < np.diff(bounds)[:, None]
    cells, heavy = np.full(inside.shape, np.inf), np.zeros(inside.shape, np.int64)
    cells[inside], heavy[inside] = values, weights
    order = np.argsort(cells, axis=1)
    reached = np.cumsum(np.take_along_axis(heavy, order, 1), axis=1)
    found, there = np.full(len(inside), np.nan), np.flatnonzero(np.diff(bounds))
    place = (reached[there] < (reached[there, -1:] + 1) // 2).sum(axis=1)
    found[there] = cells[there, order[there, place]]
    return found
