"""Samples of many partitions as arrays: sorted, thinned, and compared with those before them.

The samples of one partition are consecutive. The names of the partitions are the caller's. As read from files they may
be of two samplers at once, of a file read twice, after a clock that was set back, or of brokers that did not answer; no
result depends on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# In the columns end and size: not answered, or no number that Kafka could have given.
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rows of samples; those of partition i are ``bounds[i]:bounds[i + 1]``.

    ``at``: seconds since 1970. ``leader``, ``epoch``: as sampled. ``end``: the end offset, ``UNKNOWN`` where there is
    none. ``size``: bytes of the leader's log, likewise. ``consume``: bytes/s out to consumers, NaN where unknown;
    ``requests``: requests/s, likewise.
    """

    bounds: Ints
    at: Ints
    leader: NDArray[np.int32]
    epoch: NDArray[np.int32]
    end: Ints
    size: Ints
    consume: NDArray[np.float32]
    requests: NDArray[np.float32]

    def __len__(self) -> int:
        """How many partitions."""
        return len(self.bounds) - 1

    @property
    def owner(self) -> Ints:
        """For each row the number of its partition."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.bounds))

    def keep(self, kept: Bools) -> Samples:
        """The rows that a mask keeps."""
        return self._rows(kept, counted(kept, self.bounds))

    def take(self, order: Rows) -> Samples:
        """The same rows in another order within each partition."""
        return self._rows(order, self.bounds)

    def _rows(self, rows: Rows | Bools, bounds: Ints) -> Samples:
        _, *columns = fields(self)
        return Samples(bounds, *(getattr(self, column.name)[rows] for column in columns))


def counted(kept: Bools, bounds: Ints) -> Ints:
    """The bounds of what a mask leaves of each group."""
    found = np.zeros(len(bounds), dtype=np.int64)
    np.cumsum(summed(kept, bounds), out=found[1:])
    return found


def summed(values: Ints | Bools, bounds: Ints) -> Ints:
    """The sum of each group, exact; 0 for an empty one. The groups hold all values."""
    found = np.zeros(len(bounds) - 1, dtype=np.int64)
    there = bounds[1:] > bounds[:-1]
    if there.any():
        found[there] = np.add.reduceat(values, bounds[:-1][there], dtype=np.int64)
    return found


def inner(bounds: Ints, length: int) -> Bools:
    """Of the steps from each of so many rows to the next, those that stay in one group."""
    found = np.ones(max(0, length - 1), dtype=np.bool_)
    ends = bounds[1:-1] - 1
    found[ends[(ends >= 0) & (ends < length - 1)]] = False
    return found


def usable(samples: Samples, shortest: int, restart: int) -> Samples:
    """The answered samples of each partition by time, each at least ``shortest`` seconds after the one before.

    They are counted from each multiple of ``restart`` seconds, so that the result does not depend on where the
    given samples begin, if they begin at such a multiple.
    """
    answered = samples.end != UNKNOWN
    if not answered.all():
        samples = samples.keep(answered)
    close = inner(samples.bounds, len(samples.at)) & (np.diff(samples.at) < shortest)
    if not close.any():
        return samples
    # One number that sorts by partition, then by time: moments are below 2 ** 32 seconds, until the year 2106.
    moment = (samples.owner << 32) | samples.at
    if (np.diff(moment) <= 0).any():
        order = _in_time(samples, moment)
        samples, moment = samples.take(order), moment[order]
        close = inner(samples.bounds, len(samples.at)) & (np.diff(samples.at) < shortest)
    return samples.keep(_spaced(samples, moment, close, shortest, restart))


def _in_time(samples: Samples, moment: Ints) -> Rows:
    """Row order by partition and time; of rows at the same time the most recent state comes first."""
    order = np.argsort(moment, kind="stable")
    same = np.diff(moment[order]) == 0
    if same.any():
        tied = np.zeros(len(order), dtype=np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        rows = order[tied]
        # The last key counts most: a later epoch first, then a higher log end, then a known size.
        keys = (samples.consume, samples.leader, samples.size, samples.end, samples.epoch)
        order[tied] = rows[np.lexsort((*(-key[rows] for key in keys), moment[rows]))]
    return order


def _spaced(samples: Samples, moment: Ints, close: Bools, shortest: int, restart: int) -> Bools:
    """Marks the first sample of a partition in each stretch of ``restart`` seconds, the next one that is far enough
    from it, and so on; none that is too close to the first one of the next stretch."""
    owner = samples.owner
    crowded = np.isin(owner, owner[:-1][close])
    begins = np.ones(len(moment), dtype=np.bool_)
    begins[1:] = (np.diff(owner) != 0) | (np.diff(samples.at // restart) != 0)
    firsts = np.flatnonzero(begins)
    ends = np.append(firsts[1:], len(moment))
    after = np.searchsorted(moment, moment + shortest)
    kept = ~crowded
    starts, limits = firsts[crowded[firsts]], ends[crowded[firsts]]
    # One step of all stretches at a time.
    while len(starts):
        kept[starts] = True
        starts = after[starts]
        inside = starts < limits
        starts, limits = starts[inside], limits[inside]
    later = ends[np.cumsum(begins) - 1]
    there = later < len(moment)
    rows, later = np.flatnonzero(there), later[there]
    kept[rows[(owner[later] == owner[rows]) & (moment[later] - moment[rows] < shortest)]] = False
    return kept


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Rows of intervals; those of partition i are ``bounds[i]:bounds[i + 1]``.

    ``ended``: when, in seconds since 1970. ``seconds`` > 0. ``messages`` >= 0. ``grown``: bytes by which the leader's
    log grew, or shrank; valid where ``sized``: one replica led throughout and both sizes are known.
    ``consume``: bytes/s, and ``requests``: requests/s, NaN where unknown. ``bounding``: of all samples, those that
    bound an interval.
    """

    bounds: Ints
    ended: Ints
    seconds: Ints
    messages: Ints
    grown: Ints
    sized: Bools
    consume: NDArray[np.float32]
    requests: NDArray[np.float32]
    bounding: Bools


