"""What a policy says of racks and of what brokers can carry, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.api.v1alpha1.base_model import InvalidObject
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.settings import policy as core_policy
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.core.settings.policy import UNBOUNDED, Capacity
from testkit.kubernetes import api_objects


def given(**spec: Any) -> core_policy.Policy:
    return LeadershipPolicy.read(api_objects.policy(**spec)).policy()


def test_default_policy_has_no_racks_and_limits():
    assert given().placement is None
    assert given().demotion.capacity == UNBOUNDED


def test_racks_in_order_reach_the_core():
    assert given(placement={"racks": ["a", "b"]}).placement == Placement(Preference(("a", "b")))


def test_weights_reach_the_core():
    weights = [{"rack": "a", "weight": 70}, {"rack": "b", "weight": 30}]
    wanted = Placement(Preference(weights=(("a", 70), ("b", 30))))
    assert given(placement={"weights": weights}).placement == wanted


def test_rules_for_topics_reach_the_core_in_their_order():
    rules = [
        {"pattern": "eu-*", "racks": ["eu"]},
        {"pattern": "*-audit", "weights": [{"rack": "us", "weight": 1}]},
    ]
    assert given(placement={"topics": rules}).placement == Placement(
        None,
        (
            TopicRule("eu-*", Preference(("eu",))),
            TopicRule("*-audit", Preference(weights=(("us", 1),))),
        ),
    )


def test_the_limit_of_leaders_reaches_the_core():
    assert given(demotion={"capacity": {"maxLeaders": 2000}}).demotion.capacity == Capacity(max_leaders=2000)


def test_the_limit_of_load_reaches_the_core():
    assert given(demotion={"capacity": {"maxBytesPerSecond": 10**9}}).demotion.capacity == Capacity(max_load=10**9)


WEIGHT = {"rack": "a", "weight": 1}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"placement": {}}, "spec.placement.racks: is required unless", id="a placement without racks"),
        pytest.param(
            {"placement": {"racks": ["a"], "weights": [WEIGHT]}},
            "spec.placement.weights: must not be set together with racks",
            id="both",
        ),
        pytest.param({"placement": {"racks": ["a", "a"]}}, "contains a twice: remove", id="a rack twice"),
        pytest.param(
            {"placement": {"weights": [WEIGHT, WEIGHT]}},
            "spec.placement.weights: contains a rack twice",
            id="a weight twice",
        ),
        pytest.param({"placement": {"weights": [{"rack": "a", "weight": 0}]}}, "weight", id="a weight of nothing"),
        pytest.param({"placement": {"racks": [""]}}, "racks[0]", id="a rack without a name"),
        pytest.param(
            {"placement": {"topics": [{"pattern": "x"}]}},
            "spec.placement.topics[0].racks: is required unless",
            id="an empty rule",
        ),
        pytest.param(
            {"placement": {"topics": [{"pattern": "**", "racks": ["a"]}]}},
            "spec.placement.topics[0].pattern: matches every topic",
            id="a rule for everything",
        ),
        pytest.param(
            {"placement": {"topics": [{"pattern": "x", "racks": ["a"]}, {"pattern": "x", "racks": ["b"]}]}},
            "spec.placement.topics: contains a pattern twice",
            id="a pattern twice",
        ),
        pytest.param(
            {"placement": {"topics": [{"pattern": "x y", "racks": ["a"]}]}},
            "must be the name of a topic",
            id="no topic",
        ),
        pytest.param({"demotion": {"capacity": {}}}, "spec.demotion.capacity.maxLeaders: is required", id="no limit"),
        pytest.param({"demotion": {"capacity": {"maxLeaders": 0}}}, "maxLeaders", id="a limit of nothing"),
        pytest.param({"demotion": {"capacity": {"maxBytesPerSecond": 0}}}, "maxBytesPerSecond", id="a load of nothing"),
        pytest.param(
            {"demotion": {"capacity": {"maxBytesPerSecond": 10**15 + 1}}}, "maxBytesPerSecond", id="an endless load"
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(spec: dict[str, Any], said: str):
    with pytest.raises(InvalidObject) as refused:
        given(**spec)
    assert said in str(refused.value)
