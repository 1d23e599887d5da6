"""Fault scripts and cluster descriptions: what is invalid is refused with field, value and remedy."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.core.settings.policy import Mode, Policy
from bellwether.simulation.cluster_description import cluster_of
from bellwether.simulation.fault_script import script_of, simulate

CLUSTER = {"brokers": {1: "a", 2: "b", 3: "c"}, "topics": {"orders": 6}}
POLICY = Policy(name="main", mode=Mode.ENFORCE)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "is an object with seconds"),
        ({"seconds": 5, "event": {}}, "event: no such field"),
        ({}, "seconds: None must be a number of seconds"),
        ({"seconds": 90000}, "seconds: 90000 must be a number of seconds, at most 86400"),
        ({"seconds": 5, "events": {"soon": []}}, "events: 'soon' must be a number of seconds"),
        ({"seconds": 5, "events": {1: "kill"}}, "events.1: must be a list of events"),
        ({"seconds": 5, "events": {1: [{"kil": [1]}]}}, "events.1: no such event kil (did you mean kill?)"),
        ({"seconds": 5, "events": {6: []}}, "events.6: is after the end"),
    ],
)
def test_a_script_that_cannot_be_read_is_refused(values: Any, message: str):
    with pytest.raises(ValueError, match=r".") as refused:
        script_of(values)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"kill": [9]}, "events.1: {kill: [9]}: there is no broker 9; there are 1, 2, 3"),
        ({"say": {"brokers": [1], "reading": "Bad"}}, "'Bad' is not a valid Reading"),
        ({"say": {"reading": "Failing"}}, "KeyError: 'brokers'"),
        ({"delete": ["nothing"]}, "KeyError: 'nothing'"),
        ({"drain": [1]}, "TypeError"),
    ],
)
def test_an_event_that_does_not_fit_the_cluster_is_named(event: Any, message: str):
    script = script_of({"seconds": 2, "events": {1: [event]}})
    with pytest.raises(ValueError, match=r".") as refused:
        simulate(cluster_of(CLUSTER), POLICY, script)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "is an object with brokers and topics"),
        ({"brokers": 0}, "brokers: 0 must be a number from 1 to 1000"),
        ({"brokers": {}}, "brokers: must be a number, or an object"),
        ({"brokers": {"one": "a"}}, "brokers: one is not the id of a broker"),
        ({"brokers": {1: 5}}, "brokers.1: 5 is not the name of a rack"),
        ({"brokers": 3, "topics": {"orders": "many"}}, "topics.orders: must be a number of partitions"),
        ({"brokers": 3, "topics": {"orders": [[1, 1]]}}, "topics.orders[0]: must be a list of different broker ids"),
        ({"brokers": 3, "topics": {"orders": [[1, 4]]}}, "topics.orders[0]: there is no broker 4"),
        ({"brokers": 3, "topics": {"a": 60_000, "b": 60_000}}, "more than 100000 partitions"),
        ({"brokers": 3, "minInsyncReplicas": True}, "minInsyncReplicas: True must be a number"),
    ],
)
def test_a_cluster_that_cannot_be_read_is_refused(values: Any, message: str):
    with pytest.raises(ValueError, match=r".") as refused:
        cluster_of(values)
    assert message in str(refused.value)


def test_a_simulation_shows_when_leaders_leave_and_return():
    events = {
        5: [{"say": {"brokers": [1], "reading": "Failing"}}],
        20: [{"say": {"brokers": [1], "reading": "Passing"}}],
    }
    done = simulate(cluster_of(CLUSTER), POLICY, script_of({"seconds": 120, "events": events}))
    spans = done.brokers[1]
    assert [(s.state, s.demoted, s.leaders) for s in spans] == [
        ("Healthy", False, 2),
        ("Sick", False, 2),
        ("Sick", True, 0),
        ("Recovering", True, 0),
        ("Healthy", False, 2),
    ]
    assert [s.start for s in spans] == [0, 5, 6, 20, 80]
    assert {(c.leader_before, c.leader) for c in done.changes if c.moved and c.at < done.rows[-1].at} <= {
        (1, 2),
        (1, 3),
    }
    assert "event: {say: {brokers: [1], reading: Failing}}" in [row.text for row in done.rows]
    assert [row.what for row in done.rows if row.broker == 1] == [
        "verdict", "verdict", "demoted", "verdict", "verdict", "promoted",
    ]  # fmt: skip


def test_leaders_return_by_balancing_when_the_script_says_so():
    events = {1: [{"kill": [3]}], 5: [{"revive": [3]}], 9: [{"balance": True}]}
    done = simulate(cluster_of(CLUSTER), POLICY, script_of({"seconds": 12, "events": events}))
    assert [s.leaders for s in done.brokers[3]] == [2, 0, 0, 2]
