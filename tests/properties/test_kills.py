"""kill -9 before the first and after every side effect of a demotion and of a promotion: a new process finishes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bellwether.core.settings.policy import Election
from bellwether.core.signals import OverrideState, Reading
from testkit.simulation.fault_injection import Interruptions, Killed
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

# Small batches, so that there are many side effects to die at.
SMALL = replace(POLICY, election=Election(batch_size=2, internal_batch_size=1))

ENOUGH = 45


def fresh() -> MemorySite:
    made = site(4, {"orders": 8, "__consumer_offsets": 4})
    for broker in (1, 2, 3, 4):
        made.signals.say(broker, Reading.PASSING)
    return made


def sicken(made: MemorySite) -> None:
    made.signals.say(2, Reading.FAILING)


def heal(made: MemorySite) -> None:
    made.signals.say(2, Reading.PASSING)


def orders(made: MemorySite) -> dict[tuple[str, int], tuple[int, ...]]:
    return {(p.topic, p.index): p.replicas for p in made.cluster.partitions()}


def assert_demoted(made: MemorySite) -> None:
    assert made.cluster.snapshot().leaders()[2] == 0
    assert all(p.replicas[-1] == 2 for p in made.cluster.partitions() if 2 in p.replicas)


def assert_as_before(made: MemorySite, before: dict[tuple[str, int], tuple[int, ...]]) -> None:
    assert orders(made) == before
    assert all(p.leader == p.replicas[0] for p in made.cluster.partitions())
    assert made.store.record is not None
    assert made.store.record.empty


def run(made: MemorySite, act: Callable[[MemorySite], None], life: Interruptions) -> None:
    """A process in peace, then something happens, and the process reacts until it dies or is done."""
    operator = Operator(made, SMALL).reconciles(2)
    act(made)
    operator.world = life.around(operator.world)
    operator.reconciles(ENOUGH)


def demotion(life: Interruptions) -> tuple[MemorySite, dict[tuple[str, int], tuple[int, ...]]]:
    made = fresh()
    before = orders(made)
    run(made, sicken, life)
    return made, before


def promotion(life: Interruptions) -> tuple[MemorySite, dict[tuple[str, int], tuple[int, ...]]]:
    made = fresh()
    before = orders(made)
    run(made, sicken, Interruptions())
    made.clock.advance(60)
    run(made, heal, life)
    return made, before


def killed(
    step: Callable[[MemorySite], None], number: int, before: bool
) -> tuple[MemorySite, dict[tuple[str, int], tuple[int, ...]]]:
    """A site whose operator was killed at one side effect of a step, and the orders before the demotion."""
    made = fresh()
    baseline = orders(made)
    if step is heal:
        run(made, sicken, Interruptions())
        made.clock.advance(60)
    with pytest.raises(Killed):
        run(made, step, Interruptions(number, before=before))
    return made, baseline


def effects(scene: Callable[[Interruptions], object]) -> list[str]:
    life = Interruptions()
    scene(life)
    return life.effects


def dying(scene: Callable[[Interruptions], object]) -> list[object]:
    return [
        pytest.param(1, True, id="before anything"),
        *(
            pytest.param(number, False, id=f"after {number} {effect}")
            for number, effect in enumerate(effects(scene), 1)
        ),
    ]


def test_an_undisturbed_demotion_and_promotion_end_as_they_should():
    made, before = demotion(Interruptions())
    assert_demoted(made)
    made, before = promotion(Interruptions())
    assert_as_before(made, before)


def test_there_are_side_effects_of_every_kind_to_die_at():
    assert {"save", "reorder", "elect"} <= set(effects(demotion))
    assert {"save", "reorder", "elect"} <= set(effects(promotion))
    assert len(effects(demotion)) >= 8


@pytest.mark.parametrize(("number", "before"), dying(demotion))
def test_a_demotion_killed_anywhere_is_finished_and_later_undone_exactly(number: int, before: bool):
    made, baseline = killed(sicken, number, before)
    made.clock.advance(60)
    successor = Operator(made, SMALL, identity="operator-b").reconciles(ENOUGH)
    assert_demoted(made)
    heal(made)
    successor.reconciles(ENOUGH)
    assert_as_before(made, baseline)


@pytest.mark.parametrize(("number", "before"), dying(demotion))
def test_a_demotion_killed_anywhere_of_a_broker_that_is_well_by_then_is_undone_exactly(number: int, before: bool):
    made, baseline = killed(sicken, number, before)
    heal(made)
    made.clock.advance(60)
    Operator(made, SMALL, identity="operator-b").reconciles(ENOUGH)
    assert_as_before(made, baseline)


@pytest.mark.parametrize(("number", "before"), dying(promotion))
def test_a_promotion_killed_anywhere_is_finished(number: int, before: bool):
    made, baseline = killed(heal, number, before)
    made.clock.advance(60)
    Operator(made, SMALL, identity="operator-b").reconciles(ENOUGH)
    assert_as_before(made, baseline)


@pytest.mark.parametrize(("number", "before"), dying(promotion))
def test_a_promotion_killed_anywhere_of_a_broker_that_is_sick_again_ends_in_a_demotion(number: int, before: bool):
    made, baseline = killed(heal, number, before)
    sicken(made)
    made.clock.advance(60)
    successor = Operator(made, SMALL, identity="operator-b").reconciles(ENOUGH)
    assert_demoted(made)
    heal(made)
    successor.reconciles(ENOUGH)
    assert_as_before(made, baseline)


def test_one_killed_after_every_second_side_effect_still_arrives():
    made = fresh()
    baseline = orders(made)
    sicken(made)
    for n in range(ENOUGH):
        try:
            Operator(made, SMALL, identity=f"operator-{n}", life=Interruptions(3)).reconciles(3)
        except Killed:
            made.clock.advance(60)
    assert_demoted(made)
    made.signals.override(2, OverrideState.PROMOTED)
    for n in range(ENOUGH):
        try:
            Operator(made, SMALL, identity=f"operator-p{n}", life=Interruptions(4)).reconciles(3)
        except Killed:
            made.clock.advance(60)
    made.clock.advance(60)
    Operator(made, SMALL, identity="the-last").reconciles(30)
    assert_as_before(made, baseline)
