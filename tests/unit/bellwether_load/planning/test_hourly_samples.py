"""Plans by hour of which most partitions are never held: the bound holds for all, only the heaviest move."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from bellwether_load.planning import hourly_samples
from bellwether_load.planning.blocks import Block, Int32s, Int64s
from bellwether_load.planning.hourly import HourlyProblem, bound_of
from bellwether_load.planning.hourly_prices import divisible
from bellwether_load.planning.hourly_rounds import WORTHWHILE, HourlyResult
from bellwether_load.planning.hourly_samples import HourlyRows, by_samples, in_sample
from bellwether_load.planning.levels import levelled
from bellwether_load.planning.pools import LocalPool
from testkit.loads.hourly_problems import BROKERS, problem


@dataclass(frozen=True)
class HeldPasses:
    """Passes over a problem that is held after all."""

    problem: HourlyProblem

    @property
    def hours(self) -> tuple[int, ...]:
        return tuple(range(self.problem.loads.shape[1]))

    def heaviest(self, most: int) -> Int64s:
        block = self.problem.block
        found: Int64s = np.array(sorted(block.ids, key=lambda i: (-block.loads[i], i))[:most], np.int64)
        return found

    def rows(self, ids: Int64s, share: float, changed: Int64s, to: Int32s) -> HourlyRows:
        whole = self.problem
        leader = whole.block.home.copy()
        leader[changed] = to
        of = whole.block.led_by(leader)
        mine = np.isin(of.ids, ids) | in_sample(of.ids, share)
        rest = np.zeros_like(whole.fixed)
        for row in np.flatnonzero(~mine):
            rest[leader[row]] += whole.loads[row]
        return HourlyRows(
            of.take(np.flatnonzero(mine)), whole.loads[mine], whole.fixed, rest, min(0, int(whole.loads.min()))
        )

    def with_cheapest_leaders(self, weights: Int64s) -> Int64s:
        carried = self.problem.fixed.copy()
        for row, eligible in enumerate(self.problem.block.eligible.tolist()):
            costs = {b: float((self.problem.loads[row] * weights[b]).sum()) for b in eligible if b < BROKERS}
            carried[min(costs, key=lambda b: costs[b])] += self.problem.loads[row]
        return carried


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hundreds of partitions most are not held."""
    monkeypatch.setattr(hourly_samples, "SEARCHED", 120)
    monkeypatch.setattr(hourly_samples, "PRICED", 60)


def planned(asked: HourlyProblem, most: int | None = None) -> tuple[HourlyResult, LocalPool, Block]:
    """What comes of it, from the leaders of a plan for the statistic, which are the last of the three."""
    pool = LocalPool([asked.block])
    levelled(pool, asked.brokers, most)
    before = pool.gathered()
    found = by_samples(HeldPasses(asked), pool, asked.brokers, most)
    assert found is not None
    return found, pool, before


@pytest.mark.parametrize("kind", ["three regions", "jobs"])
@pytest.mark.parametrize("seed", range(2))
def test_the_busiest_broker_hour_becomes_lower_and_not_lower_than_the_bound(kind: str, seed: int):
    asked = problem(kind, 400, 24, seed)
    found, pool, before = planned(asked)
    after = asked.highest(pool.gathered().leader)
    assert found.replaced == (asked.highest(before.leader), before.changed)
    assert found.bound.value <= after < found.replaced[0] * WORTHWHILE
    assert float(found.bound.value) >= 0.85 * float(divisible(asked).bound.value), "the sample is worth something"


@pytest.mark.parametrize("seed", range(3))
def test_it_is_close_to_the_bound_where_loads_are_smooth(seed: int):
    asked = problem("three regions", 400, 24, seed)
    found, pool, _ = planned(asked)
    assert asked.highest(pool.gathered().leader) <= float(found.bound.value) * 1.08


def test_leaders_that_are_as_good_by_hour_stay():
    found, pool, before = planned(problem("in phase", 400, 24, 0))
    assert found.replaced is None
    assert (pool.gathered().leader == before.leader).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_what_its_weights_prove_of_all_partitions(seed: int):
    asked = problem("jobs", 300, 12, seed)
    bound = planned(asked)[0].bound
    assert bound.move == 0
    fixed = max(Fraction(int(asked.fixed[b].max()), int(asked.brokers.capacity[b])) for b in range(BROKERS - 1))
    assert bound.item is None
    assert bound.value == max(bound_of(asked, bound.weights, 0).value, fixed)


def test_only_the_heaviest_partitions_move():
    asked = problem("jobs", 400, 24, 1)
    _, pool, before = planned(asked)
    moved = np.flatnonzero(pool.gathered().leader != before.leader)
    assert len(moved)
    assert set(moved.tolist()) <= set(HeldPasses(asked).heaviest(120).tolist())


@pytest.mark.parametrize("more", [0, 5, 60])
def test_a_cap_counts_the_leaders_that_the_plan_for_the_statistic_changes(more: int):
    asked = problem("jobs", 400, 24, 1)
    before = planned(asked)[2].changed
    found, pool, _ = planned(asked, before + more)
    assert pool.changed() <= before + more
    assert found.bound.value <= asked.highest(pool.gathered().leader)


def test_a_partition_that_is_too_heavy_for_any_broker_decides_the_bound():
    asked = problem("in phase", 300, 6, 1)
    asked.loads[7] *= 1000
    asked.block.loads[7] *= 1000
    assert planned(asked)[0].bound.item == 7


def test_loads_below_zero_are_not_planned_by_hour():
    asked = problem("jobs", 300, 6, 2)
    asked.loads[250, 3] = -1
    assert by_samples(HeldPasses(asked), LocalPool([asked.block]), asked.brokers, None) is None


def test_a_sample_is_the_same_each_time_and_about_as_large_as_wanted():
    ids = np.arange(100_000)
    assert 900 < in_sample(ids, 0.01).sum() < 1100
    assert (in_sample(ids, 0.01) == in_sample(ids, 0.01)).all()
    assert in_sample(ids, 1.0).all()
    assert not in_sample(ids, 0.0).any()
