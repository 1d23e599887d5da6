"""Orders of other tools that are remembered in memory while the policy does not act."""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.execution.recovery import set_aside, with_overwritten
from bellwether.core.model.undo_record import EntryState
from testkit.values.builders import after, cluster, entry, partition, record

KEY = partition().key
OURS = entry(baseline=(1, 2, 3), written=(2, 3, 1))
THEIRS = replace(OURS, baseline=(3, 1, 2), written=(3, 1, 2), contests=1, contested_at=after(0))
STORED = record({KEY: OURS})


def test_another_tool_s_order_is_remembered_and_not_stored():
    assert set_aside(STORED, record({KEY: THEIRS})) == (STORED, {KEY: THEIRS})


def test_former_order_put_back_is_remembered_and_not_stored():
    back = replace(OURS, written=OURS.baseline, contests=1, contested_at=after(0))
    assert set_aside(STORED, record({KEY: back})) == (STORED, {KEY: back})


def test_what_recovery_found_of_our_own_order_is_stored():
    found = record({KEY: replace(OURS, state=EntryState.RESTORED, finished_at=after(1))})
    assert set_aside(STORED, found) == (found, {})


def test_changed_replica_set_is_stored_with_its_original_order():
    found = record({KEY: replace(THEIRS, baseline=(3, 1, 2, 4), written=(3, 1, 2, 4))})
    assert set_aside(STORED, found) == (found, {})


def test_an_entry_that_recovery_dropped_is_dropped():
    assert set_aside(STORED, record()) == (record(), {})


def test_what_was_remembered_counts_while_our_order_is_not_back():
    for replicas in ((3, 1, 2), (1, 3, 2), (3, 1, 2, 4)):
        seen = cluster(partition(replicas=replicas), brokers=4)
        assert with_overwritten(STORED, {KEY: THEIRS}, seen).entries[KEY] == THEIRS
    assert with_overwritten(STORED, {KEY: THEIRS}, cluster()).entries[KEY] == THEIRS


def test_memory_ends_when_our_order_is_back_or_entry_gone():
    seen = cluster(partition(replicas=OURS.written))
    assert with_overwritten(STORED, {KEY: THEIRS}, seen) == STORED
    assert with_overwritten(record(), {KEY: THEIRS}, cluster(partition(replicas=(3, 1, 2)))) == record()
