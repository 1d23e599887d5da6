"""Balance: the lowest busiest broker, with its lower bound, and with at most so many changed leaders.

The descent lowers the busiest broker to the bound, or nearly so; exchanges finish where single partitions are heavy.
Where that is not enough, or where too many leaders change, an integer program decides about the moves that are worth it
at the prices of a linear program, or nearly so. The same input gives the same plan: all sums are of integers, all
pseudo-random choices are hashes of the partition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Block, Brokers, Floats, Int64s, Tell
from bellwether_load.balancing.bounds import Bound, Priced, Prices, heaviest_item, highest, prefix_bound
from bellwether_load.balancing.descent import Descent, Parts, returned
from bellwether_load.balancing.exchanges import exchanged
from bellwether_load.balancing.programs import CORE, Program, Relaxation, relax

TOLERANCE = Fraction(1, 1000)
SHARPNESS = (50.0, 200.0, 800.0, 3200.0)
"""Of the smooth maximum, stage by stage."""
MOST_PARTITIONS = 20_000
"""As many are given to the programs without a cap, too."""
_NEAR = 0.7e-3
"""How far above the bound the descent leaves a broker: some of the tolerance stays for what single partitions weigh."""


@dataclass(frozen=True)
class Balance:
    """The leaders, the bound with the prices that prove it, and that of the heaviest partition or fixed load."""

    block: Block
    bound: Bound
    heaviest: float

    @property
    def floor(self) -> float:
        """The lower bound on the busiest broker: by prices, or by what one of them carries in any case."""
        return max(float(self.bound.value), self.heaviest)

    def top(self, brokers: Brokers) -> Fraction:
        """The relative load of the busiest broker."""
        return brokers.busiest(brokers.fixed + self.block.led)

    def kept(self, brokers: Brokers) -> bool:
        """Whether settled brokers keep to their ceilings."""
        return brokers.kept(brokers.fixed + self.block.led)

    def tight(self, brokers: Brokers) -> bool:
        """Whether the busiest broker is within the tolerance of the bound."""
        return self.top(brokers) <= Fraction(self.floor) * (1 + TOLERANCE)


def balance(block: Block, brokers: Brokers, tell: Tell = lambda _: None) -> Balance:
    """Change leaders until the busiest broker is within the tolerance of its lower bound, or nothing helps."""
    carried = brokers.fixed + block.led
    bound = highest(prefix_bound(block, brokers, order) for order in (brokers.fixed, carried))
    found, before = Balance(block, bound, heaviest_item(block, brokers)), block
    for sharpness in SHARPNESS:
        if found.tight(brokers) and found.kept(brokers):
            break
        block = _descended(found.block, brokers, sharpness, found.floor * (1 + _NEAR))
        found = replace(
            found, block=block, bound=highest([found.bound, prefix_bound(block, brokers, brokers.fixed + block.led)])
        )
        over = float(found.top(brokers)) / found.floor - 1 if found.floor else 0.0
        tell(f"the busiest broker is {over:.3%} over the bound, {block.changed:,} leaders change")
    if not found.tight(brokers):
        # The bound is out of reach: to come as low as this from the start, fewer leaders have to change.
        again, top = before, found.top(brokers)
        for sharpness in SHARPNESS:
            again = _descended(again, brokers, sharpness, float(top))
        enough = replace(found, block=again)
        if enough.kept(brokers) and enough.top(brokers) <= top * (1 + TOLERANCE):
            found = min(found, enough, key=lambda answer: answer.block.changed)
    goal = Fraction(found.floor) * (1 + TOLERANCE)
    block = exchanged(found.block, brokers, goal)
    top = max(goal, brokers.busiest(brokers.fixed + block.led))
    limit = np.where(brokers.settled, brokers.ceiling, brokers.limits(top))
    return replace(found, block=at_home(block, brokers, limit))


def at_home(block: Block, brokers: Brokers, limit: Int64s) -> Block:
    """Leaders that changed without need are back, the lightest first, as far as no broker is above its limit."""
    carried = brokers.fixed + block.led
    loads, load, most = (values.astype(np.float64)[:, None] for values in (block.loads, carried, limit))
    return block.led_by(returned(block, loads, load, most, block.home[None]))


def capped(block: Block, brokers: Brokers, most: int | None, tell: Tell = lambda _: None) -> Balance:
    """Balance with at most ``most`` changed leaders; those that must change at the start count, and always change.

    Few partitions that are not within the tolerance of the bound are left to the programs, too.
    """
    found, start = balance(block, brokers, tell), block.start
    most = None if most is None else max(most, start.changed)
    few = len(block) <= MOST_PARTITIONS
    over = (most is not None and found.block.changed > most) or (few and not found.kept(brokers))
    if not over and (found.tight(brokers) or not few):
        return found
    relaxed = _relaxed(start, brokers, most, found, tell)
    if not over and replace(found, bound=relaxed.bound).tight(brokers):
        return replace(found, bound=relaxed.bound)
    other = _rounded(start, brokers, most, found, relaxed)
    return other if over or other.top(brokers) < found.top(brokers) else replace(found, bound=other.bound)


def _descended(block: Block, brokers: Brokers, sharpness: float, goal: float) -> Block:
    """One stage of the descent. A settled broker is at the goal where it is at its ceiling, and never above it."""
    settled, leader = brokers.settled, block.leader.copy()
    capacity: Floats = np.where(settled, np.maximum(brokers.ceiling, 1e-9) / max(goal, 1e-200), brokers.capacity)
    parts = Parts(np.arange(len(block)), np.ones(len(block), np.float32), leader)
    carried = (brokers.fixed + block.led).astype(np.float64)
    carried[~brokers.open] = 0
    limits = np.where(settled, goal, np.inf)
    loads = block.loads.astype(np.float64)
    Descent(block, loads[:, None], carried[:, None], capacity, parts, None, limits).settle(sharpness, goal)
    return block.led_by(leader)


def _relaxed(start: Block, brokers: Brokers, most: int | None, free: Balance, tell: Tell) -> Relaxation:
    """The optimum of divisible partitions with at most ``most`` changed leaders; ``free``: without that limit."""
    prices = Prices((brokers.open & (start.led > free.block.led)).astype(np.int64))
    return relax(start, brokers, most, prices, free.bound, tell)


def _rounded(start: Block, brokers: Brokers, most: int | None, free: Balance, relaxed: Relaxation) -> Balance:
    """The best of the plans that the programs find, from the leaders at the start."""
    near = Priced.at(start, relaxed.prices).best(CORE, relaxed.candidates, -np.inf)
    rows = np.sort(np.append(relaxed.candidates, near))
    if not len(rows):
        return Balance(start, relaxed.bound, free.heaviest)
    allowed = len(start) if most is None else most - start.changed
    program = Program(start.take(rows), brokers, brokers.fixed + start.led, allowed)
    answers = [
        Balance(exchanged(start.put(rows, leader), brokers, relaxed.bound.value, most), relaxed.bound, free.heaviest)
        for leader in program.rounded(program.relaxed())
    ]
    return min(answers, key=lambda answer: (not answer.kept(brokers), answer.top(brokers)))
