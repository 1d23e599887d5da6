"""Turns in which a broker comes back, over a whole world in memory: demoted before, or just down; Kafka joins in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Policy, PromotionWaves
from bellwether.core.signals import Reading
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

WAVES = PromotionWaves(steps=(10, 50, 100), pause_seconds=20, skip_up_to_leaders=20, min_downtime_seconds=0)
WAVED = replace(POLICY, promotion=replace(POLICY.promotion, waves=WAVES))
COLD = replace(POLICY, promotion=replace(POLICY.promotion, waves=replace(WAVES, min_downtime_seconds=30)))


@pytest.fixture
def made() -> MemorySite:
    """Four brokers that lead 50 partitions each."""
    return site(4, {"orders": 200}).well()


def leads(made: MemorySite, broker: int = 1) -> int:
    return made.cluster.snapshot().leaders()[broker]


def well_after_sickness(made: MemorySite, policy: Policy = WAVED) -> Operator:
    """Broker 1 was demoted and has just been promoted."""
    operator = Operator(made, policy).reconciles(2)
    made.signals.say(1, Reading.FAILING)
    operator.reconciles(2)
    made.signals.say(1, Reading.PASSING)
    for _ in range(30):
        operator.reconciles(1)
        if leads(made):
            return operator
    raise AssertionError(f"not promoted: {operator.reports[-1]}")


def test_a_recovered_broker_leads_a_tenth_then_half_then_all(made: MemorySite):
    operator = well_after_sickness(made)
    first = leads(made)
    assert 0 < first <= 12
    operator.reconciles(20)
    second = leads(made)
    assert first < second <= 36
    operator.reconciles(20)
    assert leads(made) == 50
    operator.reconciles(60)
    assert made.store.record is not None
    assert made.store.record.empty


def test_while_it_waits_nothing_moves_and_kafka_finds_nothing_to_balance(made: MemorySite):
    operator = well_after_sickness(made)
    operator.reconciles(2)
    mutations, writes = made.cluster.mutations, made.store.writes
    operator.reconciles(15)
    assert (made.cluster.mutations, made.store.writes) == (mutations, writes)
    assert made.cluster.auto_balance() == 0


def test_another_operator_goes_on_with_the_wave_that_it_finds(made: MemorySite):
    well_after_sickness(made)
    first = leads(made)
    made.clock.advance(15)
    successor = Operator(made, WAVED, identity="operator-b").reconciles(1)
    assert leads(made) == first
    successor.reconciles(15)
    assert first < leads(made) <= 36


def test_another_broker_that_becomes_sick_meanwhile_is_demoted(made: MemorySite):
    operator = well_after_sickness(made)
    made.signals.say(3, Reading.FAILING)
    operator.reconciles(3)
    assert leads(made, 3) == 0
    assert sum(made.cluster.snapshot().leaders().values()) == 200
    made.signals.say(3, Reading.PASSING)
    operator.reconciles(150)
    assert [leads(made, broker) for broker in (1, 2, 3, 4)] == [50, 50, 50, 50]


class TestDown:
    def down(self, made: MemorySite, policy: Policy = COLD) -> Operator:
        operator = Operator(made, policy).reconciles(2)
        made.cluster.kill(1)
        made.signals.say(1, Reading.UNKNOWN)
        operator.reconciles(40)
        return operator

    def back(self, made: MemorySite) -> None:
        made.cluster.revive(1)
        made.cluster.catch_up(1)
        made.signals.say(1, Reading.PASSING)

    def test_a_broker_that_was_down_for_long_is_not_first_any_more_when_it_returns(self, made: MemorySite):
        self.down(made)
        assert all(p.replicas[0] != 1 for p in made.cluster.partitions())
        assert {p.leader for p in made.cluster.partitions()} == {2, 3, 4}
        self.back(made)
        assert made.cluster.auto_balance() == 0

    def test_its_leaders_return_in_steps_once_it_is_in_sync(self, made: MemorySite):
        operator = self.down(made)
        made.cluster.revive(1, catch_up=False)
        made.signals.say(1, Reading.PASSING)
        operator.reconciles(10)
        assert leads(made) == 0
        waits = operator.reports[-1].brokers[0].restoration
        assert waits is not None
        assert waits.wait is not None
        assert waits.wait.reason is Reason.PREFERRED_NOT_IN_ISR
        made.cluster.catch_up(1)
        operator.reconciles(2)
        assert 0 < leads(made) <= 12
        operator.reconciles(60)
        assert leads(made) == 50
        operator.reconciles(60)
        assert made.store.record is not None
        assert made.store.record.empty

    def test_one_that_stays_down_causes_no_further_request(self, made: MemorySite):
        operator = self.down(made)
        mutations, writes = made.cluster.mutations, made.store.writes
        operator.reconciles(200)
        assert (made.cluster.mutations, made.store.writes) == (mutations, writes)
        assert operator.reports[-1].condition("Settled").status is True

    def test_one_that_is_decommissioned_leaves_nothing_behind(self, made: MemorySite):
        operator = self.down(made)
        for p in made.cluster.partitions():
            if 1 in p.replicas:
                (spare,) = {2, 3, 4} - set(p.replicas)
                made.cluster.foreign_reassign(p.name, tuple(spare if b == 1 else b for b in p.replicas))
        made.cluster.finish_reassignments()
        operator.reconciles(60)
        assert made.store.record is not None
        assert made.store.record.empty
        assert {b for p in made.cluster.partitions() for b in p.replicas} == {2, 3, 4}
