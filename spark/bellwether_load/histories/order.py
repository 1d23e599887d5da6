"""Sort samples by time, and drop samples that are too close together.

In: samples as read from files: of two samplers at once, of a file read twice, after a clock that was set back, of
brokers that did not answer. Out: the answered ones, in order of time. The result does not depend on the row order.
"""

from __future__ import annotations

import numpy as np

from bellwether_load.histories.samples import UNKNOWN, Bools, Ints, Rows, Samples, inner


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
