"""An entry knows every order of ours that may be observed: what it set out to write, and what may still arrive."""

from __future__ import annotations

from itertools import permutations

from bellwether.core.model.undo_record import OUTSTANDING_LIMIT, EntryState, SentOrder, UndoRecord
from testkit.values.builders import CLUSTER_ID, after, demoted, entry, partition, record

HOME, AWAY, OTHER = (1, 2, 3), (2, 3, 1), (3, 2, 1)
KEY = partition().key


class TestSending:
    def test_an_order_is_outstanding_at_the_broker_that_is_asked(self):
        made = entry().send(SentOrder(OTHER, 2), AWAY, EntryState.INTENDED)
        assert (made.written, made.replaced, made.state) == (OTHER, AWAY, EntryState.INTENDED)
        assert made.outstanding == (SentOrder(OTHER, 2),)
        assert made.baseline == HOME
        assert made.may_arrive(OTHER)
        assert not made.may_arrive((2, 1, 3))

    def test_an_order_that_was_never_seen_stays_known(self):
        made = entry(state=EntryState.INTENDED, outstanding=[(AWAY, 2)]).send(
            SentOrder(OTHER, 3), HOME, EntryState.INTENDED
        )
        assert made.outstanding == (SentOrder(OTHER, 3), SentOrder(AWAY, 2))
        assert made.may_arrive(AWAY)

    def test_it_ends_a_tombstone(self):
        stone = entry(state=EntryState.RESTORED, finished_at=after(1))
        assert stone.send(SentOrder(AWAY, 2), HOME, EntryState.INTENDED).finished_at is None

    def test_many_are_merged_by_order_and_their_brokers_forgotten(self):
        made = entry()
        for number in range(2 * OUTSTANDING_LIMIT):
            made = made.send(SentOrder((AWAY, OTHER)[number % 2], number), HOME, EntryState.INTENDED)
            assert len(made.outstanding) <= OUTSTANDING_LIMIT
        assert {sent.order for sent in made.outstanding} == {AWAY, OTHER}
        assert None in {sent.broker for sent in made.outstanding}

    def test_partition_never_has_more_than_orders_of_its_replicas(self):
        made, orders = entry(), list(permutations((1, 2, 3, 4)))
        for number in range(10 * len(orders)):
            made = made.send(SentOrder(orders[number % len(orders)], number), orders[0], EntryState.INTENDED)
        assert len(made.outstanding) <= len(orders) + 1


class TestEndings:
    def test_unexecuted_request_ends_and_equal_later_one_stays(self):
        made = entry(outstanding=[(AWAY, 2), (AWAY, 2)]).without(SentOrder(AWAY, 2))
        assert made.outstanding == (SentOrder(AWAY, 2),)


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
