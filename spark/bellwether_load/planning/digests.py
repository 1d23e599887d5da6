"""Digests of lines that tasks have in pieces: whole chunks are hashed where they are.

In: the lines of a piece, and the number of its first one. Out: rows of ``SCHEMA``, a chunk or a part of one each; and
from all rows the digests of all chunks, in order (``core.rebalance.line_digest``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bellwether.core.rebalance.line_digest import CHUNK_LINES, chunk_digest

SCHEMA = pa.schema([("start", pa.int64()), ("digest", pa.string()), ("lines", pa.binary())])
TYPE = "start bigint, digest string, lines binary"


def cut(lines: pa.Array, start: int) -> pa.RecordBatch:
    """The chunks of some lines, without line feeds, of which the first has the number ``start``.

    A whole chunk has a ``digest``; of one that continues in another piece there are the ``lines``.
    """
    rows: list[dict[str, Any]] = []
    at, end = start, start + len(lines)
    while at < end:
        after = min(end, (at // CHUNK_LINES + 1) * CHUNK_LINES)
        text = _text(lines.slice(at - start, after - at))
        whole = after - at == CHUNK_LINES
        rows.append({"start": at, "digest": chunk_digest(text) if whole else None, "lines": None if whole else text})
        at = after
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def merged(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """The digests of all chunks, in order."""
    parts: dict[int, list[dict[str, Any]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            parts.setdefault(row["start"] // CHUNK_LINES, []).append(row)
    for number in sorted(parts):
        found = sorted(parts[number], key=lambda row: int(row["start"]))
        yield found[0]["digest"] or chunk_digest(b"".join(row["lines"] for row in found))


def _text(lines: pa.Array) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return f"{pc.binary_join(whole, chr(10))[0].as_py()}\n".encode()
