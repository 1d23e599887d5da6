from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective, Statistic
from bellwether.core.strict_json import InvalidDocument
from bellwether_load.plan.problem import BrokerInput, PartitionInput, Problem, ProblemHeader, validate_partition
from testkit.loads.plan_verification import load_problems
from testkit.loads.small_planner import NOON, problem, slot

TERMS = ProblemHeader(
    "c", "kafka/main", NOON, Objective(), (BrokerInput(1, "a"), BrokerInput(2, None, 50, False, "Sick"))
)


def test_terms_have_the_documented_form_in_json() -> None:
    asked = Objective(statistic=Statistic.PEAK, consume_weight=50, preferred_racks=("a", "b"), max_moves=10)
    assert replace(TERMS, objective=asked).document() == {
        "format": 1,
        "clusterId": "c",
        "policy": "kafka/main",
        "madeAt": "2026-11-21T12:00:00Z",
        "objective": {
            "statistic": "Peak",
            "produceWeight": 100,
            "replicationWeight": 100,
            "consumeWeight": 50,
            "followWeight": 100,
            "preferredRacks": ["a", "b"],
            "maxMoves": 10,
        },
        "brokers": [
            {"id": 1, "rack": "a", "capacity": 100, "open": True, "why": ""},
            {"id": 2, "rack": None, "capacity": 50, "open": False, "why": "Sick"},
        ],
    }


@given(load_problems())
def test_terms_are_read_as_they_were_written(drawn: tuple[Problem, Any]) -> None:
    terms = drawn[0].header
    assert ProblemHeader.read(json.loads(json.dumps(terms.document()))) == terms


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "format is 2: expected 1, the only one"),
        ({"clusterId": ""}, "clusterId is ''"),
        ({"more": 1}, "unknown: more"),
        ({"madeAt": "today"}, "madeAt is 'today'"),
        ({"brokers": [{"id": 1}]}, r"brokers\[0\].rack is missing"),
        ({"objective": {**Objective().document(), "followWeight": -1}}, "objective.followWeight is -1"),
        ({"objective": {**Objective().document(), "statistic": "Mean"}}, "one of Median, P95, Peak"),
        ({"objective": {**Objective().document(), "preferredRacks": [1]}}, "objective.preferredRacks"),
        ({"objective": {**Objective().document(), "colour": 1}}, "unknown: objective.colour"),
    ],
)
def test_a_document_that_is_no_problem_is_refused_by_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidDocument, match=said):
        ProblemHeader.read({**TERMS.document(), **change})


@pytest.mark.parametrize(
    "brokers", [(BrokerInput(1), BrokerInput(1)), (BrokerInput(1, capacity=0),), (BrokerInput(-1),)]
)
def test_terms_that_could_not_be_read_back_are_refused(brokers: tuple[BrokerInput, ...]) -> None:
    with pytest.raises(InvalidDocument, match=r"^brokers"):
        replace(TERMS, brokers=brokers).validate()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (slot(0, (1, 9)), "brokers that the problem does not list"),
        (slot(0, (1, 1)), "names a replica twice"),
        (slot(0, (1, 2), isr=(3,)), "ISR member that is not a replica"),
        (slot(0, (1, 2), leader=3), "is led by 3"),
        (slot(-1), "not a partition index"),
        (slot(0)._replace(replicas=(), isr=()), "no replicas"),
        (slot(0)._replace(topic_id=""), "no topic id"),
    ],
)
def test_a_partition_that_makes_no_sense_is_named(wrong: PartitionInput, said: str) -> None:
    with pytest.raises(InvalidDocument, match=said) as caught:
        validate_partition(wrong, (1, 2, 3))
    assert str(caught.value).startswith(f"orders-{wrong.partition} ")


def test_partitions_that_make_sense_pass() -> None:
    for fine in problem(slot(0), slot(1, (3, 1), isr=(), leader=-1), slot(2, (2,), held="Displaced")).partitions:
        validate_partition(fine, (1, 2, 3))
    assert slot(4).key == PartitionKey("id-of-orders", 4)
