"""Plan against the hours of the week: the lowest busiest broker-hour, and prices by broker and hour that bound it.

Two descents. The first one divides heavy partitions into equal parts that are led apart; where it ends, the prices
prove how low the busiest broker-hour can be at all. Each partition then gets the leader of most of its parts, and the
second descent moves whole partitions. All partitions are read twice: for the loads that are held, and for what the
prices prove.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Block, Brokers, Int32s, Int64s, Tell
from bellwether_load.balancing.descent import Descent, Parts, returned
from bellwether_load.balancing.hourly_loads import HourlyLoads, HourlySums
from bellwether_load.balancing.hourly_prices import (
    HourlyPrices,
    HourlyProblem,
    PricedHours,
    ascended,
    needed_alone,
    of_fewer_hours,
)

CLOSE = 3e-3
"""Relative distance to the bound at which the search ends."""
DIVIDED = (50.0, 100.0, 200.0, 400.0, 800.0)
"""How sharp the smooth maximum of divided partitions is, stage by stage."""
WHOLE = (100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)
"""The same, of whole ones."""
_PARTS = 1000
"""Parts that what a broker leads is divided into, if all partitions are heavy."""
_MOST_PARTS = 256
"""Of one partition."""
_ALL_PARTS = 300_000
"""Of all partitions, up to which they are divided further."""
WORTHWHILE = 0.995
"""Leaders that leave more than this of the busiest hour's load are not worth their changes."""


@dataclass(frozen=True)
class HourlyBound:
    """A lower bound on the busiest broker-hour, and the prices that prove it. ``item``: the id of a partition that
    decides it alone, or None."""

    value: Fraction
    prices: HourlyPrices
    item: int | None


@dataclass(frozen=True)
class HourlyResult:
    """The leaders, and the bound."""

    block: Block
    hours: tuple[int, ...]
    bound: HourlyBound


def by_hours(
    hourly: HourlyLoads, block: Block, brokers: Brokers, most: int | None, tell: Tell = lambda _: None
) -> HourlyResult:
    """Change leaders if the busiest broker-hour becomes lower by 0.5 % or more; at most ``most`` in all."""
    held = hourly.held(block)
    problem = HourlyProblem(block, brokers, hourly.hours, held.loads, held.fixed, most)
    best = divided(problem, tell)
    leader = balanced(problem, best, tell)
    before, after = problem.highest(block.leader), problem.highest(leader)
    if after < before * WORTHWHILE:
        changed, block = block.changed, block.led_by(leader)
        tell(
            f"by hour: the busiest hour is {1 - after / before:.1%} lower with {block.changed:,} changed leaders than"
            f" with {changed:,}"
        )
    else:
        tell("the plan for the statistic is as good by hour: no other plan lowers its busiest hour by 0.5 %")
    sums = hourly.sums(block, brokers, best.prices, held.fixed)
    bound = bound_of(best.prices, sums, held.fixed, brokers, most)
    return HourlyResult(block, hourly.hours, bound)


def bound_of(prices: HourlyPrices, sums: HourlySums, fixed: Int64s, brokers: Brokers, most: int | None) -> HourlyBound:
    """The bound that the prices prove, or that of a broker's ``fixed`` load or of a single partition, if higher;
    exactly.

    At most ``most`` leaders may change.
    """
    weights, at = prices.weights, np.argwhere(prices.weights > 0).tolist()
    total = prices.move * (sums.changed - most) if most is not None else 0
    total += sum(int(weights[b, h]) * int(sums.cheapest[b, h]) for b, h in at)
    size = np.broadcast_to(brokers.by_column(weights.shape[1]), weights.shape)
    capacity = sum(int(weights[b, h]) * int(size[b, h]) for b, h in at)
    value = max(Fraction(total, capacity), Fraction(0)) if capacity else Fraction(0)
    value = max(value, brokers.busiest_column(fixed)[0])
    item = None if sums.item is None or sums.item.load <= value else sums.item
    return HourlyBound(value if item is None else item.load, prices, None if item is None else item.id)


@dataclass(frozen=True)
class Divided:
    """Prices, about what they prove, and for each partition the leader of most of its parts."""

    prices: HourlyPrices
    bound: float
    leader: Int32s


