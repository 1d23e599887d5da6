"""Pieces of a problem joined with their loads. A row holds a whole piece, as an Arrow stream.

Millions of rows with lists cost Spark far more than a few large rows with the same content: bytes are shuffled and
cached here, and Arrow processes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bellwether_load.engines.frames import Batches, Frame
from bellwether_load.planning.tables import Key, from_bytes, to_bytes, with_loads

PIECE_TYPE = "piece int, kind string, data binary"
_PIECE = pa.schema([("piece", pa.int32()), ("kind", pa.string()), ("data", pa.binary())])
PARTITIONS, LOADS, BOTH = "partitions", "loads", "both"


def piece_row(piece: int, kind: str, table: pa.Table) -> pa.RecordBatch:
    """One row of ``PIECE_TYPE``."""
    return pa.RecordBatch.from_pylist([{"piece": piece, "kind": kind, "data": to_bytes(table)}], schema=_PIECE)


def together(partitions: Frame, loads: Frame, borders: Sequence[Key]) -> Frame:
    """Both kinds of pieces in, one row a piece out: partitions with their rates."""
    count = max(1, len(borders))

    def join(batches: Batches) -> Batches:
        found: dict[int, dict[str, list[pa.Table]]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                kinds = found.setdefault(row["piece"], {PARTITIONS: [], LOADS: []})
                kinds[row["kind"]].append(from_bytes(row["data"]))
        for piece in sorted(found):
            kinds = found.pop(piece)
            for mine in kinds[PARTITIONS]:  # one, as a piece is
                rates = pa.concat_tables(kinds[LOADS]) if kinds[LOADS] else _no_loads(mine)
                yield piece_row(
                    piece, BOTH, with_loads(mine, rates, borders[piece + 1] if piece + 1 < len(borders) else None)
                )

    return partitions.union(loads).grouped(count, "piece").map(join, PIECE_TYPE)


def _no_loads(partitions: pa.Table) -> pa.Table:
    none = pa.array([], pa.float64())
    keys = partitions.slice(0, 0).select(["topic_id", "partition"])
    return keys.append_column("produce", none).append_column("consume", none)
