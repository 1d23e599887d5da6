"""Sums of a piece of the problem's partitions per broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bellwether_load.planning.blocks import Int64s, sums
from bellwether_load.planning.choices import Choices

BLOCK_PARTITIONS = 65_536
"""Partitions that are worked on at a time: some megabytes of arrays."""
MOST_BLOCKS = 128
"""Each one's results have entries by broker: there are no more of them, however many partitions there are."""


@dataclass(frozen=True)
class Survey:
    """Sums over partitions; arrays have an entry a broker, ``leaders`` one more for those without an eligible leader.

    ``base``: what following costs. ``fixed``: loads of partitions without a choice. ``led``: loads by the leader as
    found. ``leaders``: how many partitions with a choice each broker leads. ``widest``: the largest load of a partition
    that at least two may lead, by the eligible broker.
    """

    base: Int64s
    fixed: Int64s
    led: Int64s
    leaders: Int64s
    widest: Int64s
    partitions: int
    without_load: int
    without_consumption: int
    held: int

    @classmethod
    def of(cls, choices: Choices) -> Survey:
        """Of one batch."""
        count, width = choices.brokers, choices.replicas.shape[1]
        follows = np.repeat(choices.follows, width)
        fixed, free = choices.fixed, choices.free
        several = (choices.eligible < count).sum(axis=1) >= 2
        widest = np.zeros(count + 1, np.int64)
        np.maximum.at(widest, choices.eligible[several], choices.loads[several, None])
        return cls(
            base=sums(choices.replicas.ravel(), follows, count + 1)[:count],
            fixed=sums(choices.leader[fixed], choices.loads[fixed], count + 1)[:count],
            led=sums(choices.leader, choices.loads, count + 1)[:count],
            leaders=np.bincount(choices.home[free], minlength=count + 1).astype(np.int64),
            widest=widest[:count],
            partitions=len(choices.loads),
            without_load=int((~choices.known).sum()),
            without_consumption=int((choices.known & ~choices.consumed).sum()),
            held=int(choices.held.sum()),
        )

    @classmethod
    def total(cls, parts: Iterable[Survey], brokers: int) -> Survey:
        """Of all batches."""
        found = [cls.nothing(brokers), *parts]
        return cls(
            base=np.sum([p.base for p in found], axis=0),
            fixed=np.sum([p.fixed for p in found], axis=0),
            led=np.sum([p.led for p in found], axis=0),
            leaders=np.sum([p.leaders for p in found], axis=0),
            widest=np.max([p.widest for p in found], axis=0),
            partitions=sum(p.partitions for p in found),
            without_load=sum(p.without_load for p in found),
            without_consumption=sum(p.without_consumption for p in found),
            held=sum(p.held for p in found),
        )

    @classmethod
    def nothing(cls, brokers: int) -> Survey:
        """Of no partition."""
        none = np.zeros(brokers, np.int64)
        return cls(none, none, none, np.zeros(brokers + 1, np.int64), none, 0, 0, 0, 0)


def share_out(leaders: Int64s, most: int = BLOCK_PARTITIONS) -> Int64s:
    """The block of every broker's partitions, about ``most`` a block, or more where there would be too many blocks: the
    fullest brokers first, each to the emptiest block."""
    blocks = min(MOST_BLOCKS, -(-int(leaders.sum()) // most))
    count = max(1, min(int((leaders > 0).sum()), blocks))
    filled = np.zeros(count, np.int64)
    block = np.zeros(len(leaders), np.int64)
    for broker in np.lexsort((np.arange(len(leaders)), -leaders)):
        block[broker] = int(filled.argmin())
        filled[block[broker]] += leaders[broker]
    return block
