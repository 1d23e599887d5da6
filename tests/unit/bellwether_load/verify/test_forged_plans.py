"""A plan with any one figure changed is refused: each value of plan.json is changed, and what may stay is listed."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective
from bellwether.core.stored_documents import InvalidDocument, format_timestamp
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.documents import PLAN
from bellwether_load.plan.problem import BrokerInput, Problem
from bellwether_load.plan.rebalance_plan import RebalancePlan
from testkit.loads.plan_verification import load_problems, rechecked
from testkit.loads.small_hours import checked, proof
from testkit.loads.small_planner import Hourly, Loads, account, level, planned, problem, slot, weigh

PROOFS = r"((w|requestW)eights\.\d+(\.\d+)?|moveWeight|limit|settled\.\d+|hourly\.partition)"
"""What proves figures, and is no figure: another proof of the same figures is one, too."""
MAY_STAY = re.compile(rf"certificate\.(.*\.)?{PROOFS}")

Way = tuple[str | int, ...]


def leaves(value: Any, way: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Every value of a document that is no object and no list, and the way to it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield way, value
        return
    for name, one in inner:
        yield from leaves(one, (*way, name))


def others(value: Any, by: float) -> Iterator[Any]:
    """Values that it could be changed to."""
    if isinstance(value, bool) or value is None:
        yield not value
    elif isinstance(value, int):
        yield from {value + 2, max(0, value - 2), round(value * by) + 2}
    elif isinstance(value, float):
        yield from (value * by + 1e-6, value / by, -value - 1.0)
    elif re.fullmatch(r"\d{4}-.*Z", value):
        yield format_timestamp(datetime.fromisoformat(value) + timedelta(seconds=1))
    else:
        yield from (value + "0", value[1:])


def passing(
    posed: Problem,
    known: Loads,
    plan: RebalancePlan,
    moves: tuple[RebalanceMove, ...],
    by: float,
    hourly: Hourly | None,
) -> set[str]:
    """The ways to values that were changed without a word from the verifier."""

    def refusal(document: Any) -> tuple[str, ...]:
        try:
            made = PLAN.from_json(document)
        except InvalidDocument as error:
            return (str(error),)
        if hourly is not None:
            return checked(posed, hourly, made, moves, account(hourly)).faults
        return rechecked(posed, known, made, moves, account()).faults

    true = PLAN.to_json(plan)
    assert refusal(true) == ()
    found = set()
    for way, value in leaves(true):
        for other in others(value, by):
            forged = copy.deepcopy(true)
            *outer, last = way
            inner = forged
            for name in outer:
                inner = inner[name]
            inner[last] = other
            if other != value and not refusal(forged):
                found.add(".".join(map(str, way)))
    return found


@settings(max_examples=25)
@given(load_problems(), st.floats(1.0001, 3))
def test_no_changed_figure_of_any_plan_passes(
    drawn: tuple[Problem, dict[PartitionKey, tuple[float, float | None]]], by: float
) -> None:
    posed, known = drawn
    assert [way for way in passing(posed, known, *planned(posed, known), by, None) if not MAY_STAY.fullmatch(way)] == []


def everything() -> tuple[Problem, Hourly, RebalancePlan, tuple[RebalanceMove, ...]]:
    """A plan with a cap, a second level, a forecast and a proof by hour."""
    brokers = (
        BrokerInput(1, "a"),
        BrokerInput(2, "b", 50),
        BrokerInput(3, request_capacity=60),
        BrokerInput(4, None, 70, False, "Sick"),
    )
    slots = [slot(i, (1, 2, 3) if i % 3 else (1, 3)) for i in range(8)]
    posed = problem(*slots, brokers=brokers, objective=Objective(max_moves=2, request_bytes=9))
    rates = {s.key: ([90 + 7 * i, 60 + 5 * i], [11 * i, 3]) for i, s in enumerate(slots[:-1])}
    hourly = Hourly((3, 40), rates, {s.key: [700 + 90 * i, 50 * i] for i, s in enumerate(slots[:-2])})
    known = hourly.at(0)
    leaders = [3, 2, *([1] * 6)]
    weighed = weigh(posed, known)
    stated = proof(posed, hourly, {3: {1: 3, 3: 2}, 40: {2: 1}}, 5, None, {3: {1: 1, 3: 4}})
    plan, moves = planned(posed, known, leaders, {1: 2, 2: 1, 3: 2}, 300, hourly=hourly, proof=stated)
    below = level(posed, weighed, [1], plan.after.max, {2: 3, 3: 4}, 20)
    return posed, hourly, replace(plan, certificate=replace(plan.certificate, levels=(below,))), moves


@pytest.mark.parametrize("by", [1.00001, 1.5, 7.0])
def test_no_changed_figure_of_a_plan_with_all_proofs_passes(by: float) -> None:
    posed, hourly, plan, moves = everything()
    found = passing(posed, hourly.at(0), plan, moves, by, hourly)
    assert [way for way in sorted(found) if not MAY_STAY.fullmatch(way)] == []


def test_an_account_with_other_hours_than_the_loads_is_refused() -> None:
    posed, hourly, plan, moves = everything()
    claimed = replace(plan, evidence=replace(plan.evidence, hours=168))
    report = checked(posed, hourly, claimed, moves, account())
    assert report.faults == ("evidence: _loads.json says 168 hours, the loads have 2",)
