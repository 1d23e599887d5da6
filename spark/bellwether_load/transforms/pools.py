"""Pool of blocks in tasks: the kept blocks never change; each request includes the changed leaders.

A round sends one or two requests to all blocks, with the leaders that differ from those at the start. So no result is
as large as the partitions, and a lost executor only means that its blocks are read again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from bellwether_load.engines.frames import Engine, Frame
from bellwether_load.planning.blocks import Block, Int32s, Int64s, joined
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.fits import Fit, fitting, place
from bellwether_load.planning.offers import Pairs, Terms, draw, settle
from bellwether_load.planning.pools import Offer, Opening, offer, opening, together
from bellwether_load.planning.prices import Priced, Prices, priced
from bellwether_load.transforms.packing import each_block

_Answer = TypeVar("_Answer")
_ANSWER = pa.schema([("block", pa.int32()), ("answer", pa.binary())])


class TaskPool:
    """Implements ``planning.pools.Pool``. Close it to free the executors' memory."""

    def __init__(self, engine: Engine, blocks: Frame, brokers: int) -> None:
        self._engine = engine
        self._brokers = brokers
        self._blocks = blocks.kept()
        # By block: the rows whose leader is another than at the start, and that leader. By id: what came after that.
        self._moved: dict[int, tuple[Int64s, Int32s]] = {}
        self._placed: dict[int, int] = {}

    def open(self, brokers: Brokers, place: Int64s) -> list[Opening]:
        """See ``Pool``."""
        return self._ask(lambda block: opening(block, brokers, place))

    def offers(self, terms: Terms, place: Int64s) -> list[Offer]:
        """See ``Pool``."""
        return self._ask(lambda block: offer(block, draw(block, terms), place))

    def priced(self, prices: Prices, known: Int64s, most: int, *, near: bool = False) -> list[Priced]:
        """See ``Pool``."""
        return self._ask(lambda block: priced(block, prices, known, most, near=near))

    def settle(self, terms: Terms, asked: Mapping[int, Pairs]) -> list[Int64s]:
        """See ``Pool``."""
        shares = self._engine.send(dict(asked))

        def follow(start: Block, block: Block) -> tuple[int, Int64s, Int32s, Int64s]:
            share = shares.value.get(block.number)
            after = block if share is None else settle(block, draw(block, terms), share)
            rows = np.flatnonzero(after.leader != start.leader)
            return block.number, rows, after.leader[rows], after.led

        answers = self._ask_both(follow)
        shares.destroy()
        self._moved = {number: (rows, leaders) for number, rows, leaders, _ in answers}
        self._placed = {}
        return [led for *_, led in answers]

    def fitting(self, excess: Int64s, room: Int64s) -> list[Fit]:
        """See ``Pool``."""
        return [fit for found in self._ask(lambda block: fitting(block, excess, room)) for fit in found]

    def place(self, wanted: Mapping[int, int]) -> None:
        """See ``Pool``."""
        self._placed = {**self._placed, **wanted}

    def size(self) -> int:
        """See ``Pool``."""
        return sum(self._ask(len))

    def gathered(self) -> Block:
        """See ``Pool``."""
        return joined(0, self.all())

    def all(self) -> list[Block]:
        """Every block, here: for as many partitions as are balanced here."""
        return self._ask(lambda block: block)

    def changed(self) -> int:
        """See ``Pool``."""
        return sum(self._ask(lambda block: block.changed))

    def changes(self) -> tuple[Int64s, Int32s]:
        """See ``Pool``."""
        return together(self._ask(lambda block: block.changes))

    def reset(self) -> None:
        """See ``Pool``."""
        self._moved, self._placed = {}, {}

    def state(self) -> tuple[dict[int, tuple[Int64s, Int32s]], dict[int, int]]:
        """See ``Pool``."""
        return self._moved, self._placed

    def restore(self, state: Any) -> None:
        """See ``Pool``."""
        self._moved, self._placed = state

    def close(self) -> None:
        """Free what is cached."""
        self._blocks.drop()

    def _ask(self, question: Callable[[Block], _Answer]) -> list[_Answer]:
        return self._ask_both(lambda _, block: question(block))

    def _ask_both(self, question: Callable[[Block, Block], _Answer]) -> list[_Answer]:
        """Results of a request on each block, at the start and at present, in the order of the blocks."""
        now = self._engine.send((self._moved, self._placed))

        def answer(start: Block) -> pa.RecordBatch:
            moved, placed = now.value
            found = question(start, _as_it_stands(start, moved, placed))
            return pa.RecordBatch.from_pylist([{"block": start.number, "answer": pickle.dumps(found)}], schema=_ANSWER)

        found = each_block(self._blocks, self._brokers, answer, "block int, answer binary").batches()
        rows = sorted((row for batch in found for row in batch.to_pylist()), key=lambda row: int(row["block"]))
        now.destroy()
        return [pickle.loads(row["answer"]) for row in rows]  # noqa: S301 - pickled by tasks of this job


def _as_it_stands(start: Block, moved: Mapping[int, tuple[Int64s, Int32s]], placed: dict[int, int]) -> Block:
    if start.number in moved:
        rows, leaders = moved[start.number]
        leader = start.leader.copy()
        leader[rows] = leaders
        start = start.led_by(leader)
    return place(start, placed) if placed else start
