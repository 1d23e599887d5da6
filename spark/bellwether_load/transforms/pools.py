"""Pool of blocks in tasks: the kept blocks never change; each request includes the changed leaders.

A round sends one or two requests to all blocks, with the leaders that differ from those at the start: about a fifth
of a byte for each partition. A lost executor only means that its blocks are read again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bellwether_load.engines.frames import Batches, Engine, Frame
from bellwether_load.planning.blocks import Block, Int32s, Int64s, joined
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.fits import Fit, fitting, place
from bellwether_load.planning.offers import Pairs, Terms, draw, settle
from bellwether_load.planning.pools import Offer, Opening, of_leaders, offer, opening, together
from bellwether_load.planning.prices import Priced, Prices, priced
from bellwether_load.transforms.packing import ANSWER_TYPE, answer_rows, answers, blocks_of
from bellwether_load.transforms.pieces import PIECE_TYPE, change_rows

_Answer = TypeVar("_Answer")


class TaskPool:
    """Implements ``planning.pools.Pool``. Close it to free the executors' memory."""

    def __init__(self, engine: Engine, blocks: Frame, brokers: int) -> None:
        self._engine = engine
        self._brokers = brokers
        self._blocks = blocks.kept()
        # By block: the leaders that are others than at the start. By id: what came after that.
        self._moved: dict[int, bytes] = {}
        self._placed: dict[int, int] = {}
        self._size: int | None = None

    def open(self, brokers: Brokers, place: Int64s) -> list[Opening]:
        """See ``Pool``."""
        return self._ask(lambda block: opening(block, brokers, place))

    def offers(self, terms: Terms, place: Int64s) -> list[Offer]:
        """See ``Pool``."""
        return self._ask(lambda block: offer(block, draw(block, terms), terms, place))

    def priced(self, prices: Prices, known: Int64s, most: int, *, near: bool = False) -> list[Priced]:
        """See ``Pool``."""
        return self._ask(lambda block: priced(block, prices, known, most, near=near))

    def settle(self, terms: Terms, asked: Mapping[int, Pairs]) -> list[Int64s]:
        """See ``Pool``."""
        shares = self._engine.send(dict(asked))

        def follow(start: Block, block: Block) -> tuple[int, bytes, Int64s]:
            share = shares.value.get(block.number)
            after = block if share is None else settle(block, draw(block, terms), share)
            return block.number, _coded(start, after), after.led

        found = self._ask_both(follow)
        shares.destroy()
        self._moved = {number: moved for number, moved, _ in found}
        self._placed = {}
        return [led for *_, led in found]

    def fitting(self, excess: Int64s, room: Int64s) -> list[Fit]:
        """See ``Pool``."""
        return [fit for found in self._ask(lambda block: fitting(block, excess, room)) for fit in found]

    def place(self, wanted: Mapping[int, int]) -> None:
        """See ``Pool``."""
        self._placed = {**self._placed, **wanted}

    def size(self) -> int:
        """See ``Pool``."""
        if self._size is None:
            self._size = sum(self._ask(len))
        return self._size

    def gathered(self, leaders: NDArray[np.bool_] | None = None) -> Block:
        """See ``Pool``."""
        return joined(0, self._ask(lambda block: of_leaders(block, leaders)))

    def all(self) -> list[Block]:
        """Every block, here: for as many partitions as are balanced here."""
        return self._ask(lambda block: block)

    def changed(self) -> int:
        """See ``Pool``."""
        return sum(self._ask(lambda block: block.changed))

    def changes(self) -> tuple[Int64s, Int32s]:
        """See ``Pool``."""
        return together(self._ask(lambda block: block.changes))

    def changes_by_piece(self, starts: Int64s) -> Frame:
        """The same, where they are: rows of ``pieces.PIECE_TYPE``. ``starts``: the first id of each piece."""
        now, brokers = self._engine.send((self._moved, self._placed)), self._brokers

        def cut(batches: Batches) -> Batches:
            for start in blocks_of(batches, brokers):
                yield from change_rows(*_led_now(start, *now.value).changes, starts)

        return self._blocks.map(cut, PIECE_TYPE)

    def reset(self) -> None:
        """See ``Pool``."""
        self._moved, self._placed = {}, {}

    def state(self) -> tuple[dict[int, bytes], dict[int, int]]:
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
        now, brokers = self._engine.send((self._moved, self._placed)), self._brokers

        def answer(batches: Batches) -> Batches:
            for start in blocks_of(batches, brokers):
                yield from answer_rows((start.number, question(start, _led_now(start, *now.value))), start.number)

        found: dict[int, _Answer] = dict(answers(self._blocks.map(answer, ANSWER_TYPE).batches()))
        now.destroy()
        return [found[number] for number in sorted(found)]


def _led_now(start: Block, moved: Mapping[int, bytes], placed: dict[int, int]) -> Block:
    if start.number in moved:
        start = _decoded(start, moved[start.number])
    return place(start, placed) if placed else start


def _coded(start: Block, after: Block) -> bytes:
    """The leaders of ``after`` by their place among the eligible brokers, from 1 on; 0 for that of ``start``."""
    places = (after.eligible == after.leader[:, None]).argmax(axis=1) + 1
    return zlib.compress(np.where(after.leader == start.leader, 0, places).astype(np.int16).tobytes(), 1)


def _decoded(start: Block, moved: bytes) -> Block:
    places = np.frombuffer(zlib.decompress(moved), np.int16)
    rows = np.flatnonzero(places)
    leader = start.leader.copy()
    leader[rows] = start.eligible[rows, places[rows] - 1]
    return start.led_by(leader)
