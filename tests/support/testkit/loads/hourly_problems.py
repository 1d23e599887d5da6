"""Random problems by hour of the week: partitions that are busy at once, in three regions, or as jobs.

In: how many partitions and hours, and a seed. Out: an ``HourlyCase`` of five brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Block, Brokers, Int32s, Int64s
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
        return tuple(range(self.loads.shape[1] // self.resources))

    @property
    def resources(self) -> int:
        return 1 if self.brokers.requests is None else 2

    @property
    def capacity(self) -> Int64s:
        """Of each broker in each column."""
        found = np.repeat(self.brokers.capacity[:, None], self.loads.shape[1], axis=1)
        if self.brokers.requests is not None:
            found[:, len(self.hours) :] = self.brokers.requests[:, None]
        return found

    def carried(self, leader: Int32s) -> Int64s:
        found = self.fixed.copy()
        for row, broker in enumerate(leader.tolist()):
            found[broker] += self.loads[row]
        return found

    def highest(self, leader: Int32s) -> Fraction:
        """The busiest broker-hour, by bytes or requests, exactly."""
        carried, size = self.carried(leader)[self.brokers.open], self.capacity[self.brokers.open]
        return max(map(Fraction, carried.ravel().tolist(), size.ravel().tolist()))

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

        return HourlyLoads(self.hours, before, parts, self.resources)


def with_requests(case: HourlyCase, seed: int) -> HourlyCase:
    """The same case with requests that have nothing to do with the bytes, and capacities of their own for them."""
    dice = np.random.default_rng(seed + 1000)
    count, hours = case.loads.shape
    wave = 1 + 0.9 * np.cos((np.arange(hours) - dice.integers(0, hours, (count, 1))) * 2 * np.pi / hours)
    requests = np.rint(dice.lognormal(0, 0.7, (count, 1)) * wave * 1.2e5).astype(np.int64)
    brokers = replace(case.brokers, requests=np.array([100, 50, 150, 80, 100]))
    fixed = np.hstack([case.fixed, np.zeros_like(case.fixed)])
    return replace(case, brokers=brokers, loads=np.hstack([case.loads, requests]), fixed=fixed)


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
