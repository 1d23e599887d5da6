"""Compute loads from hourly rollups: levels of rates, and means by hour of the week (UTC).

In: rows of rollups, a day at a time. Out: arrays with a row a partition. Memory does not grow with the number of days.
Hour 0 of the week begins on Monday at 00:00. Means of one hour add up: the sum over the partitions of a broker is the
broker's mean in that hour, which no sum of quantiles or maxima is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.histories.rollups import HourRows
from bellwether_load.histories.samples import UNKNOWN, Bools, Floats, Ints
from bellwether_load.histories.sketches import LEVELS, STEPS, Sketches, at_seconds

WEEK = 168
DAY_HOURS = 24
LEAST_SECONDS = 900
"""An hour of which less was sampled is unknown: the mean of a few minutes is not that of the hour."""
PEAK_SECONDS = 300
"""The peak is the rate that was reached for so long in a day."""
WHOLE_DAY = 20 * PEAK_SECONDS
"""Seconds that must be sampled of a day for its peak to count; else a twentieth would be less than a peak's."""


_HOURLY = ("in", "covered", "out", "out_covered", "requests", "requests_covered")
"""What is added up by hour of the week."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Of a rate over time: half of the time it is at most ``median``, 95 % of the time at most ``p95``.

    ``peak``: the highest rate that was reached or exceeded for five minutes of one day. NaN where unknown.
    """

    median: Floats
    p95: Floats
    peak: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Loads of partitions, rates in bytes/s. ``sized``: whether bytes are known; if not, ``produce`` is invalid.

    ``produce_hours``, ``consume_hours``: mean rates in each hour of the week, ``UNKNOWN`` where there is none;
    ``request_hours`` likewise, in hundredths of a request/s.
    """

    produce: Levels
    consume: Levels
    samples: Ints
    covered: Ints
    log_bytes: Ints
    sized: Bools
    produce_hours: Ints
    consume_hours: Ints
    request_hours: Ints


class LoadSums:
    """Adds up rollups of so many partitions, which the caller numbers from 0."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._samples, self._log_bytes = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._hours = {name: np.zeros((count, WEEK)) for name in _HOURLY}
        self._in, self._out = _Rates(count), _Rates(count)
        # Of the hours in which bytes are known: bytes and messages, for the hours in which they are not.
        self._sized = [np.zeros(count), np.zeros(count)]
        self._unsized: list[tuple[Ints, Ints, Ints, Sketches]] = []

    def add(self, owner: Ints, hour: Ints, rows: HourRows) -> None:
        """Rows of one day: ``owner``, the number of each row's partition, and ``hour`` of the week."""
        np.add.at(self._samples, owner, rows.samples)
        np.maximum.at(self._log_bytes, owner, rows.log_bytes)
        known = rows.bytes_in != UNKNOWN
        added = (rows.bytes_in, rows.covered, rows.bytes_out, rows.out_covered, rows.requests, rows.requests_covered)
        for name, of in zip(_HOURLY, added, strict=True):
            np.add.at(self._hours[name], (owner, hour), np.maximum(of, 0))
        for total, values in zip(self._sized, (rows.bytes_in, rows.messages), strict=True):
            np.add.at(total, owner[known], values[known])
        self._in.add(owner[known], rows.rates_in.keep(known))
        self._out.add(owner, rows.rates_out)
        if not known.all():
            missing = ~known
            self._unsized.append((owner[missing], hour[missing], rows.messages[missing], rows.rates_in.keep(missing)))

    def loads(self) -> Loads:
        """The loads of all partitions; nothing may be added afterwards."""
        received, messages = self._sized
        per_message = np.divide(received, messages, out=np.full(self._count, np.nan), where=messages > 0)
        sized = np.ones(self._count, np.bool_)
        for owner, hour, sent, sketches in self._unsized:
            ratio = per_message[owner]
            known = ratio > 0
            sized[owner[~known]] = False
            shift = np.rint(np.log2(ratio[known]) * STEPS).astype(np.int64)
            np.add.at(self._hours["in"], (owner[known], hour[known]), sent[known] * ratio[known])
            self._in.add(owner[known], _shifted(sketches.keep(known), shift))
        covered = self._hours["covered"]
        enough = covered >= LEAST_SECONDS
        consuming, asked = self._hours["out_covered"], self._hours["requests_covered"]
        return Loads(
            produce=self._in.levels(),
            consume=self._out.levels(),
            samples=self._samples,
            covered=covered.sum(axis=1).astype(np.int64),
            log_bytes=self._log_bytes,
            sized=sized,
            produce_hours=_mean(self._hours["in"], covered, enough),
            consume_hours=_mean(self._hours["out"], consuming, enough & (consuming > 0)),
            request_hours=_mean(100 * self._hours["requests"], asked, enough & (asked > 0)),
        )


class _Rates:
    """Sketches of partitions, added up day by day, and their peaks."""

    def __init__(self, count: int) -> None:
        self._total = np.zeros((count, LEVELS))
        self._peak = np.full(count, np.nan)

    def add(self, owner: Ints, sketches: Sketches) -> None:
        """The sketches of one day."""
        if not len(sketches.levels):
            return
        low, day = sketches.dense(owner, len(self._total))
        self._total[:, 0] += day[:, 0]
        self._total[:, low : low + day.shape[1] - 1] += day[:, 1:]
        np.cumsum(day, axis=1, out=day)
        seconds = day[:, -1]
        reached = at_seconds(low, day, seconds - PEAK_SECONDS + 1)
        self._peak = np.fmax(self._peak, np.where(seconds >= WHOLE_DAY, reached, np.nan))

    def levels(self) -> Levels:
        """Without a day of ``WHOLE_DAY`` seconds the peak is the 95th percentile, which it never is below."""
        total = np.cumsum(self._total, axis=1)
        seconds = total[:, -1]
        median, p95 = (at_seconds(1, total, np.ceil(seconds * share / 100)) for share in (50, 95))
        return Levels(median, p95, np.fmax(self._peak, p95))


def _shifted(sketches: Sketches, by: Ints) -> Sketches:
    """Sketches of messages/s as those of bytes/s."""
    levels = sketches.levels + np.repeat(by, np.diff(sketches.bounds))
    moved = np.where(sketches.levels > 0, np.clip(levels, 1, LEVELS - 1), 0).astype(np.int16)
    return Sketches(sketches.bounds, moved, sketches.seconds)


def _mean(total: Floats, seconds: Floats, known: Bools) -> Ints:
    rates = np.divide(total, seconds, out=np.zeros_like(total), where=known)
    return np.where(known, np.rint(rates), UNKNOWN).astype(np.int64)


def filled(rates: Ints, which: Sequence[int], usual: Floats) -> NDArray[np.int64]:
    """Rates of each partition in the hours ``which`` of the week.

    An hour that a partition lacks gets the highest rate of the same hour of another day, or ``usual`` where no day has
    it: the rate that it does not exceed for most of the time.
    """
    daily = rates.reshape(len(rates), WEEK // DAY_HOURS, DAY_HOURS).max(axis=1)
    daily = np.where(daily == UNKNOWN, np.rint(np.nan_to_num(usual)).astype(np.int64)[:, None], daily)
    return np.where(rates == UNKNOWN, np.tile(daily, WEEK // DAY_HOURS), rates)[:, list(which)]
