"""Moves of a plan from the chosen leaders: old and new order and leader of each changed partition.

They stay where they were found, a table for each piece of the problem: totals and digest are computed there, and
``jobs.plan_writing`` lets tasks write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bellwether_load.engines.frames import Batches, Frame
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.planning.tables import joined_list, to_bytes
from bellwether_load.transforms.packing import chunk_digests
from bellwether_load.transforms.pieces import BOTH, by_piece, read_changes

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
_PIECE = pa.schema(
    [("piece", pa.int32()), ("rows", pa.int64()), ("leaders", pa.int64()), ("load", pa.int64()), ("data", pa.binary())]
)
_PIECE_TYPE = "piece int, rows bigint, leaders bigint, load bigint, data binary"


@dataclass(frozen=True)
class Moves:
    """Moves of a plan in pieces. ``pieces``: rows with the number of a piece and its moves, ``data``; kept.

    ``counts``: how many each piece has. ``leaders``: how many change a leader, the others only the order. ``load``:
    that of these leaders.
    """

    pieces: Frame
    counts: dict[int, int]
    leaders: int
    load: int

    @property
    def reordered(self) -> int:
        """How many change only the order."""
        return sum(self.counts.values()) - self.leaders

    def chunk_digests(self) -> Iterator[str]:
        """Digests of the chunks of all moves' lines, in order."""
        starts, start = {}, 0
        for piece in sorted(self.counts):
            starts[piece] = start
            start += self.counts[piece]
        return chunk_digests(self.pieces, starts, _lines)


def moves(pieces: Frame, changes: Frame, slots: Slots, costs: Costs, starts: Int64s) -> Moves:
    """The moves of a plan: ``changes``, the changed leaders by piece, and orders whose first is not their leader."""

    def find(batches: Batches) -> Batches:
        for piece, table, rows in by_piece(batches, BOTH):
            changing, leaders = read_changes(rows)
            start, found = int(starts[piece]), []
            for batch in table.to_batches():
                numbers = np.arange(start, start + batch.num_rows, dtype=np.int64)
                start += batch.num_rows
                chosen = choices(batch, slots, costs)
                found.append(_moves(batch, chosen, slots, targets(numbers, chosen, changing, leaders)))
            yield _row(piece, pa.Table.from_batches(found, _MOVE))

    kept = pieces.union(changes).grouped(max(1, len(starts) - 1), "piece").map(find, _PIECE_TYPE).kept()
    rows = [r for batch in kept.select("piece", "rows", "leaders", "load").batches() for r in batch.to_pylist()]
    counts = {int(row["piece"]): int(row["rows"]) for row in rows}
    return Moves(kept, counts, sum(row["leaders"] for row in rows), sum(row["load"] for row in rows))


def targets(ids: Int64s, found: Choices, changing: Int64s, leaders: Int32s) -> Int32s:
    """Leader of each partition after the plan, as an index; the index past the last for no leader."""
    if not len(changing):
        return found.leader
    at = np.minimum(np.searchsorted(changing, ids), len(changing) - 1)
    return np.where(changing[at] == ids, leaders[at], found.leader).astype(np.int32)


def _row(piece: int, table: pa.Table) -> pa.RecordBatch:
    leaves = table.column("from_leader").to_numpy() != table.column("to_leader").to_numpy()
    row = {
        "piece": piece,
        "rows": table.num_rows,
        "leaders": int(leaves.sum()),
        "load": int(table.column("load").to_numpy()[leaves].sum()),
        "data": to_bytes(table),
    }
    return pa.RecordBatch.from_pylist([row], schema=_PIECE)


def _lines(table: pa.Table) -> pa.Array:
    """What the plan's digest hashes of these moves (docs/load/files.md)."""
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
