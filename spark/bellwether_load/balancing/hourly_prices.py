"""Prices by broker and hour of the week, and the bound on the busiest broker-hour that they prove (weak duality)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellwether_load.balancing.blocks import Block, Brokers, Floats, Int32s, Int64s, column_sums
from bellwether_load.balancing.descent import Float32s

_FIRST_STEP, _CLIP = 0.03, 3.0
"""Length of the first step that makes prices better, in logarithms for a relative difference of 1, and the largest
difference that counts; later steps are shorter."""
_ASCENT_STEPS, _ASCENT_WORK = 200, 1_000_000_000
"""Most such steps, and most products of a load and a price in all of them."""
_AS_MUCH = 2e-4
"""Share of the bound that prices of fewer hours may lose."""
_DAY = 24
_ROUNDED = 1e-12
_WEIGHT, _LARGEST = 2.0**12, 2.0**62
"""The largest price of load as a whole number, and the largest price of a changed leader that is possible."""
_ROWS = 65_536
"""Partitions that are worked on at a time: some 100 MB of doubles."""


@dataclass(frozen=True)
class HourlyProblem:
    """Partitions with a choice, and ``loads``: a row each, a column for each of ``hours`` of the week, and as
    many for requests where these count. ``fixed``: likewise of each broker, without them. ``most``: how many leaders
    may change, None for any number; the block's leaders keep to it."""

    block: Block
    brokers: Brokers
    hours: tuple[int, ...]
    loads: Float32s
    fixed: Int64s
    most: int | None

    @property
    def capacity(self) -> Floats:
        """That of each broker by column, or in one column for all; infinite where it may not lead, so that its load
        counts as 0."""
        return np.where(self.brokers.open[:, None], self.brokers.by_column(self.loads.shape[1]), np.inf)

    def carried(self, leader: Int32s) -> Floats:
        """The load of each broker in each hour."""
        found = self.fixed.astype(np.float64)
        for rows in _some(len(leader)):
            found += column_sums(leader[rows], self.loads[rows].astype(np.float64), len(self.brokers))
        return found

    def highest(self, leader: Int32s) -> float:
        """The highest relative load of an open broker in an hour."""
        return float((self.carried(leader) / self.capacity).max(initial=0))


@dataclass(frozen=True)
class HourlyPrices:
    """Whole numbers that prove a bound: ``weights`` by broker and hour, ``move`` for a changed leader."""

    weights: Int64s
    move: int


@dataclass(frozen=True)
class Item:
    """The busiest broker-hour that a partition causes alone with its best leader, and its id."""

    load: Fraction
    id: int


@dataclass(frozen=True)
class PricedHours:
    """Prices of load and of a changed leader, and the bound that they prove of these partitions: each pays least with
    its ``cheapest`` leader (weak duality)."""

    weights: Floats
    move: float
    bound: float
    cheapest: Int32s

    @classmethod
    def at(cls, problem: HourlyProblem, weights: Floats, move: float) -> PricedHours:
        """A problem at these prices."""
        block, cheapest = problem.block, problem.block.leader.copy()
        total = float((weights * problem.fixed).sum()) - move * (problem.most or 0)
        for rows in _some(len(block)):
            costs = prices_of(block.eligible[rows], block.brokers, problem.loads[rows], weights)
            costs += move * (block.eligible[rows] != block.home[rows, None])
            slot = costs.argmin(axis=1)[:, None]
            cheapest[rows] = np.take_along_axis(block.eligible[rows], slot, axis=1)[:, 0]
            total += float(np.take_along_axis(costs, slot, axis=1).sum())
        capacity = problem.brokers.by_column(weights.shape[1])
        return cls(weights, move, total / float((weights * capacity).sum()), cheapest)

    @property
    def whole_numbers(self) -> HourlyPrices:
        """The prices, rounded."""
        unit = _WEIGHT / self.weights.max()
        return HourlyPrices(np.rint(self.weights * unit).astype(np.int64), int(min(self.move * unit, _LARGEST)))


