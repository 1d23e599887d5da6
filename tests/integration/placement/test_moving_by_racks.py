"""Weights, limits and several demoted on real brokers; no invariant is broken meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.core.settings.policy import Capacity, Demotion
from bellwether.core.signals import OverrideState, Reading
from testkit.kafka.kafka_site import KafkaSite
from testkit.simulation.operators import POLICY, Operator

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RACKS = {1: "dc-1", 2: "dc-2", 3: "dc-3", 4: "dc-1", 5: "dc-2", 6: "dc-3"}
IN_TURN = [(1, 2, 3), (2, 3, 4), (3, 4, 5), (4, 5, 6), (5, 6, 1), (6, 1, 2)]


def racks_of(site: KafkaSite, topic: str) -> Counter[str]:
    return Counter(RACKS[p.leader] for p in site.partitions([topic]).values() if p.leader is not None)


def test_weighted_racks_lead_in_proportion_and_a_topic_follows_its_own_rule(
    site: KafkaSite, begin: Callable[..., Operator], topic: Callable[..., str]
) -> None:
    shared, edge = topic("shared", *IN_TURN * 10), topic("edge-1", *IN_TURN)
    before = site.orders()
    wish = Placement(
        Preference(weights=(("dc-1", 3), ("dc-2", 1))), (TopicRule("edge-*", Preference(("dc-3", "dc-1"))),)
    )
    operator = begin(policy=replace(POLICY, placement=wish))
    operator.settle(seconds=0.1)
    site.eventually(lambda _: racks_of(site, edge) == {"dc-3": 6} and racks_of(site, shared)["dc-3"] == 0)
    assert 40 <= racks_of(site, shared)["dc-1"] <= 50
    operator.policy = POLICY
    operator.settle(seconds=0.1)
    site.eventually(lambda _: site.orders() == before)


def test_demotion_moves_what_others_can_carry_and_names_rest(
    site: KafkaSite, begin: Callable[..., Operator], topic: Callable[..., str]
) -> None:
    topic("crowded", *[(1, 2, 3)] * 20)
    limit = Demotion(dwell_seconds=0, capacity=Capacity(max_leaders=6))
    operator = begin(policy=replace(POLICY, demotion=limit))
    operator.reconcile()
    site.signals.override(1, OverrideState.DEMOTED)
    operator.reconciles(3, seconds=0.1)
    # Once every broker shows it, there is nothing else to tell.
    site.everywhere(lambda c: (c.leaders()[2], c.leaders()[3]) == (6, 6))
    said = operator.settle(seconds=0.1)
    assert said.blocked_by_reason == {Reason.CAPACITY_REACHED: 8}
    assert said.condition("Ready").message.startswith("8 leaders stay")
    site.signals.lift(1)
    operator.settle(seconds=0.1)
    site.eventually(lambda c: c.leaders()[1] == 20)


def test_where_only_demoted_ones_are_left_the_least_sick_leads_and_is_named(
    site: KafkaSite, begin: Callable[..., Operator], topic: Callable[..., str]
) -> None:
    pair = topic("pair", *[(1, 2)] * 4)
    for broker in RACKS:
        site.signals.say(broker, Reading.PASSING)
    operator = begin(policy=replace(POLICY, demotion=Demotion(dwell_seconds=0, max_brokers=2)))
    operator.reconcile()
    site.signals.override(2, OverrideState.DEMOTED)
    operator.reconciles(2, seconds=0.1)
    site.eventually(lambda c: c.leaders()[1] == 4)
    site.signals.say(1, Reading.FAILING)
    operator.reconciles(4, seconds=0.1)
    site.everywhere(lambda c: {p.leader for p in c.partitions if p.topic == pair} == {2})
    said = operator.settle(seconds=0.1)
    assert said.blocked_by_reason[Reason.NO_HEALTHY_ISR_MEMBER] == 4
    assert {h.topic for h in said.held_sample} == {pair}
    site.signals.say(1, Reading.PASSING)
    site.signals.lift(2)
    operator.settle(seconds=0.3)
    site.eventually(lambda c: {p.replicas for p in c.partitions if p.topic == pair} == {(1, 2)})
