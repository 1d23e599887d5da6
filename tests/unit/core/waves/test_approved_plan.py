"""The order in which an approved plan is applied: what relieves the busiest broker comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceMove
from bellwether.simulation.memory_world import START

Brokers = Mapping[int, tuple[float, int]]


def move(number: int, start: int, to: int, load: int) -> RebalanceMove:
    return RebalanceMove("orders", "id-of-orders", number, (start, to), (to, start), start, to, load)


def by_relief(moves: Sequence[RebalanceMove], brokers: Brokers) -> list[RebalanceMove]:
    return list(ApprovedPlan.by_relief("d" * 32, START, frozenset(), moves, brokers).moves)


@dataclass
class Course:
    """The busiest broker before the first move and after each, and the largest relative load of a move."""

    brokers: Brokers
    moves: Sequence[RebalanceMove]

    def busiest(self) -> list[float]:
        loads = {broker: load for broker, (load, _) in self.brokers.items()}
        found = [max(loads.values())]
        for one in self.moves:
            loads[one.from_leader] -= one.load / self.brokers[one.from_leader][1]
            loads[one.to_leader] += one.load / self.brokers[one.to_leader][1]
            found.append(max(loads.values()))
        return found

    def step(self) -> float:
        least = min(capacity for _, capacity in self.brokers.values())
        return max((one.load / least for one in self.moves), default=0.0)


def test_the_busiest_broker_gives_its_heaviest_partition_first():
    brokers = {1: (9.0, 100), 2: (8.0, 100), 3: (1.0, 100)}
    moves = [move(0, 2, 3, 50), move(1, 1, 3, 20), move(2, 1, 3, 250), move(3, 2, 3, 150)]
    assert [m.partition for m in by_relief(moves, brokers)] == [2, 3, 1, 0]


def test_a_full_broker_gives_before_it_takes():
    brokers = {1: (10.0, 100), 2: (10.0, 100), 3: (0.0, 100)}
    moves = [move(0, 1, 2, 500), move(1, 2, 3, 500)]
    assert [m.partition for m in by_relief(moves, brokers)] == [1, 0]


def test_brokers_that_exchange_partitions_are_not_stuck():
    brokers = {1: (10.0, 100), 2: (10.0, 100)}
    moves = [move(0, 1, 2, 500), move(1, 2, 1, 500)]
    assert len(by_relief(moves, brokers)) == 2


def test_reorders_and_partitions_without_leader_come_last():
    brokers = {1: (9.0, 100), 2: (1.0, 100)}
    reorder, leaderless = move(0, 2, 2, 900), move(1, -1, 2, 900)
    assert by_relief([reorder, leaderless, move(2, 1, 2, 1)], brokers)[0].partition == 2


def test_capacities_count():
    brokers = {1: (9.0, 200), 2: (10.0, 100), 3: (0.0, 100)}
    assert by_relief([move(0, 1, 3, 10), move(1, 2, 3, 10)], brokers)[0].partition == 1


def test_the_order_does_not_depend_on_that_of_the_moves():
    dice = Random(1)
    brokers = {b: (dice.uniform(1, 9), 100) for b in range(6)}
    moves = [move(n, *dice.sample(range(6), 2), dice.choice([5, 10])) for n in range(60)]
    assert by_relief(moves, brokers) == by_relief(moves[::-1], brokers)


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[RebalanceMove], Brokers]:
    """Moves that bring uneven brokers down, as plans do; some go on from a broker that takes others."""
    dice = draw(st.randoms(use_true_random=False))
    count = draw(st.integers(2, 8))
    brokers = {b: (dice.uniform(5, 50), dice.choice([50, 100, 200])) for b in range(count)}
    loads = {b: load for b, (load, _) in brokers.items()}
    moves = []
    for number in range(draw(st.integers(1, 60))):
        start = max(loads, key=lambda b: loads[b]) if dice.random() < 0.8 else dice.randrange(count)
        to = min((b for b in loads if b != start), key=lambda b: loads[b] + 0.3 * dice.random() * loads[b])
        load = int(min(loads[start] * brokers[start][1], dice.paretovariate(1.1) * 20))
        if loads[to] + load / brokers[to][1] <= max(loads.values()):
            loads[start] -= load / brokers[start][1]
            loads[to] += load / brokers[to][1]
            moves.append(move(number, start, to, load))
    return moves, brokers


@given(plans())
def test_no_prefix_is_above_the_start_by_more_than_one_move(plan: tuple[list[RebalanceMove], Brokers]):
    moves, brokers = plan
    ordered = by_relief(moves, brokers)
    assert sorted(ordered) == sorted(moves)
    course = Course(brokers, ordered)
    before, *after = course.busiest()
    assert max(after, default=before) <= before + course.step() + 1e-9


@given(plans(), st.randoms(use_true_random=False))
def test_no_prefix_is_above_a_shuffled_one_by_more_than_one_move(
    plan: tuple[list[RebalanceMove], Brokers], dice: Random
):
    moves, brokers = plan
    shuffled = dice.sample(moves, len(moves))
    relief, other = Course(brokers, by_relief(moves, brokers)), Course(brokers, shuffled)
    for mine, theirs in zip(relief.busiest(), other.busiest(), strict=True):
        assert mine <= theirs + relief.step() + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_stopped_half_way_has_most_of_its_gain(seed: int):
    dice = Random(seed)
    brokers = {b: (dice.lognormvariate(0, 0.4) * 1000, 100) for b in range(20)}
    mean = sum(load for load, _ in brokers.values()) / 20
    moves = []
    loads = {b: load for b, (load, _) in brokers.items()}
    while max(loads.values()) > 1.02 * mean:
        start, to = max(loads, key=lambda b: loads[b]), min(loads, key=lambda b: loads[b])
        load = int(min(dice.paretovariate(1.1) * 300, (loads[start] - loads[to]) * 50))
        loads[start] -= load / 100
        loads[to] += load / 100
        moves.append(move(len(moves), start, to, load))
    half = len(moves) // 2
    scattered = dice.sample(moves, len(moves))
    mine, theirs = (Course(brokers, order).busiest() for order in (by_relief(moves, brokers), scattered))
    gain = mine[0] - mine[-1]
    assert mine[0] - mine[half] > 0.8 * gain
    assert mine[half] < theirs[half]
