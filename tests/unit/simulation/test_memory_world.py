"""Records, Lease, signals and time in memory."""

from dataclasses import replace

import pytest

from bellwether.core.signals import Reading
from bellwether.ports.errors import Fenced, Terminal, Transient
from bellwether.simulation.memory_world import START, ManualClock, MemorySignals
from testkit.simulation.memory_site import MemoryLeadership, MemoryLease, MemoryRecords, MemoryRecordStore
from testkit.values.builders import demoted, record, signal


def test_a_record_outlives_the_process_that_wrote_it():
    store = MemoryRecordStore()
    first = MemoryRecords(store)
    taken = first.take_over("memory-cluster")
    first.save(replace(taken, demoted={1: demoted(1)}))
    again = MemoryRecords(store).take_over("memory-cluster")
    assert (again.epoch, set(again.demoted)) == (taken.epoch + 1, {1})


def test_an_older_epoch_may_not_write_any_more():
    store = MemoryRecordStore()
    old = MemoryRecords(store).take_over("memory-cluster")
    MemoryRecords(store).take_over("memory-cluster")
    with pytest.raises(Fenced, match="epoch 1 may not write"):
        MemoryRecords(store).save(old)


def test_a_write_before_taking_over_is_refused():
    with pytest.raises(Fenced, match="no process has taken it over"):
        MemoryRecords().save(record())


def test_an_unchanged_record_is_not_written_again():
    store = MemoryRecordStore()
    records = MemoryRecords(store)
    taken = records.take_over("memory-cluster")
    records.save(taken)
    assert store.writes == 1


def test_another_clusters_record_is_not_taken_over():
    store = MemoryRecordStore()
    MemoryRecords(store).take_over("memory-cluster")
    with pytest.raises(Terminal, match="belongs to cluster memory-cluster, the brokers to other"):
        MemoryRecords(store).take_over("other")


def test_a_store_that_is_away_is_a_matter_of_time():
    store = MemoryRecordStore(reachable=False)
    with pytest.raises(Transient):
        MemoryRecords(store).take_over("memory-cluster")


def test_a_frozen_holder_loses_the_lease_after_its_duration():
    clock = ManualClock()
    lease = MemoryLease(clock, duration_seconds=15)
    first, second = MemoryLeadership(lease, "a"), MemoryLeadership(lease, "b")
    assert (first.seconds_left(), second.seconds_left()) == (15, 0)
    first.frozen = True
    clock.advance(10)
    assert (first.seconds_left(), second.seconds_left()) == (5, 0)
    clock.advance(5)
    assert (first.seconds_left(), second.seconds_left()) == (0, 15)
    first.frozen = False
    assert first.seconds_left() == 0


def test_signals_of_a_silent_source_age_and_others_do_not():
    clock = ManualClock()
    signals = MemorySignals(clock)
    signals.put(signal(source="a"), signal(source="b"), signal(broker=2, source="a", age_seconds=None))
    signals.silence("a")
    clock.advance(7)
    assert [s.age_seconds for s in signals.signals()] == [7, 0, None]
    signals.resume("a")
    assert [s.age_seconds for s in signals.signals()] == [0, 0, None]


def test_saying_the_same_again_is_no_news():
    clock = ManualClock()
    signals = MemorySignals(clock)
    signals.say(1, Reading.FAILING)
    clock.advance(5)
    signals.say(1, Reading.FAILING)
    assert {s.since for s in signals.signals()} == {START}
    signals.say(1, Reading.PASSING)
    assert {s.since for s in signals.signals()} == {clock.now()}
    signals.clear(1)
    assert signals.signals() == ()
