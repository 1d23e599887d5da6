from __future__ import annotations

from typing import Any

import pytest

from bellwether_load.plan.documents import PLAN, PROBLEM
from bellwether_load.verify.plan_documents import UnreadableDocument, plan_of, problem_of
from testkit.loads.small_planner import loads, planned, problem, slot

POSED = problem(slot(0), slot(1))
KNOWN = loads(POSED, 10.0, 20.0)


def changed(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    *way, last = path.split(".")
    inner: Any = document
    for name in way:
        inner = inner[int(name)] if name.isdecimal() else inner[name]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", 2, "format is 2: this version reads format 1: upgrade"),
        ("format", ..., "format is None"),
        ("format", True, "format is True"),
        ("clusterId", ..., "missing: clusterId"),
        ("policy", 3, "policy: expected text"),
        ("colour", "red", "unknown: colour"),
        ("objective.statistic", "Mean", "objective.statistic is 'Mean': expected one of Median, P95, Peak"),
        ("objective.produceWeight", -1, "objective.produceWeight is -1"),
        ("objective.produceWeight", 1.5, "objective.produceWeight is 1.5"),
        ("objective.consumeWeight", ..., "objective: missing: consumeWeight"),
        ("objective.preferredRacks", ["a", 1], "objective.preferredRacks"),
        ("objective.maxMoves", -3, "objective.maxMoves is -3"),
        ("objective", [], "objective: expected a JSON object"),
        ("brokers", {}, "brokers: expected a list"),
        ("brokers.0.capacity", 0, "brokers[0].capacity is 0: expected 1 or more"),
        ("brokers.1.open", "yes", "brokers[1].open: expected true or false"),
        ("brokers.2.rack", 7, "brokers[2].rack: expected text or null"),
        ("brokers.0.id", 2**70, "brokers[0].id is 1180591620717411303424"),
    ],
)
def test_a_problem_that_cannot_be_understood_is_named_by_field(path: str, value: object, said: str) -> None:
    with pytest.raises(UnreadableDocument) as caught:
        problem_of(changed(PROBLEM.to_json(POSED.header), path, value))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("format", "1", "format is '1'"),
        ("digest", ..., "missing: digest"),
        ("certificate.bound", float("nan"), "certificate.bound is nan"),
        ("certificate.bound", float("inf"), "certificate.bound is inf"),
        ("certificate.bound", None, "certificate.bound is None"),
        ("certificate.weights", [1], "certificate.weights: expected an object"),
        ("certificate.gap", "0", "certificate.gap is '0'"),
        ("certificate.threshold", "high", "certificate.threshold is 'high'"),
        ("certificate.moveWeight", -1, "certificate.moveWeight is -1"),
        ("after.max", "much", "after.max is 'much'"),
        ("after", 1, "after: expected a JSON object"),
        ("moved.partitions", -1, "moved.partitions is -1"),
        ("partitions", True, "partitions is True"),
        ("brokers.0.after", None, "brokers[0].after is None"),
    ],
)
def test_a_plan_that_cannot_be_understood_is_named_by_field(path: str, value: object, said: str) -> None:
    plan, _ = planned(POSED, KNOWN)
    with pytest.raises(UnreadableDocument) as caught:
        plan_of(changed(PLAN.to_json(plan), path, value))
    assert said in str(caught.value)


@pytest.mark.parametrize("document", [None, [], "plan", 3])
def test_what_is_no_object_is_refused(document: object) -> None:
    for read in (plan_of, problem_of):
        with pytest.raises(UnreadableDocument, match="expected a JSON object"):
            read(document)


def test_another_version_is_named_before_whatever_else_it_changes() -> None:
    with pytest.raises(UnreadableDocument, match="format is 2"):
        problem_of({"format": 2, "brokers": "elsewhere"})
