"""Weighted quantiles of many groups at once; exact, and independent of the order of the groups.

In: values in groups, each with a whole weight (seconds, messages). Out: for each group the value at a weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bellwether_load.histories.samples import Floats, Ints, Rows

# Groups are sorted together, as the rows of a matrix that stays in a processor's cache.
_CELLS = 1 << 18


def at_weights(values: Floats, weights: Ints, bounds: Ints, wanted: Sequence[Ints]) -> list[Floats]:
    """For each array of weights: the smallest value at which a group's cumulative weight reaches it.

    ``values`` are finite, ``weights`` at least 1; group i is ``bounds[i]:bounds[i + 1]``. Each of ``wanted`` holds one
    weight a group; one beyond the group's total means the total, one below 1 its least value. NaN for an empty group.
    """
    found = [np.full(len(bounds) - 1, np.nan) for _ in wanted]
    for groups, width in _matrices(np.diff(bounds)):
        rows = bounds[groups][:, None] + np.arange(width)
        inside = rows < bounds[groups + 1][:, None]
        full = bool(inside.all())
        rows = rows if full else np.where(inside, rows, 0)
        cells = values[rows] if full else np.where(inside, values[rows], np.inf)
        heavy = weights[rows] if full else np.where(inside, weights[rows], 0)
        order = np.argsort(cells, axis=1)
        reached = np.cumsum(np.take_along_axis(heavy, order, 1), axis=1)
        last = np.diff(bounds)[groups] - 1
        for answer, weight in zip(found, wanted, strict=True):
            place = np.minimum((reached < weight[groups][:, None]).sum(axis=1), last)
            column = np.take_along_axis(order, place[:, None], 1)
            answer[groups] = np.take_along_axis(cells, column, 1)[:, 0]
    return found


def _matrices(lengths: Ints) -> Iterator[tuple[Rows, int]]:
    """Groups of similar lengths, none empty, and the greatest length among them."""
    order: NDArray[np.intp] = np.argsort(lengths, kind="stable")
    start = int(np.searchsorted(lengths[order], 1))
    while start < len(order):
        # Lengths rise, so the last group of a matrix is the widest: at most a quarter of its cells is empty.
        least = int(lengths[order[start]])
        end = int(np.searchsorted(lengths[order], least + least // 4, side="right"))
        end = min(end, start + max(1, _CELLS // least))
        yield order[start:end], int(lengths[order[end - 1]])
        start = end
