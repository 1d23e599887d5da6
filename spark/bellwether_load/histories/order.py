"""Samples in order of time, and no two so close that nothing can be said between them.

In: samples as files gave them: two samplers at once, the same file read twice, a clock that was set back, brokers that
did not answer. Out: the answered ones, rising in time. The result does not depend on the order of the rows.
"""

from __future__ import annotations

import numpy as np

from bellwether_load.histories.samples import UNKNOWN, Bools, Ints, Rows, Samples, inner


def usable(samples: Samples, shortest: int) -> Samples:
    """The answered samples of each partition by time, each at least ``shortest`` seconds after the one before."""
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
    return samples.keep(_spaced(samples, moment, close, shortest))


def _in_time(samples: Samples, moment: Ints) -> Rows:
    """The rows by partition and time; of those at one moment the best informed first, whatever order they came in."""
    order = np.argsort(moment, kind="stable")
    same = np.diff(moment[order]) == 0
    if same.any():
        tied = np.zeros(len(order), dtype=np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        rows = order[tied]
        # The last key counts most. A later epoch knows more, then a further end, then a size where there is one.
        keys = (samples.consume, samples.leader, samples.size, samples.end, samples.epoch)
        order[tied] = rows[np.lexsort((*(-key[rows] for key in keys), moment[rows]))]
    return order


def _spaced(samples: Samples, moment: Ints, close: Bools, shortest: int) -> Bools:
    """Marks the first sample of a partition, the next one that is far enough from it, and so on."""
    kept = np.ones(len(moment), dtype=np.bool_)
    owner = samples.owner
    crowded = np.unique(owner[:-1][close])
    after = np.searchsorted(moment, moment + shortest)
    starts, ends = samples.bounds[crowded], samples.bounds[crowded + 1]
    kept[np.isin(owner, crowded)] = False
    # One step of all crowded partitions at a time.
    while len(starts):
        kept[starts] = True
        starts = after[starts]
        inside = starts < ends
        starts, ends = starts[inside], ends[inside]
    return kept
