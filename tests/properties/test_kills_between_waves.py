"""kill -9 before the first and after every side effect of a return in waves: a new process goes on from there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.settings.policy import PromotionWaves
from bellwether.core.signals import Reading
from testkit.simulation.fault_injection import Interruptions, Killed
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

WAVES = PromotionWaves(steps=(30, 60, 100), pause_seconds=5, skip_up_to_leaders=0)
WAVED = replace(POLICY, promotion=replace(POLICY.promotion, waves=WAVES))
ENOUGH = 75


def ailing() -> MemorySite:
    """Broker 2 is demoted, and well again."""
    made = site(4, {"orders": 12, "__consumer_offsets": 4}).well()
    operator = Operator(made, WAVED).reconciles(2)
    made.signals.say(2, Reading.FAILING)
    operator.reconciles(10)
    made.clock.advance(60)
    made.signals.say(2, Reading.PASSING)
    return made


HOME = {p.name: p.replicas for p in site(4, {"orders": 12, "__consumer_offsets": 4}).cluster.partitions()}


def returned(life: Interruptions) -> MemorySite:
    made = ailing()
    Operator(made, WAVED, identity="operator-b", life=life).reconciles(ENOUGH)
    return made


def effects() -> list[str]:
    life = Interruptions()
    returned(life)
    return life.effects


DYING = [
    pytest.param(1, True, id="before anything"),
    *(pytest.param(number, False, id=f"after {number} {effect}") for number, effect in enumerate(effects(), 1)),
]


def assert_home(made: MemorySite) -> None:
    assert {p.name: p.replicas for p in made.cluster.partitions()} == HOME
    assert all(p.leader == p.replicas[0] for p in made.cluster.partitions())
    assert made.store.record is not None
    assert made.store.record.empty


def shares(made: MemorySite) -> list[int]:
    """The shares that the record has named one after another."""
    named = [r.returning[2].share for r in made.store.history if 2 in r.returning]
    return [share for i, share in enumerate(named) if i == 0 or named[i - 1] != share]


def test_an_undisturbed_return_goes_step_by_step():
    made = returned(Interruptions())
    assert shares(made) == [30, 60]
    assert_home(made)


def test_there_are_side_effects_of_every_kind_to_die_at():
    assert {"save", "reorder", "elect"} <= set(effects())
    assert len(effects()) >= 9


@pytest.mark.parametrize(("number", "before"), DYING)
def test_a_return_killed_at_any_step_continues_from_that_step(number: int, before: bool):
    made = ailing()
    with pytest.raises(Killed):
        Operator(made, WAVED, identity="operator-b", life=Interruptions(number, before=before)).reconciles(ENOUGH)
    made.clock.advance(60)
    Operator(made, WAVED, identity="operator-c").reconciles(ENOUGH)
    assert shares(made) == [30, 60]
    assert_home(made)


@pytest.mark.parametrize(("number", "before"), DYING)
def test_a_return_killed_anywhere_of_a_broker_that_is_sick_again_is_rolled_back(number: int, before: bool):
    made = ailing()
    with pytest.raises(Killed):
        Operator(made, WAVED, identity="operator-b", life=Interruptions(number, before=before)).reconciles(ENOUGH)
    made.signals.say(2, Reading.FAILING)
    made.clock.advance(60)
    successor = Operator(made, WAVED, identity="operator-c").reconciles(30)
    assert made.store.record is not None
    assert made.store.record.returning == {}
    assert set(made.store.record.demoted) == {2}
    assert all(p.replicas[-1] == 2 for p in made.cluster.partitions() if 2 in p.replicas)
    made.signals.say(2, Reading.PASSING)
    successor.reconciles(ENOUGH)
    assert_home(made)


def test_a_version_before_waves_takes_over_and_gives_everything_back_at_once():
    made = ailing()
    operator = Operator(made, WAVED, identity="operator-b")
    for _ in range(40):
        operator.reconciles(1)
        if shares(made) == [30]:
            break
    assert made.store.record is not None
    made.store.record = replace(made.store.record, returning={})  # what it does not know it does not write either
    made.clock.advance(60)
    Operator(made, POLICY, identity="older").reconciles(40)
    assert_home(made)
