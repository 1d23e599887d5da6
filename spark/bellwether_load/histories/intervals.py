"""What lies between two samples of a partition that follow each other: seconds, messages, and what the log grew by.

In: samples in order of time. Out: the intervals of which something can be said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.histories.samples import UNKNOWN, Bools, Ints, Samples, counted, inner


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Rows of intervals; those of partition i are ``bounds[i]:bounds[i + 1]``.

    ``ended``: when, in seconds since 1970. ``seconds`` > 0. ``messages`` >= 0. ``grown``: bytes by which the leader's
    log grew, or shrank; it means something where ``sized``: one replica led throughout and told its size twice.
    ``consume``: bytes/s, NaN where unknown. ``samples``: for each partition, how many samples bound its intervals.
    """

    bounds: Ints
    ended: Ints
    seconds: Ints
    messages: Ints
    grown: Ints
    sized: Bools
    consume: NDArray[np.float32]
    samples: Ints


def between(samples: Samples, longest: int) -> Intervals:
    """The intervals of at most ``longest`` seconds in which the end of the log did not go back, nor beside them.

    An end that goes back is a log cut short by an unclean election, or a new leader that has not yet heard how far
    the followers are, or a clock that was set back, so that two histories interleave. The steps beside it are no
    better: what is lost there is made good, or the other history is met again.

    Two sizes are compared only under the same leader in the same epoch: each replica rolls and deletes its segments
    by itself, and a replica that led before may have been copied anew since.
    """
    seconds, messages = np.diff(samples.at), np.diff(samples.end)
    within = inner(samples.bounds, len(samples.at))
    back = within & (messages < 0)
    amiss = back.copy()
    amiss[1:] |= back[:-1]
    amiss[:-1] |= back[1:]
    usable = within & ~amiss & (seconds <= longest)
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
        samples=np.diff(counted(bounding, samples.bounds)),
    )
