"""Intervals between consecutive samples of a partition: seconds, messages, and growth of the log.

In: samples in order of time. Out: the usable intervals.
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
