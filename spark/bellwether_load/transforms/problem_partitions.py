"""All partitions of a problem with their measured rates, and what is read of them from the first one to the last.

They are held in pieces, runs of partitions in the problem's order, as compressed Arrow streams: some 40 bytes for each
partition. A partition's id is its place in the problem's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bellwether_load.planning.blocks import Block, Int64s, first_choice, joined
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.planning.surveys import Survey
from bellwether_load.planning.tables import Key, first_key, from_bytes, lines


class Piece(NamedTuple):
    """Partitions that follow each other, with their ids and as arrays."""

    table: pa.Table
    ids: Int64s
    choices: Choices


@dataclass(frozen=True)
class ProblemPartitions:
    """``streams``: tables of ``planning.tables.with_loads``, none without rows, by ``planning.tables.to_bytes``.
    ``counts``: how many rows each has."""

    streams: Sequence[bytes]
    counts: Sequence[int]
    slots: Slots
    costs: Costs

    def piece(self, number: int) -> Piece:
        """One piece. Refused names an invalid value."""
        table = from_bytes(self.streams[number]).combine_chunks()
        (batch,) = table.to_batches()
        start = sum(self.counts[:number])
        return Piece(table, np.arange(start, start + len(table)), choices(batch, self.slots, self.costs))

    def pieces(self) -> Iterator[Piece]:
        """All pieces, one after the other."""
        return map(self.piece, range(len(self.streams)))

    @cached_property
    def borders(self) -> tuple[Key, ...]:
        """The key of each piece's first partition."""
        return tuple(first_key(from_bytes(stream)) for stream in self.streams)

    def lines(self) -> Iterator[bytes]:
        """What the problem's digest hashes."""
        for stream in self.streams:
            yield from encoded(lines(from_bytes(stream)))

    def survey(self) -> Survey:
        """Sums over all partitions."""
        return Survey.total((Survey.of(piece.choices) for piece in self.pieces()), len(self.slots.ids))

    def blocks(self, block_of: Int64s) -> list[Block]:
        """The partitions with a choice, in the blocks of the brokers that lead them."""
        parts: dict[int, list[Block]] = {}
        for piece in self.pieces():
            for block in _blocks(piece.ids, piece.choices, block_of):
                parts.setdefault(block.number, []).append(block)
        return [joined(number, parts.pop(number)) for number in sorted(parts)]


def encoded(texts: pa.Array) -> Iterator[bytes]:
    """Lines as digests hash them, each with its line feed."""
    return (f"{text}\n".encode() for text in texts.to_pylist())


def _blocks(ids: Int64s, found: Choices, block_of: Int64s) -> Iterator[Block]:
    free, home = found.free, found.home
    number = block_of[home]
    for block in np.unique(number[free]):
        mine = np.flatnonzero(free & (number == block))
        eligible = found.eligible[mine]
        any_of = first_choice(ids[mine], eligible, found.brokers)
        leader = np.where(home[mine] < found.brokers, home[mine], any_of).astype(np.int32)
        yield Block(int(block), found.brokers, ids[mine], found.loads[mine], eligible, home[mine], leader)
