"""Random problems by hour of the week: partitions that are busy at once, in three regions, or as jobs.

In: how many partitions and hours, and a seed. Out: an ``HourlyCase`` of five brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Block, Int32s, Int64s
from bellwether_load.balancing.brokers import Brokers
from bellwether_load.balancing.hourly_loads import HourlyLoads, Part
from bellwether_load.balancing.hourly_prices import HourlyProblem

BROKERS = 5


@dataclass(frozen=True)
class HourlyCase:
    """A problem in whole numbers, all of it held, written without the planner's own sums."""

    block: Block
    brokers: Brokers
    loads: Int64s
    fixed: Int64s
    most: int | None = None

    @property
    def problem(self) -> HourlyProblem:
        return HourlyProblem(self.block, self.brokers, self.hours, self.loads.astype(np.float32), self.fixed, self.most)

    @property
    def hours(self) -> tuple[int, ...]:
        return tuple(range(self.loads.shape[1]))

    def carried(self, leader: Int32s) -> Int64s:
        found = self.fixed.copy()
        for row, broker in enumerate(leader.tolist()):
            found[broker] += self.loads[row]
        return found

    def highest(self, leader: Int32s) -> Fraction:
        """The busiest broker-hour, exactly."""
        carried, size = self.carried(leader), self.brokers.capacity
        return max(Fraction(int(carried[b].max()), int(size[b])) for b in np.flatnonzero(self.brokers.open))

    @property
    def hourly_loads(self) -> HourlyLoads:
        """As the planner reads them: a few partitions at a time."""
        block = self.block
        before = np.where(block.home < BROKERS, block.home, block.eligible[:, 0]).astype(np.int32)
        nothing = np.zeros_like(self.fixed)

        def parts() -> Iterator[Part]:
            yield np.arange(0), self.loads[:0], self.fixed
            for start in range(0, len(block), 100):
                rows = np.arange(start, min(start + 100, len(block)))
                yield rows, self.loads[rows], nothing

        return HourlyLoads(self.hours, before, parts)


def problem(kind: str, partitions: int, hours: int, seed: int, most: int | None = None) -> HourlyCase:
    """Topics that are busy at once, in three regions, or as jobs at different hours; one broker is closed."""
    dice = np.random.default_rng(seed)
    topic, hour = np.arange(partitions)[:, None] % 9, np.arange(hours)[None]
    shift = {"in phase": 0 * topic, "three regions": topic % 3 * hours // 3, "jobs": topic * hours // 9}[kind]
    wave = 1 + 0.9 * np.cos((hour - shift) * 2 * np.pi / hours)
    if kind == "jobs":
        wave = np.where((hour - shift) % hours < max(hours // 12, 1), 12.0, 0.4)
    noise = dice.uniform(0.9, 1.1, (partitions, hours))
    loads = np.rint(dice.lognormal(0, 0.5, partitions)[:, None] * wave * noise * 1e5).astype(np.int64)
    eligible = np.array([dice.permutation(BROKERS - 1)[:3] for _ in range(partitions)], np.int32).reshape(-1, 3)
    home = eligible[:, 0].copy()
    forced = dice.random(partitions) < 0.05
    home[forced] = BROKERS
    fixed = dice.integers(0, 10**5, (BROKERS, hours))
    open_, capacity, base = (
        np.array([True] * (BROKERS - 1) + [False]),
        np.array([100, 100, 50, 200, 100]),
        fixed.max(axis=1),
    )
    brokers = Brokers.of(np.arange(BROKERS), open_, capacity, base, base)
    block = Block(BROKERS, np.arange(partitions), loads.max(axis=1), eligible, home, eligible[:, 0].copy())
    return HourlyCase(block, brokers, loads, fixed, most)
