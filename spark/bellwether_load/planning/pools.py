"""Pool of all blocks, with the leaders that the rounds have chosen so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int32s, Int64s, joined
from bellwether_load.planning.bounds import contained, heaviest_item
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.fits import Fit, fitting, place
from bellwether_load.planning.offers import Drawn, Pairs, Terms, draw, offered, settle
from bellwether_load.planning.prices import Priced, Prices, priced


@dataclass(frozen=True)
class Opening:
    """Initial sums of one block."""

    block: int
    led: Int64s
    inside: Int64s
    heaviest: float


@dataclass(frozen=True)
class Offer:
    """Offers of one block's partitions."""

    block: int
    pairs: Pairs
    inside: Int64s


class Pool:
    """All blocks. Results are in the order of the blocks' numbers."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._start = tuple(sorted(blocks, key=lambda b: b.number))
        self.blocks = self._start
        self._last: tuple[Terms, tuple[Block, ...], list[Drawn]] | None = None

    def open(self, brokers: Brokers, place: Int64s) -> list[Opening]:
        """What each block's brokers lead, what its partitions keep inside each prefix, its heaviest partition."""
        return [opening(b, brokers, place) for b in self.blocks]

    def offers(self, terms: Terms, place: Int64s) -> list[Offer]:
        """What each block offers under these terms; changes nothing."""
        return [offer(b, drawn, terms, place) for b, drawn in zip(self.blocks, self._draw(terms), strict=True)]

    def priced(self, prices: Prices, known: Int64s, most: int, *, near: bool = False) -> list[Priced]:
        """What each block comes to at these prices, with its best candidates; changes nothing."""
        return [priced(b, prices, known, most, near=near) for b in self.blocks]

    def settle(self, terms: Terms, asked: Mapping[int, Pairs]) -> list[Int64s]:
        """Make the requested moves in each block; returns what its brokers lead afterwards."""
        drawn = zip(self.blocks, self._draw(terms), strict=True)
        self.blocks = tuple(settle(b, d, asked[b.number]) if b.number in asked else b for b, d in drawn)
        return [b.led for b in self.blocks]

    def fitting(self, excess: Int64s, room: Int64s) -> list[Fit]:
        """Single partitions that fit."""
        return [fit for b in self.blocks for fit in fitting(b, excess, room)]

    def place(self, wanted: Mapping[int, int]) -> None:
        """Change the leaders of some partitions, by id."""
        self.blocks = tuple(place(b, dict(wanted)) for b in self.blocks)

    def size(self) -> int:
        """How many partitions there are."""
        return sum(len(b) for b in self.blocks)

    def gathered(self, leaders: NDArray[np.bool_] | None = None) -> Block:
        """The partitions that these brokers lead now in one block, here: for few of them. None: all partitions."""
        return joined(0, [of_leaders(b, leaders) for b in self.blocks])

    def changed(self) -> int:
        """Number of partitions with a changed leader."""
        return sum(b.changed for b in self.blocks)

    def changes(self) -> tuple[Int64s, Int32s]:
        """Ids of these partitions, ascending, and their new leaders."""
        return together([b.changes for b in self.blocks])

    def reset(self) -> None:
        """Undo all changes."""
        self.blocks = self._start

    def state(self) -> tuple[Block, ...]:
        """The present leaders, for :meth:`restore`."""
        return self.blocks

    def restore(self, state: tuple[Block, ...]) -> None:
        """Return to the leaders of :meth:`state`."""
        self.blocks = state

    def _draw(self, terms: Terms) -> list[Drawn]:
        """The offers of a round, which are needed twice."""
        if self._last is None or self._last[0] is not terms or self._last[1] is not self.blocks:
            self._last = terms, self.blocks, [draw(b, terms) for b in self.blocks]
        return self._last[2]


def carried_by(pool: Pool, brokers: Brokers) -> Int64s:
    """The load of each broker with the present leaders."""
    carried = brokers.fixed.copy()
    for found in pool.open(brokers, np.zeros(len(brokers), np.int64)):
        carried += found.led
    return carried


def place_changed(pool: Pool, before: Block, after: Block) -> None:
    """Change the leaders in the pool that differ in these blocks of the same partitions."""
    rows = np.flatnonzero(after.leader != before.leader)
    pool.place(dict(zip(after.ids[rows].tolist(), after.leader[rows].tolist(), strict=True)))


def together(parts: Sequence[tuple[Int64s, Int32s]]) -> tuple[Int64s, Int32s]:
    """Ids and leaders of several blocks, by id."""
    ids = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in parts)])
    leaders = np.concatenate([np.empty(0, np.int32), *(leaders for _, leaders in parts)])
    order = np.argsort(ids)
    return ids[order], leaders[order]


def of_leaders(block: Block, leaders: NDArray[np.bool_] | None) -> Block:
    """One block's part of :meth:`Pool.gathered`."""
    return block if leaders is None else block.take(np.flatnonzero(leaders[block.leader]))


def opening(block: Block, brokers: Brokers, places: Int64s) -> Opening:
    """One block's part of :meth:`Pool.open`."""
    return Opening(block.number, block.led, contained(block, places), heaviest_item(block, brokers))


def offer(block: Block, drawn: Drawn, terms: Terms, places: Int64s) -> Offer:
    """One block's part of :meth:`Pool.offers`."""
    return Offer(block.number, offered(block, drawn, terms), contained(block, places))
