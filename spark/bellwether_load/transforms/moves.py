"""Moves of a plan from the chosen leaders: old and new order and leader of each changed partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.choices import Choices, Slots
from bellwether_load.planning.tables import joined_list
from bellwether_load.transforms.problem_partitions import Piece, ProblemPartitions, encoded

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


@dataclass(frozen=True)
class Moves:
    """Moves of a plan, in order: a table for each piece of the problem."""

    tables: tuple[pa.Table, ...]

    @cached_property
    def leaders(self) -> int:
        """How many change a leader."""
        return sum(int(_changing(table).sum()) for table in self.tables)

    @property
    def reordered(self) -> int:
        """How many change only the order."""
        return sum(map(len, self.tables)) - self.leaders

    @property
    def load(self) -> int:
        """The load of the leaders that change."""
        return sum(int(table.column("load").to_numpy()[_changing(table)].sum()) for table in self.tables)

    def lines(self) -> Iterator[bytes]:
        """What the plan's digest hashes (docs/load/files.md)."""
        for table in self.tables:
            if len(table):
                yield from encoded(_lines(table))


def moves(partitions: ProblemPartitions, changing: Int64s, leaders: Int32s) -> Moves:
    """The moves of a plan: partitions ``changing``, by id, get these ``leaders``; orders whose first is not the leader
    change, too."""

    def of_piece(piece: Piece) -> pa.Table:
        (batch,) = piece.table.to_batches()
        to = targets(piece.ids, piece.choices, changing, leaders)
        return pa.Table.from_batches([_moves(batch, piece.choices, partitions.slots, to)])

    return Moves(tuple(map(of_piece, partitions.pieces())))


def targets(ids: Int64s, found: Choices, changing: Int64s, leaders: Int32s) -> Int32s:
    """Leader of each partition after the plan, as an index; the index past the last for no leader."""
    if not len(changing):
        return found.leader
    at = np.minimum(np.searchsorted(changing, ids), len(changing) - 1)
    return np.where(changing[at] == ids, leaders[at], found.leader).astype(np.int32)


def _changing(table: pa.Table) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = table.column("from_leader").to_numpy() != table.column("to_leader").to_numpy()
    return found


def _lines(table: pa.Table) -> pa.Array:
    (batch,) = table.combine_chunks().to_batches()
    texts = [batch.column(name).cast(pa.string()) for name in ("topic", "topic_id", "partition")]
    return pc.binary_join_element_wise(*texts, joined_list(batch.column("order")), "\t")


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
