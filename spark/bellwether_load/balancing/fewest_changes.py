"""Fewer changed leaders: the fewest that keep every broker as low as the plan has it.

A linear program finds them for divisible partitions. Each that it divides moves or stays; then whole partitions are
moved and exchanged until every broker is within its limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bellwether_load.balancing.blocks import Block, Brokers, Int32s, Int64s
from bellwether_load.balancing.bounds import Pruning
from bellwether_load.balancing.programs import Program

MOST_PARTITIONS = 20_000
"""As many are given to the programs."""
SMALL = 200
"""Up to so many leaders to choose from the integer program is asked, too."""
SHARES = (0.5, 0.3, 0.7, 0.1, 0.9)
"""A divided partition moves from this share on. Which one is best differs: all are tried."""
MOST_STEPS = 5_000
MOST_PAIRS = 200_000
"""Exchanges between two brokers that a step looks at."""


def reduce_changes(block: Block, brokers: Brokers, limits: Int64s) -> Block:
    """The block with leaders changed again where fewer changes do; no broker's load is above its limit then."""
    if not block.changed or len(block) > MOST_PARTITIONS:
        return block
    return min([block, *_answers(block, brokers, limits)], key=lambda answer: answer.changed)


def _answers(planned: Block, brokers: Brokers, limits: Int64s) -> Iterator[Block]:
    """Leaders within the limits: of the linear program after repair, and of the integer program where it is small."""
    at_home = (planned.home < len(brokers)) & (planned.eligible == planned.home[:, None]).any(axis=1)
    start = planned.led_by(np.where(at_home, planned.home, planned.leader))
    able = Pruning(0.0, limits - brokers.fixed).of_block(start)
    limited = replace(brokers, ceiling=np.where(brokers.open, limits, -1))
    program = Program(able, limited, brokers.fixed + able.led, len(able), fewest=True)
    if not len(program):
        return
    relaxed = program.relaxed()
    answers = [_repaired(able, limited, program.above(relaxed.shares, share)) for share in SHARES]
    if len(program) <= SMALL:
        answers += program.rounded(relaxed)
    for leader in answers:
        if leader is not None and bool((brokers.fixed + able.led_by(leader).led <= limits)[brokers.open].all()):
            yield planned.led_by(leader)


def _repaired(block: Block, brokers: Brokers, leader: Int32s) -> Int32s | None:
    """The leaders after moves and exchanges that bring every broker to its ceiling; None where they do not."""
    leader = leader.copy()
    excess = np.where(brokers.open, brokers.fixed + block.led_by(leader).led - brokers.ceiling, 0)
    for _ in range(MOST_STEPS):
        over = np.flatnonzero(excess > 0)
        if not len(over):
            return leader
        order = over[np.argsort(-excess[over], kind="stable")]
        step = next((s for s in (_best(_Steps.of(block, leader, int(b)), excess) for b in order) if s), None)
        if step is None:
            return None
        a, b, load, partition, other = step
        leader[partition] = b
        if other >= 0:
            leader[other] = a
        excess[a] -= load
        excess[b] += load
    return None


@dataclass(frozen=True)
class _Steps:
    """What one broker, ``a``, can do to lead less: give a ``partition`` to ``b``, and take an ``other`` one from there.

    ``other`` is -1 where it takes none. ``load``: what ``b`` has more then. ``changes``: how many more leaders are
    changed ones.
    """

    a: int
    b: Int32s
    partition: Int64s
    other: Int64s
    load: Int64s
    changes: Int64s

    @classmethod
    def of(cls, block: Block, leader: Int32s, a: int) -> _Steps:
        """All steps of a broker."""
        loads, home = block.loads, block.home
        mine = np.flatnonzero((leader == a) & (loads > 0))
        row, slot = np.nonzero((block.eligible[mine] < block.brokers) & (block.eligible[mine] != a))
        gives, to = mine[row], block.eligible[mine[row], slot]
        gives_changes = (to != home[gives]).astype(np.int64) - (a != home[gives])
        takes = np.flatnonzero((block.eligible == a).any(axis=1) & (leader != a))
        takes_changes = np.not_equal(home[takes], a).astype(np.int64) - (leader[takes] != home[takes])
        parts = [(to, gives, np.full(len(gives), -1), loads[gives], gives_changes)]
        for b in np.unique(to):
            i, j = np.flatnonzero(to == b), np.flatnonzero(leader[takes] == b)
            # Those that make the fewest changes, if there are too many pairs.
            j = j[np.argsort(takes_changes[j], kind="stable")[: max(1, MOST_PAIRS // len(i))]]
            i, j = np.repeat(i, len(j)), np.tile(j, len(i))
            p, q = gives[i], takes[j]
            parts.append((to[i], p, q, loads[p] - loads[q], gives_changes[i] + takes_changes[j]))
        return cls(a, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _best(steps: _Steps, excess: Int64s) -> tuple[int, int, int, int, int] | None:
    """Of the steps that lower the excess of both by at least half of what the best one does, that with the fewest
    changes."""
    over, other = excess[steps.a], excess[steps.b]
    gain = over + np.maximum(other, 0) - np.maximum(over - steps.load, 0) - np.maximum(other + steps.load, 0)
    good = np.flatnonzero((gain > 0) & (2 * gain >= gain.max(initial=0)))
    if not len(good):
        return None
    at = good[np.lexsort((-gain[good], steps.changes[good]))[0]]
    return (steps.a, int(steps.b[at]), int(steps.load[at]), int(steps.partition[at]), int(steps.other[at]))
