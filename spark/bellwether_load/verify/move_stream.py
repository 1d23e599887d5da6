"""Stream a plan's moves along with the partitions of its problem, hash both, and report moves of no partition.

In: moves in the order of (topic, topic id, partition). Digests are of the lines that ``docs/load/files.md`` defines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from bellwether_load.verify.checks import Faults

MOVES = "moves name partitions"
LETTERS = 32
CHUNK_LINES = 4_096

Key = tuple[str, str, int]
"""Topic, topic id, partition."""

MoveRow = tuple[str, str, int, tuple[int, ...], tuple[int, ...], int, int, int]
"""Topic, topic id, partition, replicas, new order, leader before, leader after, load."""


class Fingerprint:
    """SHA-256 over a first line and the digests of chunks: each that of ``CHUNK_LINES`` lines, or of those left over.

    All lines end in a line feed.
    """

    def __init__(self, first: str) -> None:
        self._hashed = hashlib.sha256(f"{first}\n".encode())
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """Hash one more line."""
        self._lines.append(line)
        if len(self._lines) == CHUNK_LINES:
            self._chunk()

    def finish(self) -> str:
        """The digest of all lines; the last call."""
        if self._lines:
            self._chunk()
        return self._hashed.hexdigest()

    def _chunk(self) -> None:
        text = "\n".join(self._lines)
        digest = hashlib.sha256(f"{text}\n".encode("utf-8", "surrogatepass")).hexdigest()
        self._hashed.update(f"{digest}\n".encode())
        self._lines.clear()


def joined(brokers: Sequence[int]) -> str:
    """Brokers as a line has them."""
    return ",".join(map(str, brokers))


class MoveStream:
    """Moves in order. The digest is that of the plan for the problem digest that the plan names."""

    def __init__(self, moves: Iterable[MoveRow], problem_digest: str, faults: Faults) -> None:
        self._faults = faults
        self._print = Fingerprint(problem_digest)
        self._rows = self._read(moves)
        self._next = next(self._rows, None)

    def take(self, key: Key) -> MoveRow | None:
        """The move of a partition, if it has one. Keys must come in order; skipped moves are named."""
        row = self._next
        while row is not None and row[:3] < key:
            row = self._skip(row)
        if row is not None and row[:3] == key:
            self._next = next(self._rows, None)
            return row
        return None

    def finish(self) -> str:
        """The digest, once the moves beyond the last partition are named."""
        row = self._next
        while row is not None:
            row = self._skip(row)
        return self._print.finish()[:LETTERS]

    def _skip(self, row: MoveRow) -> MoveRow | None:
        self._faults.add(MOVES, f"{row[0]}-{row[2]} with topic id {row[1]} is no partition of the problem")
        self._next = next(self._rows, None)
        return self._next

    def _read(self, moves: Iterable[MoveRow]) -> Iterator[MoveRow]:
        before: Key = ("", "", -1)
        for row in moves:
            self._print.add(f"{row[0]}\t{row[1]}\t{row[2]}\t{joined(row[4])}")
            key = row[:3]
            if key > before:
                before = key
                yield row
            elif key == before:
                self._faults.add(MOVES, f"{row[0]}-{row[2]} is named twice")
            else:
                self._faults.add(MOVES, f"{row[0]}-{row[2]} comes after {before[0]}-{before[2]}, out of order")
