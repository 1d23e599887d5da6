"""What plain ways of balancing come to on the same clusters: by leader count, and greedily by load."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparkplans.instances import Instance, leading_costs


@dataclass(frozen=True)
class Result:
    """The busiest broker's load in hundredths of a byte/s, the load that moves, and the seconds it took."""

    busiest: float
    moved: float
    seconds: float


def by_count(found: Instance) -> Result:
    """Each partition's leader is the replica that leads fewest so far: what preferred-leader balance aims at."""
    return _timed(found, lambda: _fill(found.replicas, np.ones(len(found.rates)), np.zeros(found.size.brokers)))


def greedy_by_load(found: Instance) -> Result:
    """The heaviest partition first, each to the replica that carries least so far, wherever it was before."""
    loads, base = leading_costs(found)
    order = np.argsort(-loads, kind="stable")

    def fill() -> NDArray[np.int32]:
        leaders = np.empty(len(loads), np.int32)
        leaders[order] = _fill(found.replicas[order], loads[order].astype(np.float64), base.astype(np.float64))
        return leaders

    return _timed(found, fill)


def _fill(replicas: NDArray[np.int32], weights: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.int32]:
    carried = start.tolist()
    leaders = []
    for row, weight in zip(replicas.tolist(), weights.tolist(), strict=True):
        pick = min(row, key=carried.__getitem__)
        carried[pick] += weight
        leaders.append(pick)
    return np.array(leaders, np.int32)


def _timed(found: Instance, plan: Callable[[], NDArray[np.int32]]) -> Result:
    started = time.perf_counter()
    leaders = plan()
    seconds = time.perf_counter() - started
    loads, base = leading_costs(found)
    carried = base + np.bincount(leaders, loads, minlength=found.size.brokers)
    moved = loads[leaders != found.replicas[:, 0]].sum()
    return Result(float(carried.max()), float(moved), seconds)
