"""Problem and plan as JSON: the form that files have, read as it was written, or refused by the field that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from bellwether.core.settings.objective import Objective, Statistic
from bellwether.core.stored_documents import InvalidDocument
from bellwether_load.plan import documents
from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.documents import PLAN, PROBLEM
from bellwether_load.plan.forecast import WEEK, BrokerHour, BusiestRequests, Forecast
from bellwether_load.plan.problem import BrokerInput, Problem, ProblemHeader
from bellwether_load.plan.rebalance_plan import RebalancePlan
from testkit.loads.plan_pages import small_plan
from testkit.loads.plan_verification import load_problems
from testkit.loads.small_planner import NOON, planned
from testkit.simulation.fault_injection import most_at_once

TERMS = ProblemHeader(
    "c", "kafka/main", NOON, Objective(), (BrokerInput(1, "a"), BrokerInput(2, None, 50, False, "Sick"))
)
PROOF = HourlyProof({38: {7: 3, 8: 0}, 9: {7: 1}}, 4, 12, 9.5, {38: {9: 2}})


def hourly_plan() -> RebalancePlan:
    """A plan with everything that a plan may have."""
    plan = small_plan()[0]
    requests = BusiestRequests(BrokerHour(8, 1, 900.5), BrokerHour(7, 1, 700.0))
    week = Forecast(WEEK, BrokerHour(7, 0, 12.5), BrokerHour(8, 38, 10.0), requests)
    return replace(plan, forecast=week, certificate=replace(plan.certificate, hourly=PROOF))


def changed(document: Any, path: str, value: object) -> Any:
    *way, last = path.split("/")
    inner = document
    for name in way:
        inner = inner[int(name)] if isinstance(inner, list) else inner[name]
    inner[last] = value
    if value is ...:
        del inner[last]
    return document


def test_the_header_of_a_problem_has_the_documented_form() -> None:
    asked = Objective(statistic=Statistic.PEAK, consumption=False, preferred_racks=("a", "b"), max_moves=10)
    assert PROBLEM.to_json(replace(TERMS, objective=asked)) == {
        "format": 2,
        "clusterId": "c",
        "policy": "kafka/main",
        "madeAt": "2026-11-21T12:00:00Z",
        "objective": {
            "statistic": "Peak",
            "consumption": False,
            "preferredRacks": ["a", "b"],
            "maxMoves": 10,
            "requestBytes": 0,
        },
        "brokers": [
            {"id": 1, "rack": "a", "capacity": 100, "open": True, "why": "", "requestCapacity": 100},
            {"id": 2, "rack": None, "capacity": 50, "open": False, "why": "Sick", "requestCapacity": 100},
        ],
    }


def test_a_proof_by_hours_is_sorted_by_hour_and_broker() -> None:
    written = PLAN.to_json(hourly_plan())
    assert json.dumps(written["certificate"]["hourly"]) == (
        '{"weights": {"9": {"7": 1}, "38": {"7": 3, "8": 0}}, "moveWeight": 4, "partition": 12, "bound": 9.5,'
        ' "requestWeights": {"38": {"9": 2}}}'
    )
    assert PLAN.read(json.dumps(written).encode()) == hourly_plan()


@given(load_problems())
def test_what_is_written_is_read_again(drawn: tuple[Problem, Any]) -> None:
    terms, (plan, _) = drawn[0].header, planned(*drawn)
    posed, made = (json.loads(json.dumps(one)) for one in (PROBLEM.to_json(terms), PLAN.to_json(plan)))
    assert (PROBLEM.from_json(posed), PLAN.from_json(made)) == (terms, plan)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", 3, "format is 3: this version reads format 2: upgrade"),
        ("format", 1, "format is 1: this version reads format 2: upgrade Bellwether, or request a new plan"),
        ("clusterId", "", "clusterId is ''"),
        ("more", 1, "more is unknown"),
        ("madeAt", "today", "madeAt is 'today'"),
        ("brokers/0/rack", 7, r"brokers\[0\].rack is 7"),
        ("brokers/0/id", -1, r"brokers\[0\].id is -1"),
        ("brokers/1/capacity", 0, r"brokers\[1\].capacity is 0"),
        ("brokers/1/id", 1, "brokers: 1 is listed twice"),
        ("objective/consumption", 1, "objective.consumption is 1"),
        ("objective/requestBytes", 1_000_001, "objective.requestBytes is 1000001"),
        ("objective/statistic", "Mean", "'Median', 'P95' or 'Peak'"),
        ("objective/preferredRacks", [1], "objective.preferredRacks"),
        ("objective/colour", 1, "objective.colour is unknown"),
    ],
)
def test_a_damaged_problem_is_refused_by_field(path: str, value: object, said: str) -> None:
    with pytest.raises(InvalidDocument, match=said):
        PROBLEM.from_json(changed(PROBLEM.to_json(TERMS), path, value))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", 0, "format is 0"),
        ("format", True, "format is True"),
        ("digest", "", "digest is ''"),
        ("certificate/weights", {"one": 1}, "certificate.weights.one"),
        ("certificate/weights", {"1": -1}, "certificate.weights.1 is -1"),
        ("certificate/bound", -1, "certificate.bound is -1"),
        ("certificate/bound", float("nan"), "damaged|bound"),
        ("certificate/hourly/weights", {"168": {}}, "hourly.weights.168"),
        ("certificate/hourly/weights", {"3": 1}, "hourly.weights.3 is 1"),
        ("certificate/hourly/weights", {"3": {"1": -1}}, "hourly.weights.3.1 is -1"),
        ("certificate/hourly/partition", -1, "hourly.partition is -1"),
        ("moved/reordered", ..., "moved.reordered is missing"),
        ("forecast/hours", 169, "forecast.hours is 169"),
        ("forecast/before/hour", 168, "forecast.before.hour is 168"),
        ("forecast/after/load", -1.0, "forecast.after.load is -1.0"),
        ("brokers/0/after", None, r"brokers\[0\].after is None"),
    ],
)
def test_a_damaged_plan_is_refused_by_field(path: str, value: object, said: str) -> None:
    with pytest.raises(InvalidDocument, match=said):
        PLAN.from_json(changed(PLAN.to_json(hourly_plan()), path, value))


@pytest.mark.parametrize("text", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000, b'{"format": 1, "format": 1}'])
def test_text_that_is_no_document_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidDocument):
        PLAN.read(text)


@pytest.mark.parametrize(
    "brokers", [(BrokerInput(1), BrokerInput(1)), (BrokerInput(1, capacity=0),), (BrokerInput(-1),)]
)
def test_a_header_with_impossible_brokers_is_refused(brokers: tuple[BrokerInput, ...]) -> None:
    with pytest.raises(InvalidDocument, match=r"^brokers"):
        PROBLEM.from_json(PROBLEM.to_json(replace(TERMS, brokers=brokers)))


def test_large_documents_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    large = json.dumps(PROBLEM.to_json(TERMS)).encode() + b" " * (1 << 18)
    assert most_at_once(documents, "parse", monkeypatch, lambda: PROBLEM.read(large)) == 1
