"""kill -9 before the first and after every side effect of a rebalance plan: the next process goes on exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.model.undo_record import ApplicationEnd
from bellwether.core.settings.policy import Election
from bellwether.core.signals import Reading
from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceInput
from testkit.loads.approved_plans import accepted, loadmove, settings
from testkit.simulation.fault_injection import Interruptions, Killed
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

# Waves of three, in batches of two: there is much to die at.
SMALL = replace(POLICY, election=Election(batch_size=2, internal_batch_size=1), rebalance=settings(3))
ENOUGH = 40


def fresh() -> tuple[MemorySite, ApprovedPlan]:
    made = site(4, {"orders": 8, "payments": 4}).well()
    moved = [p for p in made.cluster.partitions() if p.index % 3 != 2]
    return made, accepted(*(loadmove(p, p.replicas[-1]) for p in moved))


def process(made: MemorySite, plan: ApprovedPlan, life: Interruptions, identity: str = "operator-a") -> Operator:
    operator = Operator(made, SMALL, identity=identity, life=life)
    operator.rebalance_input = RebalanceInput(plan)
    return operator


def effects() -> list[str]:
    life = Interruptions()
    made, plan = fresh()
    process(made, plan, life).reconciles(ENOUGH)
    return life.effects


def dying() -> list[object]:
    return [
        pytest.param(1, True, id="before anything"),
        *(pytest.param(number, False, id=f"after {number} {effect}") for number, effect in enumerate(effects(), 1)),
    ]


def assert_applied(made: MemorySite, plan: ApprovedPlan) -> None:
    wanted = {m.name: m.order for m in plan.moves}
    for p in made.cluster.partitions():
        assert p.replicas == wanted.get(p.name, p.replicas)
        assert p.leader == p.replicas[0]
    record = made.store.record
    assert record is not None
    assert record.application is not None
    assert (record.application.ended, record.application.left) == (ApplicationEnd.DONE, {})
    assert record.empty


def test_there_are_several_waves_and_side_effects_of_every_kind_to_die_at():
    found = effects()
    assert {"save", "reorder", "elect"} <= set(found)
    assert found.count("reorder") >= 6


@pytest.mark.parametrize(("number", "before"), dying())
def test_plan_whose_operator_is_killed_anywhere_is_gone_on_with(number: int, before: bool):
    made, plan = fresh()
    with pytest.raises(Killed):
        process(made, plan, Interruptions(number, before=before)).reconciles(ENOUGH)
    made.clock.advance(60)
    process(made, plan, Interruptions(), "operator-b").reconciles(ENOUGH)
    assert_applied(made, plan)


@pytest.mark.parametrize(("number", "before"), dying())
def test_what_was_begun_is_finished_by_a_process_that_knows_of_no_plan(number: int, before: bool):
    """Its approval was taken back, say: no further wave, and nothing half done."""
    made, plan = fresh()
    with pytest.raises(Killed):
        process(made, plan, Interruptions(number, before=before)).reconciles(ENOUGH)
    begun = {k: e.baseline for k, e in made.store.record.entries.items()} if made.store.record is not None else {}
    made.clock.advance(60)
    Operator(made, SMALL, identity="operator-b").reconciles(ENOUGH)
    assert made.store.record is not None
    assert made.store.record.empty
    now = {p.key: p for p in made.cluster.partitions()}
    assert all(now[key].replicas == order for key, order in begun.items())
    assert all(p.leader == p.replicas[0] for p in now.values())


def test_one_killed_after_every_third_side_effect_still_arrives():
    made, plan = fresh()
    for n in range(ENOUGH):
        try:
            process(made, plan, Interruptions(3), f"operator-{n}").reconciles(3)
        except Killed:
            made.clock.advance(60)
    made.clock.advance(60)
    process(made, plan, Interruptions(), "the-last").reconciles(ENOUGH)
    assert_applied(made, plan)


@pytest.mark.parametrize(("number", "before"), dying())
def test_a_broker_sick_during_the_kill_gets_its_leaders_later(number: int, before: bool):
    made, plan = fresh()
    with pytest.raises(Killed):
        process(made, plan, Interruptions(number, before=before)).reconciles(ENOUGH)
    made.signals.say(2, Reading.FAILING)
    made.clock.advance(60)
    successor = process(made, plan, Interruptions(), "operator-b")
    successor.reconciles(10)
    assert made.cluster.snapshot().leaders()[2] == 0
    made.signals.say(2, Reading.PASSING)
    successor.reconciles(60)
    assert_applied(made, plan)