def divided(problem: HourlyProblem, tell: Tell = lambda _: None) -> Divided:
    """Balance divided partitions by hour, from the block's leaders."""
    block = problem.block
    if not problem.loads.any() or not problem.brokers.open.any():
        return Divided(HourlyPrices(np.zeros_like(problem.fixed), 0), 0.0, block.leader)
    carried = problem.carried(block.leader)
    descent = Descent(block, problem.loads, carried, problem.capacity, _parts(problem), problem.most)
    priced = []
    for stage, sharpness in enumerate(DIVIDED):
        if stage and 2 * len(descent.parts.row) <= _ALL_PARTS:
            # Prices differ by a part's share of a broker's load times the sharpness.
            descent.parts = descent.parts.halved()
        descent.settle(sharpness, 0.0)
        if sharpness in DIVIDED[-2:]:
            priced.append(PricedHours.at(problem, *descent.prices(sharpness)))
    best = of_fewer_hours(problem, max(*priced, ascended(problem, priced[-1]), key=lambda found: found.bound))
    gap = descent.highest / max(best.bound, 1e-300) - 1
    tell(f"by hour: {gap:.2%} between bound and plan if partitions could be divided")
    return Divided(best.whole_numbers, best.bound, _leader_of_most(block, descent.parts))


def balanced(problem: HourlyProblem, found: Divided, tell: Tell = lambda _: None) -> Int32s:
    """Leaders with the lowest busiest broker-hour that is found; those of the block where none is lower."""
    block, fixed, brokers = problem.block, problem.fixed, problem.brokers
    most, _, _ = brokers.busiest_column(fixed)
    alone, _ = needed_alone(block.eligible, problem.loads, fixed, brokers, most)
    bound = max(found.bound, float(alone))
    before, goal = problem.highest(block.leader), bound * (1 + CLOSE)
    if before <= goal or not len(block):
        return block.leader
    leader = _within(problem, found.leader)
    whole = np.arange(len(block))
    parts = Parts(whole, np.ones(len(block), np.float32), leader.copy())
    descent = Descent(block, problem.loads, problem.carried(leader), problem.capacity, parts, problem.most)
    for sharpness in WHOLE:
        descent.settle(sharpness, goal, hard=True)
    tell(f"by hour: the busiest is {descent.highest / max(bound, 1e-300) - 1:.2%} over the bound")
    if descent.highest >= before:
        return block.leader
    limit = descent.highest * problem.capacity
    # What the block does for brokers that are less busy is left.
    back = np.stack([block.home, block.leader])
    return returned(block.led_by(parts.leader), problem.loads, problem.carried(parts.leader), limit, back)


def _parts(problem: HourlyProblem) -> Parts:
    """Heavy partitions in many parts. With a cap also light ones, so that one part takes little of what it allows."""
    block, loads = problem.block, problem.loads
    peak = loads.max(axis=1, initial=0)
    size = max(float(peak.sum()) / max(int(problem.brokers.open.sum()), 1) / _PARTS, 1e-300)
    least = 1 if problem.most is None else min(max(_MOST_PARTS // max(problem.most, 1), 1), 16)
    count = np.clip(np.ceil(peak / size), least, _MOST_PARTS).astype(np.int64)
    row = np.repeat(np.arange(len(block)), count)
    return Parts(row, count[row].astype(np.float32), block.leader[row])


def _leader_of_most(block: Block, parts: Parts) -> Int32s:
    """The leader of most parts of each partition; where several have as many, the present one, or the first."""
    shares = np.empty(block.eligible.shape)
    for slot in range(block.eligible.shape[1]):
        shares[:, slot] = np.bincount(parts.row, parts.leader == block.eligible[parts.row, slot], len(block))
    shares += 0.5 * (block.eligible == block.leader[:, None])
    found: Int32s = np.take_along_axis(block.eligible, shares.argmax(axis=1)[:, None], axis=1)[:, 0]
    return found


def _within(problem: HourlyProblem, leader: Int32s) -> Int32s:
    """The same leaders; if too many changed, the lightest of them return to where they were."""
    block, loads = problem.block, problem.loads
    over = 0 if problem.most is None else int((leader != block.home).sum()) - problem.most
    if over <= 0:
        return leader
    added = np.flatnonzero((leader != block.home) & (block.leader == block.home))
    back = added[np.argsort(loads[added].max(axis=1), kind="stable")[:over]]
    kept = leader.copy()
    kept[back] = block.leader[back]
    return kept
