"""Digests of lines that tasks have in pieces: whole chunks are hashed where they are.

In: the lines of a piece, and the number of its first one. Out: rows of ``SCHEMA``, a chunk or a part of one each; from
all parts of some chunks, their digests; and those of all chunks in order (``plan.line_digest``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bellwether_load.plan.line_digest import CHUNK_LINES, chunk_digest

SCHEMA = pa.schema([("chunk", pa.int64()), ("start", pa.int64()), ("digest", pa.string()), ("lines", pa.binary())])
TYPE = "chunk bigint, start bigint, digest string, lines binary"


def cut(lines: pa.Array, start: int) -> pa.RecordBatch:
    """The chunks of some lines, without line feeds, of which the first has the number ``start``.

    A whole chunk has a ``digest``; of one that continues in another piece there are the ``lines``.
    """
    rows: list[dict[str, Any]] = []
    at, end = start, start + len(lines)
    while at < end:
        chunk = at // CHUNK_LINES
        after = min(end, (chunk + 1) * CHUNK_LINES)
        text = _text(lines.slice(at - start, after - at))
        known = (chunk_digest(text), None) if after - at == CHUNK_LINES else (None, text)
        rows.append(_row(chunk, at, *known))
        at = after
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def merged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A row with the digest of each chunk, from rows that have all parts of it."""
    parts: dict[int, list[dict[str, Any]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            parts.setdefault(row["chunk"], []).append(row)
    rows = []
    for chunk, found in parts.items():
        found.sort(key=lambda row: int(row["start"]))
        digest = found[0]["digest"] or chunk_digest(b"".join(row["lines"] for row in found))
        rows.append(_row(chunk, found[0]["start"], digest, None))
    yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """The digests of all chunks, in order, from a row for each."""
    of_chunk = {row["chunk"]: row["digest"] for batch in batches for row in batch.to_pylist()}
    for chunk in sorted(of_chunk):
        yield of_chunk[chunk]


def _row(chunk: int, start: int, digest: str | None, lines: bytes | None) -> dict[str, Any]:
    return {"chunk": chunk, "start": start, "digest": digest, "lines": lines}


def _text(lines: pa.Array) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return f"{pc.binary_join(whole, chr(10))[0].as_py()}\n".encode()
