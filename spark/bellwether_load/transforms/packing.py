"""From pieces, partitions in the problem's order, to blocks, partitions by their leader: a shuffle of arrays.

A partition's id is its place in the problem's order: where its piece begins, and how many come before it in the piece.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Batches, Frame
from bellwether_load.planning import digests
from bellwether_load.planning.arrays import BLOCK, block_row, read_block
from bellwether_load.planning.blocks import Block, Int64s, first_choice, joined
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.planning.surveys import Survey
from bellwether_load.planning.tables import from_bytes, lines

ANSWER_TYPE = "number long, answer binary, last boolean"
_ANSWER_BYTES = 2**20
"""Of an answer in a row: Spark needs many times the memory of a row to bring it here."""
_SUMS = 8
"""Tasks that put together what there is of each piece."""
BLOCK_TYPE = "block int, width int, ids binary, loads binary, eligible binary, home binary, leader binary"


def answer_rows(answer: object, number: int = 0) -> Batches:
    """What a task answers, as rows of ``ANSWER_TYPE``, a batch each. ``number``: to group the rows of an answer by."""
    data = pickle.dumps(answer)
    for start in range(0, len(data), _ANSWER_BYTES):
        end = start + _ANSWER_BYTES
        row = {"number": number, "answer": data[start:end], "last": end >= len(data)}
        yield pa.RecordBatch.from_pylist([row])


def answers(rows: Batches) -> Iterator[Any]:
    """What tasks answered."""
    parts: list[bytes] = []
    for batch in rows:
        for row in batch.to_pylist():
            parts.append(row["answer"])
            if row["last"]:
                yield pickle.loads(b"".join(parts))  # noqa: S301 - pickled by tasks of this job
                parts.clear()


def surveyed(pieces: Frame, slots: Slots, costs: Costs) -> Survey:
    """Sums over all partitions. In: ``pieces.together``."""
    brokers = len(slots.ids)

    def survey(batches: Batches) -> Batches:
        for piece, table in tables(batches):
            found = Survey.total((Survey.of(choices(b, slots, costs)) for b in table.to_batches()), brokers)
            yield from answer_rows(found, piece)

    def add(batches: Batches) -> Batches:
        yield from answer_rows(Survey.total(answers(batches), brokers))

    # Added up in tasks, too: each piece's sums have an entry for each broker.
    found = pieces.map(survey, ANSWER_TYPE).grouped(_SUMS, "number").map(add, ANSWER_TYPE)
    return Survey.total(answers(found.batches()), brokers)


def chunk_digests(
    pieces: Frame, starts: Mapping[int, int], lines_of: Callable[[pa.Table], pa.Array] = lines
) -> Iterator[str]:
    """Digests of the chunks of all lines, of partitions unless said otherwise, in order.

    ``starts``: the number of the first line of each piece.
    """

    def cut(batches: Batches) -> Batches:
        for piece, table in tables(batches):
            if table.num_rows:
                yield digests.cut(lines_of(table), starts[piece])

    # Put together in tasks: the lines of each piece's first and last chunk would come here otherwise.
    whole = pieces.map(cut, digests.TYPE).grouped(_SUMS, "chunk").map(digests.merged, digests.TYPE)
    return digests.in_order(whole.batches())


def packed(pieces: Frame, slots: Slots, costs: Costs, starts: Int64s, block_of: Int64s) -> Frame:
    """The partitions with a choice as blocks, a row each. ``starts``: the first id of each piece."""
    count = int(block_of.max()) + 1

    def cut(batches: Batches) -> Batches:
        for piece, table in tables(batches):
            start = int(starts[piece])
            for batch in table.to_batches():
                ids = np.arange(start, start + batch.num_rows, dtype=np.int64)
                start += batch.num_rows
                for block in _blocks(ids, choices(batch, slots, costs), block_of):
                    yield _batch(block)

    def join(batches: Batches) -> Batches:
        parts: dict[int, list[Block]] = {}
        for block in blocks_of(batches, len(slots.ids)):
            parts.setdefault(block.number, []).append(block)
        for number in sorted(parts):
            yield _batch(joined(number, parts.pop(number)))

    return pieces.map(cut, BLOCK_TYPE).grouped(count, "block").map(join, BLOCK_TYPE)


def tables(batches: Batches) -> Iterator[tuple[int, pa.Table]]:
    """Each piece's number and table."""
    for batch in batches:
        for row in batch.to_pylist():
            yield row["piece"], from_bytes(row["data"])


def blocks_of(batches: Batches, brokers: int) -> Iterator[Block]:
    """The blocks of rows of ``BLOCK_TYPE``."""
    for batch in batches:
        for row in batch.to_pylist():
            yield read_block(row, brokers)


def _blocks(ids: Int64s, found: Choices, block_of: Int64s) -> Iterator[Block]:
    free = found.free
    home = np.where(found.at_home, found.leader, found.brokers).astype(np.int32)
    number = block_of[home]
    for block in np.unique(number[free]):
        mine = np.flatnonzero(free & (number == block))
        eligible = found.eligible[mine]
        any_of = first_choice(ids[mine], eligible, found.brokers)
        leader = np.where(home[mine] < found.brokers, home[mine], any_of)
        yield Block(
            int(block),
            found.brokers,
            ids[mine],
            found.loads[mine],
            eligible,
            home[mine],
            leader.astype(np.int32),
        )


def _batch(block: Block) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([block_row(block)], schema=BLOCK)
