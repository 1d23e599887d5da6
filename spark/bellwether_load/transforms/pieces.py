"""Pieces of a problem joined with their loads. A row holds a whole piece, as an Arrow stream.

Millions of rows with lists cost Spark far more than a few large rows with the same content: bytes are shuffled and
cached here, and Arrow processes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Batches, Engine, Frame
from bellwether_load.planning.blocks import Int32s, Int64s
from bellwether_load.planning.tables import Key, from_bytes, to_bytes, with_loads

PIECE_TYPE = "piece int, kind string, data binary"
_PIECE = pa.schema([("piece", pa.int32()), ("kind", pa.string()), ("data", pa.binary())])
PARTITIONS, LOADS, BOTH, CHANGES = "partitions", "loads", "both", "changes"


def piece_row(piece: int, kind: str, table: pa.Table) -> pa.RecordBatch:
    """One row of ``PIECE_TYPE``."""
    return pa.RecordBatch.from_pylist([{"piece": piece, "kind": kind, "data": to_bytes(table)}], schema=_PIECE)


def together(partitions: Frame, loads: Frame, borders: Sequence[Key]) -> Frame:
    """Both kinds of pieces in, one row a piece out: partitions with their rates."""
    count = max(1, len(borders))

    def join(batches: Batches) -> Batches:
        for piece, mine, others in by_piece(batches, PARTITIONS):
            rates = pa.concat_tables(map(from_bytes, others)) if others else _no_loads(mine)
            border = borders[piece + 1] if piece + 1 < len(borders) else None
            yield piece_row(piece, BOTH, with_loads(mine, rates, border))

    return partitions.union(loads).grouped(count, "piece").map(join, PIECE_TYPE)


def by_piece(batches: Batches, kind: str) -> Iterator[tuple[int, pa.Table, list[bytes]]]:
    """Each piece, in order: its number, its table of this kind, and its other rows, which are not read yet."""
    found: dict[int, tuple[list[bytes], list[bytes]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            found.setdefault(row["piece"], ([], []))[row["kind"] != kind].append(row["data"])
    for piece in sorted(found):
        mine, others = found.pop(piece)
        for table in map(from_bytes, mine):  # one, as a piece is
            yield piece, table, others


def changes_here(engine: Engine, starts: Int64s, ids: Int64s, to: Int32s) -> Frame:
    """Changed leaders by piece: ``ids``, ascending, get the leaders ``to``. ``starts``: the first id of each piece."""
    sent = engine.send((ids, to))
    return engine.each(1, lambda _: change_rows(*sent.value, starts), PIECE_TYPE)


def change_rows(ids: Int64s, to: Int32s, starts: Int64s) -> Batches:
    """A row of changed leaders for each piece that ``ids``, ascending, are of."""
    ends = np.searchsorted(ids, starts)
    for piece in np.flatnonzero(ends[1:] > ends[:-1]).tolist():
        mine = slice(ends[piece], ends[piece + 1])
        yield piece_row(piece, CHANGES, pa.table({"id": ids[mine], "to": to[mine]}))


def read_changes(rows: Sequence[bytes]) -> tuple[Int64s, Int32s]:
    """The changed leaders of a piece, by id."""
    if not rows:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    found = pa.concat_tables(map(from_bytes, rows)).sort_by("id")
    return found.column("id").to_numpy(), found.column("to").to_numpy()


def _no_loads(partitions: pa.Table) -> pa.Table:
    none = pa.array([], pa.float64())
    keys = partitions.slice(0, 0).select(["topic_id", "partition"])
    return keys.append_column("produce", none).append_column("consume", none)
