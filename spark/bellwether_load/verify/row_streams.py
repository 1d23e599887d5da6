"""Rows in the order of (topic, topic id, partition) that are taken by key: loads, and moves, which are hashed.

Digests are of the lines that ``docs/load/files.md`` defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from bellwether_load.plan.rebalance_plan import DIGEST_LETTERS, Fingerprint
from bellwether_load.verify.checks import Faults

MOVES = "moves name partitions"

Key = tuple[str, str, int]
"""Topic, topic id, partition."""

MoveRow = tuple[str, str, int, tuple[int, ...], tuple[int, ...], int, int, int]
"""Topic, topic id, partition, replicas, new order, leader before, leader after, load."""

R = TypeVar("R", bound=tuple[Any, ...])


class Stream(Generic[R]):
    """Rows that begin with their key. ``wrong`` gets what is out of order, ``skipped`` rows that no key took."""

    def __init__(
        self, rows: Iterable[R], wrong: Callable[[str], None], skipped: Callable[[R], None] = lambda _: None
    ) -> None:
        self._rows = self._ordered(rows, wrong)
        self._skipped = skipped
        self._next = next(self._rows, None)

    def take(self, key: Key | None) -> R | None:
        """The row of a key, if there is one. Keys must come in order; None skips all that is left."""
        row = self._next
        while row is not None and (key is None or row[:3] < key):
            self._skipped(row)
            row = next(self._rows, None)
        if row is not None and row[:3] == key:
            self._next = next(self._rows, None)
            return row
        self._next = row
        return None

    @staticmethod
    def _ordered(rows: Iterable[R], wrong: Callable[[str], None]) -> Iterator[R]:
        before: Key = ("", "", -1)
        for row in rows:
            key = row[0], row[1], row[2]
            if key > before:
                before = key
                yield row
            else:
                again = "occurs twice" if key == before else f"comes after {before[0]}-{before[2]}, out of order"
                wrong(f"{row[0]}-{row[2]} {again}")


def joined(brokers: Sequence[int]) -> str:
    """Brokers as a line has them."""
    return ",".join(map(str, brokers))


class MoveStream(Stream[MoveRow]):
    """Moves of a plan. The digest is that of the plan for the problem digest that the plan names."""

    def __init__(self, moves: Iterable[MoveRow], problem_digest: str, faults: Faults) -> None:
        self._print = Fingerprint(problem_digest)

        def stray(row: MoveRow) -> None:
            faults.add(MOVES, f"{row[0]}-{row[2]} with topic id {row[1]} is no partition of the problem")

        super().__init__(self._hashed(moves), lambda text: faults.add(MOVES, text), stray)

    def finish(self) -> str:
        """The digest, once the moves beyond the last partition are named."""
        self.take(None)
        return self._print.finish()[:DIGEST_LETTERS]

    def _hashed(self, moves: Iterable[MoveRow]) -> Iterator[MoveRow]:
        for row in moves:
            self._print.add(f"{row[0]}\t{row[1]}\t{row[2]}\t{joined(row[4])}")
            yield row
