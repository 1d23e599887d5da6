"""The forecast of a plan, checked by the verifier: true ones pass, and nothing else does."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bellwether.core.settings.objective import Objective
from bellwether_load.plan.forecast import BrokerHour, Forecast
from bellwether_load.plan.problem import BrokerInput, Problem
from testkit.loads.plan_verification import rechecked
from testkit.loads.small_hours import checked
from testkit.loads.small_planner import Hourly, loads, planned, problem, slot
from testkit.messages import assert_wording

HOURS = (0, 14, 38, 167)
BROKERS = (BrokerInput(1, capacity=50), BrokerInput(2), BrokerInput(3, capacity=200), BrokerInput(4, None, 100, False))


def posed(seed: int) -> tuple[Problem, Hourly]:
    """Partitions in no order of load, one closed broker, some without consumption."""
    dice = Random(seed)
    slots = [slot(i, dice.sample((1, 2, 3, 4), dice.randint(1, 3)), topic=t) for t in ("a", "b") for i in range(9)]
    asked = problem(*slots, brokers=BROKERS, objective=Objective(consumption=seed % 2 == 0, request_bytes=seed % 3))
    rates = {
        s.key: (
            [dice.randint(0, 10**9) for _ in HOURS],
            [dice.randint(0, 10**9) for _ in HOURS] if dice.random() < 0.8 else None,
        )
        for s in asked.partitions[:-1]
    }
    requests = {key: [dice.randint(0, 2**30) for _ in HOURS] for key in rates if dice.random() < 0.8}
    return asked, Hourly(HOURS, rates, requests)


@pytest.mark.parametrize("seed", range(12))
def test_a_true_forecast_passes_and_none_is_refused(seed: int):
    asked, hourly = posed(seed)
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    assert checked(asked, hourly, plan, moves).faults == ()
    assert checked(asked, hourly, replace(plan, forecast=None), moves).faults == ("busiest hour: the plan has none",)


def test_a_forecast_without_hours_is_refused():
    asked = problem(slot(0), slot(1))
    known = loads(asked, 10.0, 20.0)
    plan, moves = planned(asked, known)
    made = replace(plan, forecast=Forecast(1, BrokerHour(1, 0, 5.0), BrokerHour(1, 0, 5.0)))
    assert_wording(rechecked(asked, known, made, moves).faults)


@pytest.mark.parametrize(
    ("ins", "asked_for", "said"),
    [
        ([1, -1, 3, 4], [0] * 4, "a-0 needs 4 rates by hour from 0 to 2**45"),
        ([1, 2**45 + 1, 3, 4], [0] * 4, "a-0 needs 4 rates by hour from 0 to 2**45"),
        ([2**63 - 1, -(2**63), -1, 4], [0] * 4, "a-0 needs 4 rates by hour from 0 to 2**45"),
        ([1] * 4, [1, -1, 3, 4], "a-0 needs 4 rates by hour from 0 to 2**30"),
        ([1] * 4, [0, 0, 0, 2**30 + 1], "a-0 needs 4 rates by hour from 0 to 2**30"),
    ],
)
def test_a_row_that_cannot_be_added_up_is_named(ins: list[int], asked_for: list[int], said: str):
    asked, hourly = posed(1)
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    first = asked.partitions[0].key
    wrong = {first: ((7, *ins[1:]) if ins[0] == 2**63 - 1 else ins, None)}
    forged = Hourly(HOURS, hourly.rates | wrong, hourly.requests | {first: asked_for})
    assert any(said in fault for fault in checked(asked, forged, plan, moves).faults)


def test_the_largest_rates_are_added_up_without_touching_the_next_hour():
    asked = problem(slot(0), slot(1), slot(2))
    hourly = Hourly((3, 4), {s.key: ([2**42, 0], [2**42, 0]) for s in asked.partitions})
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    assert checked(asked, hourly, plan, moves).faults == ()
    assert plan.forecast is not None
    assert plan.forecast.after.hour == 3


def test_loads_beyond_exact_doubles_are_refused():
    asked = problem(*(slot(i, topic="a") for i in range(130)))
    hourly = Hourly((3, 4), {s.key: ([0, 2**45], [0, 2**45]) for s in asked.partitions})
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    found = checked(asked, hourly, plan, moves).faults
    assert found == ("loads by hour: they add up to more than 2**53 hundredths of a byte/s in an hour",)


def test_more_replicas_than_can_be_planned_are_refused():
    asked, key = problem(slot(0, topic="a")), slot(0, topic="a").key
    hourly = Hourly((3, 4), {key: ([1, 1], [0, 0])})
    plan, moves = planned(asked, hourly.at(1), hourly=hourly)
    many = problem(slot(0, range(1, 22), topic="a"), brokers=21)
    assert "partitions of the problem: a-0 has 21 replicas, more than 20" in checked(many, hourly, plan, moves).faults