def ascended(problem: HourlyProblem, start: PricedHours) -> PricedHours:
    """Prices that prove more, by multiplicative steps along subgradients of the bound (Shor 1985, exponentiated);
    fewer of them where partitions are many."""
    best = now = start
    for step in range(min(_ASCENT_WORK // (problem.loads.size * problem.block.eligible.shape[1]), _ASCENT_STEPS)):
        if now.bound <= 0:
            break
        length = _FIRST_STEP / np.sqrt(1 + step)
        over = problem.carried(now.cheapest) / problem.capacity / now.bound - 1
        weights = now.weights * np.exp(length * np.clip(over, -_CLIP, _CLIP))
        changed = int((now.cheapest != problem.block.home).sum()) / max(problem.most or 1, 1) - 1
        move, total = now.move * np.exp(length * min(changed, _CLIP)), weights.sum()
        now = PricedHours.at(problem, weights / total, float(move / total))
        best = now if now.bound > best.bound else best
    return best


def of_fewer_hours(problem: HourlyProblem, priced: PricedHours) -> PricedHours:
    """With the prices of all days on the day that has most of them, and those of several hours on one of these, as long
    as they prove about as much: a verifier has less to add up."""
    count = len(problem.hours)
    hours = np.resize(problem.hours, priced.weights.shape[1])
    day = int(np.bincount(hours // _DAY, priced.weights.sum(axis=0)).argmax())
    column = {(at // count, int(hour) % _DAY): at for at, hour in enumerate(hours) if hour // _DAY == day}
    found = priced
    for width in (1, 2, 4, 8):
        to = [column.get((at // count, int(hour) % _DAY // width * width), -1) for at, hour in enumerate(hours)]
        if -1 in to:
            break
        weights = np.zeros_like(priced.weights)
        np.add.at(weights.T, to, priced.weights.T)
        fewer = PricedHours.at(problem, weights, priced.move)
        if fewer.bound < priced.bound * (1 - _AS_MUCH):
            break
        found = fewer
    return found


def prices_of(
    eligible: Int32s, brokers: int, loads: NDArray[np.integer] | Float32s, weights: NDArray[np.integer] | Floats
) -> Floats:
    """What each partition costs with each of its eligible leaders; infinite where there is none."""
    hours = np.flatnonzero(weights.any(axis=0))
    of_rows, of_brokers = loads[:, hours].astype(np.float64), weights[:, hours].astype(np.float64)
    costs = np.full(eligible.shape, np.inf)
    for slot in range(eligible.shape[1]):
        rows = np.flatnonzero(eligible[:, slot] < brokers)
        costs[rows, slot] = np.einsum("ij,ij->i", of_rows[rows], of_brokers[eligible[rows, slot]])
    return costs


def needed_alone(
    eligible: Int32s, loads: Int64s | Float32s, fixed: Int64s, brokers: Brokers, most: Fraction
) -> tuple[Fraction, int | None]:
    """The busiest broker-hour that one partition causes with its best leader, and its row; ``most`` and None where no
    partition causes more than that."""
    # What it would be if the busiest hours of partition and broker were the same: no less, and cheap.
    capacity = brokers.capacities
    resources = capacity.shape[1]

    def highest(values: NDArray[Any]) -> NDArray[Any]:
        by_resource = values.reshape(len(values), resources, values.shape[1] // resources)
        found: NDArray[Any] = by_resource.max(axis=2, initial=0)
        return found

    needs = np.pad(highest(fixed), ((0, 1), (0, 0)))[eligible] + highest(loads)[:, None]
    needs = (needs / np.pad(capacity, ((0, 1), (0, 0)), constant_values=1)[eligible]).max(axis=2)
    upper = np.where(eligible < len(brokers), needs, np.inf).min(axis=1, initial=np.inf)
    best: int | None = None
    for row in np.argsort(-upper, kind="stable").tolist():
        if upper[row] * (1 + _ROUNDED) <= most:
            break
        may = eligible[row][eligible[row] < len(brokers)].tolist()
        found = highest(fixed[may] + loads[row].astype(np.int64)).tolist()
        load = min(max(map(Fraction, need, capacity[b].tolist())) for b, need in zip(may, found, strict=True))
        if load > most:
            most, best = load, row
    return most, best


def _some(count: int) -> Iterator[slice]:
    for start in range(0, count, _ROWS):
        yield slice(start, start + _ROWS)
