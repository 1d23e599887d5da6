"""Whatever the loads, the sizes and who may lead what: what the planner promises."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.planning.blocks import Block
from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.caps import capped
from bellwether_load.planning.rounds import TOLERANCE, balance
from testkit.loads.small_problems import best_possible, carried, heaviest_item, leaders, pool, problems

Problem = tuple[Brokers, Block]


@given(problems())
def test_every_partition_is_led_by_one_that_may(problem: Problem):
    brokers, whole = problem
    blocks = pool(whole)
    balance(blocks, brokers)
    led = leaders(blocks)
    assert all(led[int(p)] in row.tolist() for p, row in zip(whole.ids, whole.eligible, strict=True))


@given(problems())
def test_what_brokers_carry_is_what_their_partitions_add_up_to(problem: Problem):
    brokers, whole = problem
    blocks = pool(whole)
    found = balance(blocks, brokers)
    assert found.carried.tolist() == carried(brokers, whole, leaders(blocks)).tolist()


@given(problems())
def test_busiest_broker_is_within_tolerance_and_one_partition_of_bound(problem: Problem):
    brokers, whole = problem
    found = balance(pool(whole), brokers)
    bound = max(found.bound.value, Fraction(found.heaviest))
    assert brokers.busiest(found.carried) <= bound * (1 + TOLERANCE) + heaviest_item(brokers, whole)


@given(problems(most_partitions=7, most_brokers=4))
def test_the_bound_is_no_higher_than_what_is_possible(problem: Problem):
    brokers, whole = problem
    found = balance(pool(whole), brokers)
    best = best_possible(brokers, whole)
    assert found.bound.value <= best
    assert found.heaviest <= float(best) * (1 + 1e-12)


@given(problems())
def test_the_bound_is_what_its_members_must_carry_between_them(problem: Problem):
    brokers, whole = problem
    found = balance(pool(whole), brokers)
    members = set(np.flatnonzero(found.bound.prices.weights).tolist())
    inside = sum(
        int(load)
        for load, row in zip(whole.loads, whole.eligible, strict=True)
        if {int(b) for b in row if b < whole.brokers} <= members
    )
    held = sum(int(brokers.fixed[b]) for b in members)
    assert found.bound.value == Fraction(held + inside, sum(int(brokers.capacity[b]) for b in members))
    assert all(brokers.open[b] for b in members)


@given(problems(), st.integers(0, 3))
def test_the_same_problem_has_the_same_plan(problem: Problem, blocks: int):
    brokers, whole = problem
    first, second = pool(whole, blocks + 1), pool(whole, blocks + 1)
    balance(first, brokers)
    balance(second, brokers)
    assert leaders(first) == leaders(second)


@given(problems(), st.integers(0, 60))
def test_cap_holds_for_all_but_partitions_that_must_move(problem: Problem, most: int):
    brokers, whole = problem
    blocks = pool(whole)
    forced = blocks.changed()
    found = capped(blocks, brokers, most, forced)
    assert blocks.changed() <= max(most, forced)
    assert found.carried.tolist() == carried(brokers, whole, leaders(blocks)).tolist()


@given(problems())
def test_nothing_is_gained_by_planning_again(problem: Problem):
    brokers, whole = problem
    blocks = pool(whole)
    found = balance(blocks, brokers)
    led = leaders(blocks)
    settled = np.array([led[int(p)] for p in whole.ids], np.int32)
    again = pool(replace(whole, home=settled, leader=settled))
    assert brokers.busiest(balance(again, brokers).carried) <= brokers.busiest(found.carried)
