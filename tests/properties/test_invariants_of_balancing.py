"""Whatever the loads, the sizes and who may lead what: what the planner promises."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellwether_load.balancing.balance import TOLERANCE, balance, capped
from bellwether_load.balancing.blocks import Block, Brokers
from testkit.loads.small_problems import best_possible, carried, heaviest_item, problems

Problem = tuple[Brokers, Block]


@given(problems())
def test_every_partition_is_led_by_one_that_may_and_loads_add_up(problem: Problem):
    brokers, whole = problem
    found = balance(whole, brokers).block
    assert (found.leader[:, None] == whole.eligible).any(axis=1).all()
    assert (brokers.fixed + found.led).tolist() == carried(brokers, whole, found.leader).tolist()


@given(problems())
def test_busiest_broker_is_within_tolerance_and_one_partition_of_bound(problem: Problem):
    brokers, whole = problem
    found = balance(whole, brokers)
    bound = max(found.bound.value, Fraction(found.heaviest))
    assert found.top(brokers) <= bound * (1 + TOLERANCE) + heaviest_item(brokers, whole)


@given(problems(most_partitions=7, most_brokers=4))
def test_the_bound_is_no_higher_than_what_is_possible(problem: Problem):
    brokers, whole = problem
    found = balance(whole, brokers)
    best = best_possible(brokers, whole)
    assert found.bound.value <= best
    assert found.heaviest <= float(best) * (1 + 1e-12)


@given(problems())
def test_the_bound_is_what_its_members_must_carry_between_them(problem: Problem):
    brokers, whole = problem
    found = balance(whole, brokers)
    members = set(np.flatnonzero(found.bound.prices.weights).tolist())
    inside = sum(
        int(load)
        for load, row in zip(whole.loads, whole.eligible, strict=True)
        if {int(b) for b in row if b < whole.brokers} <= members
    )
    held = sum(int(brokers.fixed[b]) for b in members)
    assert found.bound.value == Fraction(held + inside, sum(int(brokers.capacity[b]) for b in members))
    assert all(brokers.open[b] for b in members)


@given(problems())
def test_the_same_problem_has_the_same_plan(problem: Problem):
    brokers, whole = problem
    assert balance(whole, brokers).block.leader.tolist() == balance(whole, brokers).block.leader.tolist()


@given(problems(), st.integers(0, 60))
def test_cap_holds_for_all_but_partitions_that_must_move(problem: Problem, most: int):
    brokers, whole = problem
    assert capped(whole, brokers, most).block.changed <= max(most, whole.changed)


@given(problems())
def test_nothing_is_gained_by_planning_again(problem: Problem):
    brokers, whole = problem
    found = balance(whole, brokers)
    leader = found.block.leader
    again = Block(whole.brokers, whole.ids, whole.loads, whole.eligible, leader, leader)
    assert balance(again, brokers).top(brokers) <= found.top(brokers)
