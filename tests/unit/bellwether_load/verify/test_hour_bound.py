"""The bound by hour, checked by the verifier: equal to an independent sum, never above the best plan, and no other."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from bellwether.core.settings.objective import Objective
from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.problem import BrokerInput, Problem
from testkit.loads.small_hours import checked, lowest, proof
from testkit.loads.small_planner import Hourly, planned, problem, slot

HOURS = (0, 14, 167)
BROKERS = (
    BrokerInput(1, capacity=50, request_capacity=300),
    BrokerInput(2),
    BrokerInput(3, capacity=200, request_capacity=70),
    BrokerInput(4, None, 100, False),
)


def posed(seed: int) -> tuple[Problem, Hourly]:
    """Few partitions, one of them heavy, held, closed and forced ones among them, with and without a cap."""
    dice = Random(seed)
    slots = [slot(i, dice.sample((1, 2, 3, 4), dice.randint(1, 3)), held="Pinned" if i == 3 else "") for i in range(6)]
    asked = Objective(
        consumption=dice.choice([True, True, False]),
        max_moves=dice.choice([None, 0, 1, 3]),
        request_bytes=dice.choice([0, 0, 1, 5_000]),
    )
    made = problem(*slots, brokers=BROKERS, objective=asked)
    rates = {
        s.key: ([dice.randint(0, 10**9 if s.partition else 10**10) for _ in HOURS], [dice.randint(0, 10**9)] * 3)
        for s in made.partitions[:-1]
    }
    requests = {key: [dice.randint(0, 2**30) for _ in HOURS] for key in rates if dice.random() < 0.9}
    return made, Hourly(HOURS, rates, requests)


def claimed(seed: int, asked: Problem, hourly: Hourly) -> HourlyProof:
    """Weights without any sense."""
    dice = Random(seed)
    weights = {hour: {b: dice.choice([0, 1, dice.randint(1, 2**40)]) for b in (1, 2, 3)} for hour in HOURS[: seed % 4]}
    move = 0 if asked.header.objective.max_moves is None else dice.choice([0, 10**15, 10**18])
    of_requests = {14: {1: 3, 2: 0}, 0: {3: dice.randint(0, 2**40)}} if asked.header.objective.request_bytes else None
    several = [i for i, s in enumerate(asked.partitions[:-1]) if len(set(s.replicas) - {4}) > 1 and not s.held]
    return proof(asked, hourly, weights, move, dice.choice([None, *several]), of_requests)


@pytest.mark.parametrize("seed", range(40))
def test_any_weights_prove_a_bound_that_no_plan_is_below(seed: int):
    asked, hourly = posed(seed)
    true = claimed(seed, asked, hourly)
    plan, moves = planned(asked, hourly.at(0), [s.leader for s in asked.partitions], hourly=hourly, proof=true)
    report = checked(asked, hourly, plan, moves)
    assert not [fault for fault in report.faults if fault.startswith("bound by hour")]
    assert true.bound <= float(lowest(asked, hourly)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights": {14: {4: 1}}}, "broker 4 in hour 14 has a weight and is no open broker"),
        ({"weights": {14: {9: 1}}}, "broker 9 in hour 14 has a weight and is no open broker"),
        ({"weights": {15: {1: 1}}}, "hour 15 has weights, and the loads do not know it"),
        ({"move_weight": 7}, "a changed leader has the weight 7, and the problem has no maxMoves"),
        ({"request_weights": {14: {1: 1}}}, "requests have weights, and objective.requestBytes of the problem is 0"),
        ({"partition": 3}, "partition 3 of the problem is none that has a load by hour and a choice"),
        ({"partition": 99}, "partition 99 of the problem is none that has a load by hour and a choice"),
    ],
)
def test_what_cannot_be_is_named(change: dict[str, Any], said: str):
    asked = problem(*(slot(i, held="Pinned" if i == 3 else "") for i in range(4)), brokers=BROKERS)
    hourly = Hourly(HOURS, {s.key: ([5, 6, 7], None) for s in asked.partitions})
    true = proof(asked, hourly, {14: {1: 1}})
    plan, moves = planned(asked, hourly.at(0), hourly=hourly, proof=replace(true, **change))
    assert any(said in fault for fault in checked(asked, hourly, plan, moves).faults)
