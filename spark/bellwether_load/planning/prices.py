"""Prices of brokers and of a changed leader, the cheapest leader of each partition at these prices, and the bound.

A price for each unit of load on a broker, and one for each changed leader: if every partition takes its cheapest
leader, what it then pays bounds every plan from below (weak duality). A partition that would pay less elsewhere is a
candidate for a move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Int64s, sums
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.pruning import Pruning


@dataclass(frozen=True)
class Prices:
    """Whole numbers, 0 or more: ``weights`` by broker (0 for closed ones), for a unit of load; ``move``: for a changed
    leader; ``moved``: for a unit of load that changes its leader, where few moves are searched for. ``pruning``:
    choices that do not count."""

    weights: Int64s
    move: int = 0
    moved: int = 0
    pruning: Pruning | None = None


@dataclass(frozen=True)
class Priced:
    """One block at some prices: the load that each broker would lead, how many leaders would change, and the partitions
    that would gain most by it, with their gains."""

    led: Int64s
    changed: int
    candidates: Block
    gains: NDArray[np.float64]


def priced(block: Block, prices: Prices, known: Int64s, most: int, *, near: bool = False) -> Priced:
    """Every partition of the block with its cheapest leader; up to ``most`` candidates that are not ``known``, by id.

    ``near``: those that would lose least are candidates, too.
    """
    if not len(block):
        return Priced(np.zeros(block.brokers, np.int64), 0, block, np.empty(0))
    if prices.pruning:
        block = prices.pruning.of_block(block)
    costs = costs_of(block, prices)
    slot = costs.argmin(axis=1)
    chosen = block.eligible[np.arange(len(block)), slot]
    here = block.eligible == block.leader[:, None]
    gain = np.where(here, costs, np.inf).min(axis=1) - np.where(here, np.inf, costs).min(axis=1)
    able = np.flatnonzero((gain > (-np.inf if near else 0)) & ~np.isin(block.ids, known))
    best = np.sort(able[np.lexsort((block.ids[able], -gain[able]))[:most]])
    return Priced(
        led=sums(chosen, block.loads, block.brokers),
        changed=int((chosen != block.home).sum()),
        candidates=block.take(best),
        gains=gain[best],
    )


def total_of(answers: Sequence[Priced], brokers: Brokers) -> tuple[Int64s, int]:
    """The load that each broker would lead, and how many leaders would change, over all blocks."""
    led = np.sum([np.zeros(len(brokers), np.int64), *(a.led for a in answers)], axis=0)
    return led, sum(a.changed for a in answers)


def best_of(answers: Sequence[Priced], most: int) -> list[Block]:
    """The candidates of all blocks that gain most, up to ``most``."""
    if not answers:
        return []
    ids = np.concatenate([a.candidates.ids for a in answers])
    kept = ids[np.lexsort((ids, -np.concatenate([a.gains for a in answers])))[:most]]
    picked = [a.candidates.take(np.flatnonzero(np.isin(a.candidates.ids, kept))) for a in answers]
    return [block for block in picked if len(block)]


def costs_of(block: Block, prices: Prices) -> NDArray[np.float64]:
    """What each partition pays with each eligible leader, in the shape of ``Block.eligible``; infinite for padding."""
    weights = np.append(prices.weights, 0).astype(np.float64)
    costs = weights[block.eligible] * block.loads[:, None]
    changed = prices.move + float(prices.moved) * block.loads
    costs += changed[:, None] * (block.eligible != block.home[:, None])
    costs[block.eligible == block.brokers] = np.inf
    return costs


def bound_of(
    prices: Prices,
    brokers: Brokers,
    led: Int64s,
    changed: int,
    most: int | None,
    limits: Mapping[int, Fraction] | None = None,
) -> Fraction:
    """The bound of these prices, from what all blocks come to at them. ``most``: how many leaders may change.

    It is one on the busiest broker that is not settled, as long as settled ones keep to their ceilings, or to
    ``limits``: relative loads by index.
    """
    weights = prices.weights.tolist()
    total: Fraction | int = sum(w * (int(f) + int(x)) for w, f, x in zip(weights, brokers.fixed, led, strict=True) if w)
    if most is not None:
        total += prices.move * (changed - most)
    if limits is None:
        total -= sum(w * max(int(c), 0) for w, c in zip(weights, brokers.ceiling, strict=True) if w)
    else:
        total -= sum((weights[b] * int(brokers.capacity[b]) * limit for b, limit in limits.items()), Fraction(0))
    free = brokers.free.tolist()
    capacity = sum(w * int(c) for w, c, ours in zip(weights, brokers.capacity, free, strict=True) if w and ours)
    value = Fraction(total) / capacity if capacity else Fraction(0)
    return min(value, Fraction(prices.pruning.threshold)) if prices.pruning else value
