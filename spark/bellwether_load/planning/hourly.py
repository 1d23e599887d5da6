"""Plan against the hours of the week: the lowest busiest broker-hour, and prices by broker and hour that bound it.

Two descents (``hourly_descent``). The first one divides heavy partitions into equal parts that are led apart; where it
ends, the prices prove how low the busiest broker-hour can be at all. Each partition then gets the leader of most of its
parts, and the second descent moves whole partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bellwether_load.planning.blocks import Block, Floats, Int32s, Int64s
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.forecasts import sums_by_hour
from bellwether_load.planning.hourly_descent import Descent, Float32s, Parts, first_of_each

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
    """Partitions with a choice, and ``loads``: a row each, a column for each of ``hours`` of the week. ``fixed``:
    likewise of each broker, without them. ``most``: how many leaders may change, None for any number; the block's
    leaders keep to it."""

    block: Block
    brokers: Brokers
    hours: tuple[int, ...]
    loads: Float32s
    fixed: Int64s
    most: int | None

    @property
    def capacity(self) -> Floats:
        """That of each broker; infinite where it may not lead, so that its load counts as 0."""
        return np.where(self.brokers.open, self.brokers.capacity, np.inf)

    def carried(self, leader: Int32s) -> Floats:
        """The load of each broker in each hour."""
        found = self.fixed.astype(np.float64)
        for rows in _some(len(leader)):
            found += sums_by_hour(leader[rows], self.loads[rows].astype(np.float64), len(self.brokers))
        return found

    def highest(self, leader: Int32s) -> float:
        """The highest relative load of an open broker in an hour."""
        return float((self.carried(leader) / self.capacity[:, None]).max(initial=0))


@dataclass(frozen=True)
class HourlyPrices:
    """Whole numbers that prove a bound: ``weights`` by broker and hour, ``move`` for a changed leader."""

    weights: Int64s
    move: int


@dataclass(frozen=True)
class Divided:
    """Prices, about what they prove, and for each partition the leader of most of its parts."""

    prices: HourlyPrices
    bound: float
    leader: Int32s


def divided(problem: HourlyProblem, tell: Callable[[str], None] = lambda _: None) -> Divided:
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
            priced.append(_Priced.at(problem, *descent.prices(sharpness)))
    best = _of_fewer_hours(problem, max(*priced, _ascended(problem, priced[-1]), key=lambda found: found.bound))
    gap = descent.highest / max(best.bound, 1e-300) - 1
    tell(f"by hour: {gap:.2%} between bound and plan if partitions could be divided")
    return Divided(best.whole_numbers, best.bound, _leader_of_most(block, descent.parts))


def balanced(problem: HourlyProblem, found: Divided, tell: Callable[[str], None] = lambda _: None) -> Int32s:
    """Leaders with the lowest busiest broker-hour that is found; those of the block where none is lower."""
    block, fixed, brokers = problem.block, problem.fixed, problem.brokers
    most = brokers.busiest(fixed.max(axis=1, initial=0))
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
    return _returned(problem, parts.leader, descent) if descent.highest < before else block.leader


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
    capacity = np.append(brokers.capacity, 1)
    needs = np.append(fixed.max(axis=1, initial=0), 0)[eligible] + loads.max(axis=1, initial=0)[:, None]
    upper = np.where(eligible < len(brokers), needs / capacity[eligible], np.inf).min(axis=1, initial=np.inf)
    best: int | None = None
    for row in np.argsort(-upper, kind="stable").tolist():
        if upper[row] * (1 + _ROUNDED) <= most:
            break
        may = eligible[row][eligible[row] < len(brokers)].tolist()
        found = (fixed[may] + loads[row].astype(np.int64)).max(axis=1).tolist()
        load = min(Fraction(need, int(brokers.capacity[b])) for b, need in zip(may, found, strict=True))
        if load > most:
            most, best = load, row
    return most, best


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


@dataclass(frozen=True)
class _Priced:
    """Prices of load and of a changed leader, and the bound that they prove of these partitions: each pays least with
    its ``cheapest`` leader (weak duality)."""

    weights: Floats
    move: float
    bound: float
    cheapest: Int32s

    @classmethod
    def at(cls, problem: HourlyProblem, weights: Floats, move: float) -> _Priced:
        block, cheapest = problem.block, problem.block.leader.copy()
        total = float((weights * problem.fixed).sum()) - move * (problem.most or 0)
        for rows in _some(len(block)):
            costs = prices_of(block.eligible[rows], block.brokers, problem.loads[rows], weights)
            costs += move * (block.eligible[rows] != block.home[rows, None])
            slot = costs.argmin(axis=1)[:, None]
            cheapest[rows] = np.take_along_axis(block.eligible[rows], slot, axis=1)[:, 0]
            total += float(np.take_along_axis(costs, slot, axis=1).sum())
        return cls(weights, move, total / float((weights * problem.brokers.capacity[:, None]).sum()), cheapest)

    @property
    def whole_numbers(self) -> HourlyPrices:
        unit = _WEIGHT / self.weights.max()
        return HourlyPrices(np.rint(self.weights * unit).astype(np.int64), int(min(self.move * unit, _LARGEST)))


def _ascended(problem: HourlyProblem, start: _Priced) -> _Priced:
    """Prices that prove more, by multiplicative steps along subgradients of the bound (Shor 1985, exponentiated);
    fewer of them where partitions are many."""
    best = now = start
    for step in range(min(_ASCENT_WORK // (problem.loads.size * problem.block.eligible.shape[1]), _ASCENT_STEPS)):
        if now.bound <= 0:
            break
        length = _FIRST_STEP / np.sqrt(1 + step)
        over = problem.carried(now.cheapest) / problem.capacity[:, None] / now.bound - 1
        weights = now.weights * np.exp(length * np.clip(over, -_CLIP, _CLIP))
        changed = int((now.cheapest != problem.block.home).sum()) / max(problem.most or 1, 1) - 1
        move, total = now.move * np.exp(length * min(changed, _CLIP)), weights.sum()
        now = _Priced.at(problem, weights / total, float(move / total))
        best = now if now.bound > best.bound else best
    return best


def _of_fewer_hours(problem: HourlyProblem, priced: _Priced) -> _Priced:
    """With the prices of all days on the day that has most of them, and those of several hours on one of these, as long
    as they prove about as much: a verifier has less to add up."""
    hours = np.array(problem.hours)
    day = int(np.bincount(hours // _DAY, priced.weights.sum(axis=0)).argmax())
    column = {int(hour) % _DAY: at for at, hour in enumerate(hours) if hour // _DAY == day}
    found = priced
    for width in (1, 2, 4, 8):
        to = [column.get(hour % _DAY // width * width, -1) for hour in problem.hours]
        if -1 in to:
            break
        weights = np.zeros_like(priced.weights)
        np.add.at(weights.T, to, priced.weights.T)
        fewer = _Priced.at(problem, weights, priced.move)
        if fewer.bound < priced.bound * (1 - _AS_MUCH):
            break
        found = fewer
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


def _returned(problem: HourlyProblem, leader: Int32s, descent: Descent) -> Int32s:
    """The leaders; those that changed without need have the leader before planning, or that of the block, again.

    Only those that are not as in the block: what it does for brokers that are less busy is left.
    """
    block, loads, leader = problem.block, problem.loads, leader.copy()
    carried, limit = problem.carried(leader), descent.highest * problem.capacity[:, None]
    away = np.flatnonzero((leader != block.leader) & (leader != block.home))
    away = away[np.argsort(loads[away].max(axis=1), kind="stable")]
    for targets in (block.home, block.leader):
        rows = away[(leader[away] != targets[away]) & (targets[away] < block.brokers)]
        for start in range(0, len(rows), len(problem.brokers)):
            some = rows[start : start + len(problem.brokers)]
            to = targets[some]
            some = some[(carried[to] + loads[some] <= limit[to]).all(axis=1)]
            some = some[first_of_each(leader[some], targets[some], block.brokers)]
            carried[leader[some]] -= loads[some]
            carried[targets[some]] += loads[some]
            leader[some] = targets[some]
        away = away[leader[away] != block.home[away]]
    return leader


def _some(count: int) -> Iterator[slice]:
    for start in range(0, count, _ROWS):
        yield slice(start, start + _ROWS)
