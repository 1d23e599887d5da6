"""The lowest busiest broker-hour that a plain search over whole leaders finds: no linear programs, no prices.

From the leaders given and from several random ones: while a partition of the busiest broker can go to a broker that
stays below, the best such one goes; then some leaders are disturbed, and again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def lowest_found(
    loads: NDArray[np.int64],
    eligible: NDArray[np.int32],
    fixed: NDArray[np.int64],
    capacity: NDArray[np.int64],
    starts: list[NDArray[np.int32]],
    seed: int,
    rounds: int = 60,
) -> float:
    """Relative load. ``loads``: a row a partition, a column an hour; ``fixed``: likewise of brokers."""
    dice = np.random.default_rng(seed)
    rows = np.arange(len(loads))
    best = np.inf
    for start in (*starts, eligible[rows, dice.integers(0, eligible.shape[1], len(rows))]):
        leader, found = _descended(loads, eligible, fixed, capacity, start)
        for _ in range(rounds):
            shaken = leader.copy()
            some = dice.choice(len(rows), max(2, len(rows) // 50), replace=False)
            shaken[some] = eligible[some, dice.integers(0, eligible.shape[1], len(some))]
            other, height = _descended(loads, eligible, fixed, capacity, shaken)
            if height < found:
                leader, found = other, height
        best = min(best, found)
    return float(best)


def _descended(
    loads: NDArray[np.int64],
    eligible: NDArray[np.int32],
    fixed: NDArray[np.int64],
    capacity: NDArray[np.int64],
    start: NDArray[np.int32],
) -> tuple[NDArray[np.int32], float]:
    leader, carried = start.copy(), fixed.astype(np.float64)
    np.add.at(carried, leader, loads)
    while True:
        heights = (carried / capacity[:, None]).max(axis=1)
        busiest = int(heights.argmax())
        mine = np.flatnonzero(leader == busiest)
        row, slot = np.nonzero(eligible[mine] != busiest)
        if not len(row):
            return leader, float(heights[busiest])
        row, to = mine[row], eligible[mine[row], slot]
        there = ((carried[to] + loads[row]) / capacity[to, None]).max(axis=1)
        here = ((carried[busiest] - loads[row]) / capacity[busiest]).max(axis=1)
        after = np.maximum(there, here)
        at = int(after.argmin())
        if after[at] >= heights[busiest] * (1 - 1e-9):
            return leader, float(heights[busiest])
        carried[busiest] -= loads[row[at]]
        carried[to[at]] += loads[row[at]]
        leader[row[at]] = to[at]
