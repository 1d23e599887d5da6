"""An entry knows every order that it ever asked for, as long as that can still arrive."""

from __future__ import annotations

from bellwether.core.model.undo_record import EARLIER_ORDERS, EntryState, UndoRecord
from testkit.values.builders import CLUSTER_ID, after, demoted, entry, partition, record

ORDERS = [(1, 2, 3, 4), (2, 3, 4, 1), (3, 2, 4, 1), (4, 2, 3, 1), (2, 4, 3, 1), (3, 4, 2, 1), (4, 3, 2, 1)]
KEY = partition().key


def test_what_was_written_before_stays_known():
    made = entry(baseline=ORDERS[0], written=ORDERS[1]).write(ORDERS[2], EntryState.INTENDED)
    assert (made.written, made.earlier, made.state) == (ORDERS[2], (ORDERS[1],), EntryState.INTENDED)
    assert all(made.knows(order) for order in ORDERS[:3])
    assert not made.knows(ORDERS[3])


def test_only_so_many_earlier_orders_are_kept_newest_first():
    made = entry(baseline=ORDERS[0], written=ORDERS[1])
    for order in ORDERS[2:]:
        made = made.write(order, EntryState.INTENDED)
    assert made.earlier == tuple(ORDERS[5:1:-1])
    assert len(made.earlier) == EARLIER_ORDERS


def test_an_order_written_again_stands_once():
    made = entry(baseline=ORDERS[0], written=ORDERS[1])
    for order in (ORDERS[2], ORDERS[1], ORDERS[2]):
        made = made.write(order, EntryState.INTENDED)
    assert made.earlier == (ORDERS[1],)


def test_the_baseline_is_never_an_earlier_order():
    made = entry(baseline=ORDERS[0], written=ORDERS[1]).write(ORDERS[0], EntryState.RESTORING)
    assert made.write(ORDERS[1], EntryState.INTENDED).earlier == ()


def test_writing_ends_a_tombstone():
    stone = entry(state=EntryState.RESTORED, finished_at=after(1))
    assert stone.write((3, 2, 1), EntryState.INTENDED).finished_at is None


def test_a_record_is_empty_without_entries_and_demotions_alone():
    assert UndoRecord(CLUSTER_ID).empty
    assert not record({KEY: entry(state=EntryState.RESTORED)}).empty
    assert not record(None, demoted(1)).empty


def test_a_record_of_tombstones_alone_has_everything_restored():
    assert record({KEY: entry(state=EntryState.RESTORED)}).restored
    assert not record({KEY: entry(state=EntryState.DISPLACED)}).restored
    assert not record({KEY: entry(state=EntryState.RESTORED)}, demoted(1)).restored


def test_entries_are_changed_added_and_dropped_without_touching_the_record():
    other = partition("other").key
    before = record({KEY: entry()})
    changed = before.with_entries({KEY: None, other: entry("other")})
    assert set(before.entries) == {KEY}
    assert set(changed.entries) == {other}
    assert before.with_entries({}) is before
