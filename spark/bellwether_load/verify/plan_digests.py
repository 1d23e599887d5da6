"""Digests of problem and plan, from the canonical lines that ``docs/load/files.md`` defines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

LETTERS = 32
CHUNK_LINES = 4_096


class Fingerprint:
    """SHA-256 over a first line and the digests of chunks: each that of ``CHUNK_LINES`` lines, or of those left over.

    All lines end in a line feed.
    """

    def __init__(self, first: str) -> None:
        self._hashed = hashlib.sha256(f"{first}\n".encode())
        self._lines: list[str] = []

    def add(self, lines: Iterable[str]) -> None:
        """Hash more lines."""
        self._lines += lines
        whole = len(self._lines) // CHUNK_LINES * CHUNK_LINES
        for at in range(0, whole, CHUNK_LINES):
            self._chunk(self._lines[at : at + CHUNK_LINES])
        del self._lines[:whole]

    def finish(self) -> str:
        """The digest of all lines; the last call."""
        if self._lines:
            self._chunk(self._lines)
        return self._hashed.hexdigest()

    def _chunk(self, lines: Sequence[str]) -> None:
        text = "\n".join(lines)
        digest = hashlib.sha256(f"{text}\n".encode("utf-8", "surrogatepass")).hexdigest()
        self._hashed.update(f"{digest}\n".encode())


def canonical(document: dict[str, Any]) -> str:
    """A JSON document in one line that depends on its content alone."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def joined(brokers: Sequence[int]) -> str:
    """Brokers as a line has them."""
    return ",".join(map(str, brokers))
