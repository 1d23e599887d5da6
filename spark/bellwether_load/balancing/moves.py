"""Moves of a plan, from the leaders of all partitions and who comes next."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Int32s
from bellwether_load.plan.digests import KEYS
from bellwether_load.plan.partition_rows import Rows


def moves(found: Rows, leaders: Int32s, second: Int32s) -> pa.Table:
    """The moves that give all partitions these ``leaders``, in order; orders whose first is another one change, too.

    ``second``: who comes next after the leader, the number of brokers where the others keep their order.
    """
    kept = (leaders != found.leader) | (leaders != found.replicas[:, 0]) | (second < found.brokers)
    kept &= leaders < found.brokers
    at = np.flatnonzero(kept & ~found.stays)
    ids = np.append(found.ids, -1).astype(np.int32)
    replicas, chosen = found.replicas[at], leaders[at]
    # A stable sort puts the new leader first, the next one second, and leaves the others as they were.
    rank = np.where(replicas == chosen[:, None], 0, np.where(replicas == second[at, None], 1, 2))
    rank[replicas == found.brokers] = 3
    first = np.argsort(rank, axis=1, kind="stable")
    columns = {
        "replicas": _lists(replicas, ids, found.brokers),
        "order": _lists(np.take_along_axis(replicas, first, axis=1), ids, found.brokers),
        "from_leader": ids[found.leader[at]],
        "to_leader": ids[chosen],
        "load": found.load[at],
    }
    return pa.table({name: found.table.table.column(name).take(pa.array(at)) for name in KEYS} | columns)


def _lists(matrix: Int32s, ids: NDArray[np.int32], brokers: int) -> pa.ListArray:
    there = matrix < brokers
    offsets = np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids[matrix[there]]))
