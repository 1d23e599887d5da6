"""Sketches of rates: for how many seconds a rate was near each of fixed levels, sixteen to an octave.

A rate counts for the nearest level, so a level is at most 2.2 % off (``ERROR``), and every quantile is, too: rounding
keeps the order of rates. Sketches add up: those of hours give that of a week. Pure numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.histories.samples import Bools, Floats, Ints

STEPS = 16
"""Levels to an octave."""
ERROR = 2 ** (0.5 / STEPS) - 1
LEVELS = 962
"""Level 0 is a rate of 0, level 1 is 2**-10 a second, the last one 2**50."""

_FIRST = 1 + 10 * STEPS


@dataclass(frozen=True, slots=True, eq=False)
class Sketches:
    """Sketches of many rows: those of row i are ``bounds[i]:bounds[i + 1]``, ascending levels, each with seconds."""

    bounds: Ints
    levels: NDArray[np.int16]
    seconds: NDArray[np.int16]

    def keep(self, kept: Bools) -> Sketches:
        """The sketches of the rows that a mask keeps."""
        inside = np.repeat(kept, np.diff(self.bounds))
        bounds = np.append(0, np.cumsum(np.diff(self.bounds)[kept]))
        return Sketches(bounds, self.levels[inside], self.seconds[inside])

    def dense(self, owner: Ints, count: int) -> tuple[int, Floats]:
        """Seconds at each level as a matrix of ``count`` rows; ``owner``: which of them each of these rows adds to.

        The first column is level 0, the next one the level that is returned, and so on up to the highest there is.
        """
        positive = self.levels[self.levels > 0]
        low, high = (int(positive.min()), int(positive.max())) if len(positive) else (1, 0)
        width = high - low + 2
        cells = np.repeat(owner, np.diff(self.bounds)) * width + np.maximum(self.levels - (low - 1), 0)
        found: Floats = np.bincount(cells, self.seconds, count * width).astype(np.float64, copy=False)
        return low, found.reshape(count, width)


def sketched(rates: Floats, seconds: Ints, bounds: Ints) -> Sketches:
    """The sketches of groups of rates, each of which lasted so many seconds."""
    owner = np.repeat(np.arange(len(bounds) - 1, dtype=np.int64), np.diff(bounds))
    cells, where = np.unique(owner * LEVELS + level_of(rates), return_inverse=True)
    total = np.bincount(where, seconds, len(cells))
    ends = np.searchsorted(cells, np.arange(len(bounds)) * LEVELS)
    return Sketches(ends.astype(np.int64), (cells % LEVELS).astype(np.int16), total.astype(np.int16))


def level_of(rates: Floats) -> Ints:
    """The level nearest to each rate, which is finite and not negative."""
    with np.errstate(divide="ignore"):
        found = np.rint(np.log2(rates) * STEPS) + _FIRST
    return np.where(rates > 0, np.clip(found, 1, LEVELS - 1), 0).astype(np.int64)


def rate_of(levels: Ints) -> Floats:
    """The rate that a level means."""
    return np.where(levels > 0, np.exp2((levels - _FIRST) / STEPS), 0.0)


def at_seconds(low: int, cumulative: Floats, wanted: Floats) -> Floats:
    """Of each row the rate at which its seconds up to there reach the wanted ones, at least 1; NaN for an empty row.

    ``low``: the level of the second column, as :meth:`Sketches.dense` has them.
    """
    place = (cumulative < np.maximum(wanted, 1)[:, None]).sum(axis=1)
    rates = rate_of(np.append(0, np.arange(low, low + cumulative.shape[1])))
    return np.where(cumulative[:, -1] > 0, rates[place], np.nan)
