"""Digest of many lines that can be computed in parts: SHA-256 over the digests of chunks (docs/load/files.md).

In: lines as bytes, each with its line feed, in order. Out: the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice

CHUNK_LINES = 4_096


def digest_of_chunks(first: str, chunks: Iterable[str]) -> str:
    """SHA-256 in hex over a first line, and then the digest of each chunk in a line."""
    hashed = hashlib.sha256(f"{first}\n".encode())
    for chunk in chunks:
        hashed.update(f"{chunk}\n".encode())
    return hashed.hexdigest()


def chunk_digests(lines: Iterable[bytes]) -> Iterator[str]:
    """The digest of each chunk: ``CHUNK_LINES`` lines, the last one those that are left."""
    rest = iter(lines)
    while chunk := b"".join(islice(rest, CHUNK_LINES)):
        yield chunk_digest(chunk)


def chunk_digest(lines: bytes) -> str:
    """The digest of one chunk's lines."""
    return hashlib.sha256(lines).hexdigest()
