"""Random problems by hour of the week: partitions that are busy at once, in three regions, or as jobs.

In: how many partitions and hours, and a seed. Out: an ``HourlyCase`` of five brokers, which also replaces the
reading of stored loads. Called by unit and property tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bellwether_load.planning.blocks import Block, Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.hourly import HourlyPrices, HourlyProblem
from bellwether_load.planning.hourly_parts import HourlyRows, HourlySums, Item

BROKERS = 5


@dataclass(frozen=True)
class HourlyCase:
    """A problem in whole numbers, all of it held, written without the planner's own sums. Implements
    ``planning.hourly_rounds.Passes``."""

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

    def rows(self, ids: Int64s, changed: Int64s, to: Int32s) -> HourlyRows:
        mine = np.isin(self.block.ids, ids)
        leader = self._led(changed, to)
        rest = np.zeros_like(self.fixed)
        for row in np.flatnonzero(~mine):
            rest[leader[row]] += self.loads[row]
        block = self.block.led_by(leader).take(np.flatnonzero(mine))
        lowest = min(0, int(self.loads.min(initial=0)))
        return HourlyRows(block, self.loads[mine].astype(np.float32), self.fixed, rest, lowest)

    def sums(self, prices: HourlyPrices, fixed: Int64s, changed: Int64s, to: Int32s) -> HourlySums:
        block, least = self.block, self.block.leader.copy()
        items = []
        for row, eligible in enumerate(block.eligible.tolist()):
            may = [b for b in eligible if b < BROKERS]
            home = int(block.home[row])
            costs = {b: int((self.loads[row] * prices.weights[b]).sum()) + prices.move * (b != home) for b in may}
            least[row] = min(costs, key=lambda b: costs[b])
            size = self.brokers.capacity
            need = min(Fraction(int((fixed[b] + self.loads[row]).max()), int(size[b])) for b in may)
            items.append(Item(need, int(block.ids[row])))
        before = self.carried(np.where(block.home < BROKERS, block.home, block.eligible[:, 0]))
        changes = int((least != block.home).sum())
        best = max(items, key=lambda item: (item.load, -item.id), default=None)
        return HourlySums(before, self.carried(self._led(changed, to)), self.carried(least), changes, fixed, best)

    def _led(self, changed: Int64s, to: Int32s) -> Int32s:
        block = self.block
        leader = np.where(block.home < BROKERS, block.home, block.eligible[:, 0]).astype(np.int32)
        leader[changed] = to
        return leader


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
    block = Block(0, BROKERS, np.arange(partitions), loads.max(axis=1), eligible, home, eligible[:, 0].copy())
    return HourlyCase(block, brokers, loads, fixed, most)
