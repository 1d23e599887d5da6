"""From rows, a partition each, to blocks, many partitions each: a shuffle of arrays instead of one of rows.

A row's id is its place in the order of all rows: where its piece begins, and how many come before it in the piece.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from bellwether_load.planning.arrays import BLOCK, block_row, joined, read_block
from bellwether_load.planning.blocks import Block, Int64s, first_choice
from bellwether_load.planning.choices import Choices, Costs, Slots, choices
from bellwether_load.planning.surveys import Survey

Batches = Iterator[pa.RecordBatch]

BLOCK_TYPE = "block int, width int, ids binary, loads binary, eligible binary, home binary, leader binary"
_SURVEY = pa.schema([("piece", pa.int32()), ("rows", pa.int64()), ("lines", pa.binary()), ("survey", pa.binary())])
_SURVEY_TYPE = "piece int, rows long, lines binary, survey binary"


def surveyed(rows: DataFrame, slots: Slots, costs: Costs) -> DataFrame:
    """A row a piece: ``piece``, how many ``rows``, their digest ``lines`` and the pickled ``survey``.

    ``rows`` as of ``transforms.partitions.lines``.
    """

    def survey(batches: Batches) -> Batches:
        lines: list[str] = []
        parts = []
        for batch in batches:
            lines += batch.column("line").to_pylist()
            parts.append(Survey.of(choices(batch, slots, costs)))
        text = "".join(f"{line}\n" for line in lines).encode()
        found = {
            "piece": _piece(),
            "rows": len(lines),
            "lines": text,
            "survey": pickle.dumps(Survey.total(parts, len(slots.ids))),
        }
        yield pa.RecordBatch.from_pylist([found], schema=_SURVEY)

    return rows.mapInArrow(survey, _SURVEY_TYPE)


def packed(rows: DataFrame, slots: Slots, costs: Costs, starts: Int64s, block_of: Int64s) -> DataFrame:
    """The partitions with a choice as blocks, a row each. ``starts``: the first id of each piece."""
    count = int(block_of.max()) + 1

    def cut(batches: Batches) -> Batches:
        parts: dict[int, list[Block]] = {}
        for _, ids, found in numbered(batches, slots, costs, starts):
            for block in _blocks(ids, found, block_of):
                parts.setdefault(block.number, []).append(block)
        for number, blocks in parts.items():
            yield _batch(joined(number, blocks))

    def join(batches: Batches) -> Batches:
        parts: dict[int, list[Block]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                parts.setdefault(row["block"], []).append(read_block(row, len(slots.ids)))
        for number in sorted(parts):
            yield _batch(joined(number, parts[number]))

    return rows.mapInArrow(cut, BLOCK_TYPE).repartition(count, "block").mapInArrow(join, BLOCK_TYPE)


def each_block(blocks: DataFrame, brokers: int, work: Callable[[Block], pa.RecordBatch], schema: str) -> DataFrame:
    """What ``work`` makes of each block: rows of ``schema``."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for row in batch.to_pylist():
                yield work(read_block(row, brokers))

    return blocks.mapInArrow(run, schema)


def changed_blocks(blocks: DataFrame, brokers: int, change: Callable[[Block], Block]) -> DataFrame:
    """The blocks after ``change``."""
    return each_block(blocks, brokers, lambda block: _batch(change(block)), BLOCK_TYPE)


def numbered(
    batches: Batches, slots: Slots, costs: Costs, starts: Int64s
) -> Iterator[tuple[pa.RecordBatch, Int64s, Choices]]:
    """Each batch with the ids and choices of its rows."""
    start = int(starts[_piece()])
    for batch in batches:
        found = choices(batch, slots, costs)
        yield batch, np.arange(start, start + batch.num_rows, dtype=np.int64), found
        start += batch.num_rows


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


def _piece() -> int:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("rows are numbered in tasks alone")
    return context.partitionId()


def _batch(block: Block) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([block_row(block)], schema=BLOCK)
