"""Stream a plan's moves along with the partitions of its problem, and report moves that match no partition.

In: moves in the order of (topic, topic id, partition), hashed as they pass. Called by ``partition_sums``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellwether_load.verify.check_report import Faults
from bellwether_load.verify.plan_digests import LETTERS, Fingerprint, joined

MOVES = "moves name partitions"

Key = tuple[str, str, int]
"""Topic, topic id, partition."""

MoveRow = tuple[str, str, int, tuple[int, ...], tuple[int, ...], int, int, int]
"""Topic, topic id, partition, replicas, new order, leader before, leader after, load."""

_LINES = 50_000


class MoveStream:
    """Moves in order. The digest is that of the plan for the problem digest that the plan names."""

    def __init__(self, moves: Iterable[MoveRow], problem_digest: str, faults: Faults) -> None:
        self._faults = faults
        self._print = Fingerprint(problem_digest)
        self._rows = self._read(moves)
        self._next = next(self._rows, None)
        self._digest = ""

    def take(self, key: Key) -> MoveRow | None:
        """The move of a partition, if it has one. Keys must come in order; skipped moves are named."""
        row = self._next
        while row is not None and row[:3] < key:
            self._stray(row)
            row = next(self._rows, None)
        if row is not None and row[:3] == key:
            self._next = next(self._rows, None)
            return row
        self._next = row
        return None

    def finish(self) -> str:
        """The digest, once the moves beyond the last partition are named."""
        while self._next is not None:
            self._stray(self._next)
            self._next = next(self._rows, None)
        return self._print.finish()[:LETTERS]

    def _read(self, moves: Iterable[MoveRow]) -> Iterator[MoveRow]:
        before: Key = ("", "", -1)
        lines = []
        for row in moves:
            lines.append(f"{row[0]}\t{row[1]}\t{row[2]}\t{joined(row[4])}")
            if len(lines) >= _LINES:
                self._print.add(lines)
                lines.clear()
            key = row[:3]
            if key > before:
                before = key
                yield row
            elif key == before:
                self._faults.add(MOVES, f"{row[0]}-{row[2]} is named twice")
            else:
                self._faults.add(MOVES, f"{row[0]}-{row[2]} comes after {before[0]}-{before[2]}, out of order")
        self._print.add(lines)

    def _stray(self, row: MoveRow) -> None:
        said = f"{row[0]}-{row[2]} with topic id {row[1]} is no partition of the problem"
        self._faults.add(MOVES, said)
