"""The fault script and the interruptions do what they say, and nothing else."""

from dataclasses import replace

import pytest

from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Reorder
from testkit.simulation.fault_injection import Fate, Faults, Interruptions, Killed
from testkit.values.builders import demoted, name, site

ORDER = [Reorder(name(), (2, 3, 1))]


def test_a_late_request_is_carried_out_when_it_arrives():
    made, faults = site(), Faults()
    world = faults.around(made.process())
    faults.fail_next("reorder", Fate.LATE)
    with pytest.raises(Transient):
        world.leaders.reorder(ORDER)
    assert made.cluster.partition("orders").replicas == (1, 2, 3)
    assert faults.deliver() == 1
    assert made.cluster.partition("orders").replicas == (2, 3, 1)


@pytest.mark.parametrize(("before", "replicas"), [(True, (1, 2, 3)), (False, (2, 3, 1))])
def test_a_process_dies_before_or_after_its_side_effect(before, replicas):
    made = site()
    life = Interruptions(2, before=before)
    world = life.around(made.process())
    world.records.take_over("memory-cluster")
    with pytest.raises(Killed):
        world.leaders.reorder(ORDER)
    assert made.cluster.partition("orders").replicas == replicas
    with pytest.raises(Killed):
        world.leaders.elect([name()])


def test_side_effects_are_counted_without_unchanged_saves():
    life = Interruptions()
    world = life.around(site().process())
    record = world.records.take_over("memory-cluster")
    world.records.save(record)
    world.records.save(replace(record, demoted={1: demoted(1)}))
    world.leaders.reorder(ORDER)
    world.leaders.elect([name()])
    world.leaders.cancel([name()])
    assert life.effects == ["take_over", "save", "reorder", "elect", "cancel"]
