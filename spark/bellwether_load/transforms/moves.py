"""Moves of a plan from the chosen leaders: old and new order and leader of each changed partition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bellwether_load.engines.frames import Batches, Engine, Frame
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.transforms.packing import tables

_BROKERS = pa.list_(pa.int32())
_MOVE = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("replicas", _BROKERS),
        ("order", _BROKERS),
        ("from_leader", pa.int32()),
        ("to_leader", pa.int32()),
        ("load", pa.int64()),
    ]
)
_MOVE_TYPE = (
    "topic string, topic_id string, partition int, replicas array<int>, order array<int>, from_leader int,"
    " to_leader int, load long"
)


def moves(
    engine: Engine, pieces: Frame, slots: Slots, costs: Costs, starts: Int64s, ids: Int64s, to: Int32s
) -> pa.Table:
    """The moves of a plan: ``ids``, ascending, get the leaders ``to``; and orders whose first is not their leader."""
    sent = engine.send((ids, to))

    def find(batches: Batches) -> Batches:
        changing, leaders = sent.value
        for piece, table in tables(batches):
            start = int(starts[piece])
            for batch in table.to_batches():
                numbers = np.arange(start, start + batch.num_rows, dtype=np.int64)
                start += batch.num_rows
                found = choices(batch, slots, costs)
                yield _moves(batch, found, slots, targets(numbers, found, changing, leaders))

    return pa.Table.from_batches(pieces.map(find, _MOVE_TYPE).batches(), _MOVE)


def targets(ids: Int64s, found: Choices, changing: Int64s, leaders: Int32s) -> Int32s:
    """Leader of each partition after the plan, as an index; the index past the last for no leader."""
    if not len(changing):
        return found.leader
    at = np.minimum(np.searchsorted(changing, ids), len(changing) - 1)
    return np.where(changing[at] == ids, leaders[at], found.leader).astype(np.int32)


def _moves(batch: pa.RecordBatch, found: Choices, slots: Slots, target: Int32s) -> pa.RecordBatch:
    kept = (target < found.brokers) & ((target != found.leader) | (target != found.replicas[:, 0]))
    at = np.flatnonzero(kept & ~found.stays)
    ids = np.append(slots.ids, -1).astype(np.int32)
    replicas, chosen = found.replicas[at], target[at]
    # A stable sort on "is not the new leader" puts it first and leaves the others as they were.
    first = np.argsort(replicas != chosen[:, None], axis=1, kind="stable")
    orders = np.take_along_axis(replicas, first, axis=1)
    columns = [batch.column(name).take(pa.array(at)) for name in ("topic", "topic_id", "partition")]
    return pa.RecordBatch.from_arrays(
        [
            *columns,
            _lists(replicas, ids, found.brokers),
            _lists(orders, ids, found.brokers),
            pa.array(ids[found.leader[at]]),
            pa.array(ids[chosen]),
            pa.array(found.loads[at]),
        ],
        schema=_MOVE,
    )


def _lists(matrix: Int32s, ids: NDArray[np.int32], brokers: int) -> pa.ListArray:
    there = matrix < brokers
    offsets = np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids[matrix[there]]))
