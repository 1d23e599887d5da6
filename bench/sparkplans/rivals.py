"""What simple ways of balancing reach on the same clusters: by leader count, and greedily from the present leaders.

Loads are in hundredths of a byte/s, a broker's relative to its capacity of 100 is in bytes/s.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparkplans.instances import Instance, leading_costs


@dataclass(frozen=True)
class Result:
    """Load of the busiest broker relative to its capacity, load and number of leaders that change, and CPU seconds."""

    busiest: float
    moved: float
    changed: int
    cpu_seconds: float


def by_count(found: Instance) -> Result:
    """Each partition's leader is the replica that leads fewest so far: what preferred-leader balance aims at."""
    began = time.process_time()
    leads = [0] * found.case.brokers
    leaders = []
    for row in found.replicas.tolist():
        pick = min(row, key=leads.__getitem__)
        leads[pick] += 1
        leaders.append(pick)
    return _result(found, np.array(leaders, np.int32), began)


def greedy(found: Instance) -> Result:
    """From the present leaders: the busiest broker gives up the one partition that lowers the busier of both most.

    Until no partition of the busiest broker does, or as many leaders have changed as ``max_moves`` allows.
    """
    began = time.process_time()
    loads, base = leading_costs(found)
    leaders = found.replicas[:, 0].copy()
    carried = (base + np.bincount(leaders, loads, minlength=found.case.brokers)) / found.capacity
    led = _by_leader(leaders, found.case.brokers)
    queue = [(-load, broker) for broker, load in enumerate(carried.tolist())]
    heapq.heapify(queue)
    moved = dict[int, None]()
    limit = found.case.max_moves or len(loads)
    while queue and len(moved) < limit:
        load, broker = heapq.heappop(queue)
        if -load != carried[broker]:
            heapq.heappush(queue, (-carried[broker], broker))
            continue
        mine = led[broker]
        others = found.replicas[mine]
        after = carried[others] + loads[mine, None] / found.capacity[others]
        after[others == broker] = np.inf
        to = after.argmin(axis=1)
        worse = np.maximum(after[np.arange(len(mine)), to], carried[broker] - loads[mine] / found.capacity[broker])
        if not len(mine) or worse.min() >= carried[broker]:
            break
        pick = int(worse.argmin())
        partition, target = int(mine[pick]), int(others[pick, to[pick]])
        carried[broker] -= loads[partition] / found.capacity[broker]
        carried[target] += loads[partition] / found.capacity[target]
        leaders[partition] = target
        led[broker] = np.delete(mine, pick)
        led[target] = np.append(led[target], partition)
        moved[partition] = None
        heapq.heappush(queue, (-carried[broker], broker))
    return _result(found, leaders, began)


def fewest_changes(found: Instance, busiest: float) -> int:
    """At least so many leaders change in every plan with this load on the busiest broker: the heaviest ones go."""
    loads, base = leading_costs(found)
    leaders = found.replicas[:, 0]
    before = base + np.bincount(leaders, loads, minlength=found.case.brokers)
    count = 0
    for broker, mine in enumerate(_by_leader(leaders, found.case.brokers)):
        excess = before[broker] - busiest * found.capacity[broker] * (1 + 1e-9)
        if excess > 0:
            count += int(np.searchsorted(np.sort(loads[mine])[::-1].cumsum(), excess)) + 1
    return count


def _by_leader(leaders: NDArray[np.int32], brokers: int) -> list[NDArray[np.int64]]:
    order = np.argsort(leaders, kind="stable")
    return list(np.split(order, np.searchsorted(leaders[order], np.arange(1, brokers))))


def _result(found: Instance, leaders: NDArray[np.int32], began: float) -> Result:
    seconds = time.process_time() - began
    loads, base = leading_costs(found)
    carried = (base + np.bincount(leaders, loads, minlength=found.case.brokers)) / found.capacity
    changed = leaders != found.replicas[:, 0]
    return Result(float(carried.max()), float(loads[changed].sum()), int(changed.sum()), seconds)