def between(samples: Samples, longest: int) -> Intervals:
    """Intervals of at most ``longest`` seconds in which the log end did not decrease, nor in an adjacent interval.

    A decreasing log end means a log truncated by an unclean election, a new leader that does not know its followers'
    progress yet, or a clock that was set back, so that two histories interleave. The adjacent intervals are invalid,
    too: they contain the opposite error.

    Two sizes are compared only under the same leader in the same epoch: each replica rolls and deletes its segments
    independently, and a former leader may have copied its log again since.
    """
    seconds, messages = np.diff(samples.at), np.diff(samples.end)
    within = inner(samples.bounds, len(samples.at))
    back = within & (messages < 0)
    invalid = back.copy()
    invalid[1:] |= back[:-1]
    invalid[:-1] |= back[1:]
    usable = within & ~invalid & (seconds <= longest)
    sized = (
        (np.diff(samples.leader) == 0)
        & (np.diff(samples.epoch) == 0)
        & (samples.size[1:] != UNKNOWN)
        & (samples.size[:-1] != UNKNOWN)
    )
    bounding = np.zeros(len(samples.at), dtype=np.bool_)
    bounding[1:] |= usable
    bounding[:-1] |= usable
    # Interval i ends at sample i + 1, and the first sample of a partition ends none.
    ends = np.zeros(len(samples.at), dtype=np.bool_)
    ends[1:] = usable
    return Intervals(
        bounds=counted(ends, samples.bounds),
        ended=samples.at[ends],
        seconds=seconds[usable],
        messages=messages[usable],
        grown=np.diff(samples.size)[usable],
        sized=sized[usable],
        consume=samples.consume[ends],
        requests=samples.requests[ends],
        bounding=bounding,
    )
