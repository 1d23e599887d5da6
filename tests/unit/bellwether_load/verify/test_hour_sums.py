"""The forecast of a plan, checked by the verifier: true ones pass, and nothing else does."""

from __future__ import annotations

from array import array
from dataclasses import replace
from random import Random

import pytest

from bellwether.core.settings.objective import Objective
from bellwether_load.plan.documents import header_line
from bellwether_load.plan.forecast import BrokerHour, Forecast
from bellwether_load.plan.problem import BrokerInput, Problem
from bellwether_load.verify.plan_verifier import verify
from testkit.loads.small_hours import checked, rows
from testkit.loads.small_planner import Hourly, load_rows, loads, planned, problem, slot
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
    report = verify(asked.header, header_line(asked.header), asked.partitions, load_rows(asked, known), made, moves)
    assert_wording(report.faults)


@pytest.mark.parametrize(
    ("ins", "said"),
    [
        ([1, 2, 3], "a-0 has 3 hours where 4 are known"),
        ([1, 2, 3, 4, 5], "a-0 has 5 hours where 4 are known"),
        ([1, -1, 3, 4], "a-0 has a rate below 0 or above 2**45"),
        ([1, 2**45 + 1, 3, 4], "a-0 has a rate below 0 or above 2**45"),
        ([2**63 - 1, -(2**63), -1, 4], "a-0 has a rate below 0 or above 2**45"),
    ],
)
def test_a_row_that_cannot_be_added_up_is_named(ins: list[int], said: str):
    asked, hourly = posed(1)
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    first, *others = rows(asked, hourly)
    wrong = (*first[:5], memoryview(array("q", ins)), None, None)
    assert any(said in fault for fault in checked(asked, hourly, plan, moves, wrong, *others).faults)


@pytest.mark.parametrize("requests", [[1, 2, 3], [1, -1, 3, 4], [0, 0, 0, 2**30 + 1]])
def test_requests_that_cannot_be_added_up_are_named(requests: list[int]):
    asked, hourly = posed(1)
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    first, *others = rows(asked, hourly)
    wrong = (*first[:7], memoryview(array("q", requests)))
    said = "a-0 has 3 hours where 4" if len(requests) == 3 else "a-0 has a rate below 0 or above 2**30 hundredths"
    assert any(said in fault for fault in checked(asked, hourly, plan, moves, wrong, *others).faults)


def test_missing_rates_and_rows_out_of_order_are_named():
    asked, hourly = posed(2)
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    first, second, *others = rows(asked, hourly)
    faults = checked(asked, hourly, plan, moves, (*first[:5], None, None, None), second, *others).faults
    assert any("a-0 has a load and none by hour" in fault for fault in faults)
    faults = checked(asked, hourly, plan, moves, second, first, *others).faults
    assert any("a-0 comes after a-1, out of order" in fault for fault in faults)


def test_the_largest_rates_are_added_up_without_touching_the_next_hour():
    asked = problem(slot(0), slot(1), slot(2))
    hourly = Hourly((3, 4), {s.key: ([2**45, 0], [2**45, 0]) for s in asked.partitions})
    plan, moves = planned(asked, hourly.at(0), hourly=hourly)
    assert checked(asked, hourly, plan, moves).faults == ()
    assert plan.forecast is not None
    assert plan.forecast.after.hour == 3


def test_loads_that_do_not_fit_into_64_bits_are_refused():
    asked = problem(*(slot(i, topic="a") for i in range(130)))
    hourly = Hourly((3, 4), {s.key: ([2**45, 0], [2**45, 0]) for s in asked.partitions})
    plan, moves = planned(asked, hourly.at(1), hourly=hourly)
    found = checked(asked, hourly, plan, moves).faults
    assert any(fault.endswith("loads add up to more than 2**61 hundredths of a byte/s") for fault in found)


def test_more_replicas_than_can_be_added_up_are_refused():
    asked, key = problem(slot(0, topic="a")), slot(0, topic="a").key
    hourly = Hourly((3, 4), {key: ([1, 1], [0, 0])})
    plan, moves = planned(asked, hourly.at(1), hourly=hourly)
    many = problem(slot(0, range(1, 1002), topic="a"), brokers=1001)
    said = "loads: a-0 has 1,001 replicas: loads of more than 1,000 are too large"
    assert said in checked(many, hourly, plan, moves).faults
