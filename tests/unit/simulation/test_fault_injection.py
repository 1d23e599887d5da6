"""The fault script and the interruptions do what they say, and nothing else."""

from dataclasses import replace

import pytest

from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Reorder
from testkit.simulation.fault_injection import Fate, Faults, FaultyReader, Interruptions, Killed
from testkit.values.builders import demoted, name, site

ORDER = [Reorder(name(), (2, 3, 1))]


def test_a_lost_request_changes_nothing():
    made, faults = site(), Faults()
    world = faults.around(made.process())
    faults.fail_next("reorder")
    with pytest.raises(Transient):
        world.leaders.reorder(ORDER)
    assert made.cluster.partition("orders").replicas == (1, 2, 3)
    assert faults.deliver() == 0


def test_an_unanswered_request_is_carried_out_all_the_same():
    made, faults = site(), Faults()
    world = faults.around(made.process())
    faults.fail_next("reorder", Fate.UNANSWERED)
    with pytest.raises(Transient):
        world.leaders.reorder(ORDER)
    assert made.cluster.partition("orders").replicas == (2, 3, 1)


def test_a_late_request_is_carried_out_when_it_arrives():
    made, faults = site(), Faults()
    world = faults.around(made.process())
    faults.fail_next("reorder", Fate.LATE)
    with pytest.raises(Transient):
        world.leaders.reorder(ORDER)
    assert made.cluster.partition("orders").replicas == (1, 2, 3)
    assert faults.deliver() == 1
    assert made.cluster.partition("orders").replicas == (2, 3, 1)


def test_a_broker_that_holds_a_late_reorder_answers_no_check_until_it_is_resumed():
    made, faults = site(), Faults()
    leaders = faults.around(made.process()).leaders
    faults.fail_next("reorder", Fate.LATE)
    with pytest.raises(Transient):
        leaders.reorder(ORDER, 2)
    assert [leaders.forwards(broker) for broker in (1, 2, 3)] == [True, False, True]
    faults.resumed = True
    assert leaders.forwards(2)


def test_a_late_request_is_dropped_with_the_process_that_holds_it():
    made, faults = site(), Faults()
    leaders = faults.around(made.process()).leaders
    faults.fail_next("reorder", Fate.LATE)
    with pytest.raises(Transient):
        leaders.reorder(ORDER, 2)
    faults.drop()
    assert (faults.deliver(), leaders.forwards(2)) == (0, True)
    assert made.cluster.partition("orders").replicas == (1, 2, 3)


def test_a_fault_waits_for_its_turn():
    faults = Faults()
    world = faults.around(site().process())
    faults.fail_next("elect", after=1)
    assert world.leaders.elect([name()])[name()].ok
    with pytest.raises(Transient):
        world.leaders.elect([name()])
    assert world.leaders.elect([name()])[name()].ok


def test_one_refused_partition_does_not_hold_up_the_others():
    made, faults = site(), Faults()
    world = faults.around(made.process())
    faults.refuse("reorder", name())
    outcomes = world.leaders.reorder([*ORDER, Reorder(name(index=1), (3, 1, 2))])
    assert [o.error for o in outcomes.values()] == ["UNKNOWN_SERVER_ERROR", "NONE"]
    assert [p.replicas for p in made.cluster.partitions()][:2] == [(1, 2, 3), (3, 1, 2)]


def test_a_race_happens_between_the_check_and_the_request():
    made, faults = site(), Faults()
    world = faults.around(made.process())
    faults.race("reorder", lambda: made.cluster.delete_topic("orders"))
    assert world.clusters.partitions(["orders"])
    assert world.leaders.reorder(ORDER)[name()].error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_lagging_metadata_shows_what_was_before():
    made = site()
    reader = FaultyReader(made.process().clusters, Faults())
    before = reader.read()
    made.cluster.kill(3)
    reader.lag()
    assert reader.read() == before
    assert set(reader.read().brokers) == {1, 2}


@pytest.mark.parametrize(("before", "replicas"), [(True, (1, 2, 3)), (False, (2, 3, 1))])
def test_a_process_dies_on_the_chosen_side_of_its_side_effect_and_stays_dead(before, replicas):
    made = site()
    life = Interruptions(2, before=before)
    world = life.around(made.process())
    world.records.take_over("memory-cluster")
    with pytest.raises(Killed):
        world.leaders.reorder(ORDER)
    assert made.cluster.partition("orders").replicas == replicas
    with pytest.raises(Killed):
        world.leaders.elect([name()])


def test_an_uninterrupted_process_has_its_side_effects_counted_and_an_unchanged_save_is_none():
    life = Interruptions()
    world = life.around(site().process())
    record = world.records.take_over("memory-cluster")
    world.records.save(record)
    world.records.save(replace(record, demoted={1: demoted(1)}))
    world.leaders.reorder(ORDER)
    world.leaders.elect([name()])
    world.leaders.cancel([name()])
    assert life.effects == ["take_over", "save", "reorder", "elect", "cancel"]
