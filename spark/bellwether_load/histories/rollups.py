"""Roll up one hour of samples: a row a partition with its traffic and sketches of its rates.

In: the samples of the hour, and those around it that its first and last intervals need (``margins``). Out: arrays with
a row for each partition that was sampled in the hour. An interval belongs to the hour of its last second, so each one
is in exactly one rollup.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellwether_load.histories.samples import UNKNOWN, Bools, Floats, Ints, Samples, between, counted, summed, usable
from bellwether_load.histories.sizes import produced
from bellwether_load.histories.sketches import Sketches, sketched

HOUR = 3_600
SHORTEST = 30
"""Samples closer together are not compared: moments are whole seconds, and the clocks of two samplers differ."""
LONGEST = 600
"""Longer intervals, in seconds, are gaps."""
MARGINS = (2 * LONGEST, LONGEST)
"""How long before and after an hour samples decide on its intervals: each depends on the one before and after."""


@dataclass(frozen=True, slots=True, eq=False)
class HourRows:
    """Rows of partitions in one hour, or in several; ``UNKNOWN`` where a number is not known.

    ``samples`` that bound usable intervals; these end in the hour and cover ``covered`` seconds. ``messages`` and
    ``bytes_in`` of them; unknown bytes: no log grew, so ``rates_in`` are messages/s. ``bytes_out``, an estimate, and
    the seconds ``out_covered`` of which it is known; ``requests`` and ``requests_covered`` likewise. ``log_bytes``: the
    largest size of the leader's log.
    """

    samples: Ints
    covered: Ints
    messages: Ints
    bytes_in: Ints
    bytes_out: Ints
    out_covered: Ints
    requests: Ints
    requests_covered: Ints
    log_bytes: Ints
    rates_in: Sketches
    rates_out: Sketches


def roll(samples: Samples, start: int) -> tuple[Bools, HourRows]:
    """Which of the partitions were sampled in the hour that begins at ``start``, and their rows."""
    inside = (samples.at >= start) & (samples.at < start + HOUR)
    there = summed(inside, samples.bounds) > 0
    sizes = np.where(inside, samples.size, UNKNOWN)
    ordered = usable(samples, SHORTEST, MARGINS[0])  # at which hours begin, and what is read for each
    intervals = between(ordered, LONGEST)
    bytes_in, sized = produced(intervals)
    in_hour = (intervals.ended > start) & (intervals.ended <= start + HOUR)
    bounds, seconds = counted(in_hour, intervals.bounds), intervals.seconds[in_hour]
    there |= np.diff(bounds) > 0
    messages = intervals.messages[in_hour]
    sized |= summed(messages, bounds) == 0
    owner = np.repeat(np.arange(len(samples)), np.diff(bounds))
    received = np.where(sized[owner], np.nan_to_num(bytes_in[in_hour]), messages)
    consume, requests = (of[in_hour].astype(np.float64) for of in (intervals.consume, intervals.requests))
    known = np.isfinite(consume) & (consume >= 0)
    bytes_out, out_covered = _estimated(consume, seconds, bounds)
    asked, asked_covered = _estimated(requests, seconds, bounds)
    in_time = intervals.bounding & (ordered.at >= start) & (ordered.at < start + HOUR)
    rows = HourRows(
        samples=summed(in_time, ordered.bounds)[there],
        covered=summed(seconds, bounds)[there],
        messages=summed(messages, bounds)[there],
        bytes_in=np.where(sized, _rounded(received, bounds), UNKNOWN)[there],
        bytes_out=bytes_out[there],
        out_covered=out_covered[there],
        requests=asked[there],
        requests_covered=asked_covered[there],
        log_bytes=_largest(sizes, samples.bounds)[there],
        rates_in=sketched(received / seconds, seconds, bounds).keep(there),
        rates_out=sketched(consume[known], seconds[known], counted(known, bounds)).keep(there),
    )
    return there, rows


def _estimated(rates: Floats, seconds: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """What rates a second add up to, ``UNKNOWN`` without any, and the seconds of which one is known."""
    known = np.isfinite(rates) & (rates >= 0)
    within, for_seconds = counted(known, bounds), seconds[known]
    covered = summed(for_seconds, within)
    return np.where(covered > 0, _rounded(rates[known] * for_seconds, within), UNKNOWN), covered


def _rounded(values: Floats, bounds: Ints) -> Ints:
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.rint(np.bincount(owner, values, len(bounds) - 1)).astype(np.int64)


def _largest(values: Ints, bounds: Ints) -> Ints:
    found = np.full(len(bounds) - 1, UNKNOWN, np.int64)
    there = bounds[1:] > bounds[:-1]
    if there.any():
        found[there] = np.maximum.reduceat(values, bounds[:-1][there])
    return found
