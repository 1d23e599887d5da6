"""The pool of blocks on Spark's executors: each round a job or two, the blocks cached between them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from bellwether_load.planning.blocks import Block, Int32s, Int64s, joined
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.fits import Fit, fitting, place
from bellwether_load.planning.offers import Pairs, Terms, settle
from bellwether_load.planning.pools import Offer, Opening, offer, opening, together
from bellwether_load.transforms.packing import changed_blocks, each_block

_Answer = TypeVar("_Answer")
_ANSWER = pa.schema([("block", pa.int32()), ("answer", pa.binary())])


class SparkPool:
    """Implements ``planning.pools.Pool``. Close it to free the executors' memory."""

    def __init__(self, blocks: DataFrame, brokers: int) -> None:
        self._brokers = brokers
        self._start = blocks.persist(StorageLevel.MEMORY_AND_DISK)
        self.blocks = self._start

    def open(self, brokers: Brokers, place: Int64s) -> list[Opening]:
        """See ``Pool``."""
        return self._ask(lambda block: opening(block, brokers, place))

    def offers(self, terms: Terms, place: Int64s) -> list[Offer]:
        """See ``Pool``."""
        return self._ask(lambda block: offer(block, terms, place))

    def settle(self, terms: Terms, asked: Mapping[int, Pairs]) -> list[Int64s]:
        """See ``Pool``."""
        shares = self._start.sparkSession.sparkContext.broadcast(dict(asked))

        def follow(block: Block) -> Block:
            share = shares.value.get(block.number)
            return block if share is None else settle(block, terms, share)

        return self._change(follow)

    def fitting(self, excess: Int64s, room: Int64s) -> list[Fit]:
        """See ``Pool``."""
        return [fit for found in self._ask(lambda block: fitting(block, excess, room)) for fit in found]

    def place(self, wanted: Mapping[int, int]) -> None:
        """See ``Pool``."""
        there = dict(wanted)
        self._change(lambda block: place(block, there))

    def size(self) -> int:
        """See ``Pool``."""
        return sum(self._ask(len))

    def gathered(self) -> Block:
        """See ``Pool``."""
        return joined(0, self.all())

    def all(self) -> list[Block]:
        """Every block, here: for few partitions."""
        return self._ask(lambda block: block)

    def changed(self) -> int:
        """See ``Pool``."""
        return sum(self._ask(lambda block: block.changed))

    def changes(self) -> tuple[Int64s, Int32s]:
        """See ``Pool``."""
        return together(self._ask(lambda block: block.changes))

    def reset(self) -> None:
        """See ``Pool``."""
        self._keep(self._start)

    def close(self) -> None:
        """Free what is cached."""
        self.reset()
        self._start.unpersist()

    def _ask(self, question: Callable[[Block], _Answer]) -> list[_Answer]:
        """Each block's answer, in the order of the blocks."""

        def answer(block: Block) -> pa.RecordBatch:
            found = {"block": block.number, "answer": pickle.dumps(question(block))}
            return pa.RecordBatch.from_pylist([found], schema=_ANSWER)

        rows = each_block(self.blocks, self._brokers, answer, "block int, answer binary").collect()
        # What is unpickled was pickled by our own tasks a moment ago.
        return [pickle.loads(row["answer"]) for row in sorted(rows, key=lambda r: r["block"])]  # noqa: S301

    def _change(self, change: Callable[[Block], Block]) -> list[Int64s]:
        changed = changed_blocks(self.blocks, self._brokers, change).persist(StorageLevel.MEMORY_AND_DISK)
        before, self.blocks = self.blocks, changed
        led = self._ask(lambda block: block.led)
        if before is not self._start:
            before.unpersist()
        return led

    def _keep(self, blocks: DataFrame) -> None:
        if self.blocks is not self._start:
            self.blocks.unpersist()
        self.blocks = blocks
