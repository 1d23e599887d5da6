"""The steps of a move: batches, the last check before the request, and what a read after it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from bellwether.core.execution.reorder_checks import (
    ReadbackResult,
    UnseenElection,
    batches,
    can_elect,
    overtaken_message,
    precheck,
    record_intents,
    record_results,
    replica_set_changed_message,
    seen_late,
    verify,
)
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.undo_record import EntryState, SentOrder, UndoEntry
from bellwether.core.planning.plan import MoveKind, Plan
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Election
from testkit.messages import assert_wording
from testkit.values.builders import START, decisions, demoted, entry, move, partition, record

AWAY = (2, 3, 1)
MOVE = move()


@pytest.mark.parametrize(
    ("internal", "usual", "sizes"),
    [
        pytest.param(0, 0, [], id="nothing"),
        pytest.param(0, 4, [4], id="a full batch"),
        pytest.param(0, 9, [4, 4, 1], id="a rest"),
        pytest.param(5, 0, [2, 2, 1], id="internal ones are smaller"),
        pytest.param(3, 5, [2, 1, 4, 1], id="and by themselves"),
    ],
)
def test_batches_are_cut_by_kind_and_size(internal: int, usual: int, sizes: list[int]):
    moves = [move(partition("__offsets", i, internal=True)) for i in range(internal)]
    moves += [move(partition(index=i)) for i in range(usual)]
    cut = list(batches(Plan(tuple(moves)), Election(batch_size=4, internal_batch_size=2)))
    assert [len(batch) for batch in cut] == sizes
    assert [m for batch in cut for m in batch] == moves


def test_leaders_share_no_batch_with_mere_reorders():
    moves = tuple(move(partition(index=i), elect=i < 3) for i in range(5))
    assert [[m.elect for m in b] for b in batches(Plan(moves), Election())] == [[True] * 3, [False] * 2]


def test_an_internal_run_at_the_end_is_cut_by_itself():
    moves = (move(partition()), move(partition("__offsets", internal=True)))
    assert [len(b) for b in batches(Plan(moves), Election())] == [1, 1]


def test_a_small_batch_size_holds_for_internal_topics_too():
    moves = tuple(move(partition("__offsets", i, internal=True)) for i in range(5))
    assert [len(b) for b in batches(Plan(moves), Election(batch_size=4))] == [4, 1]


def test_internal_mere_reorders_go_in_large_batches_with_others():
    moves = [move(partition("__offsets", i, internal=True), elect=False) for i in range(5)]
    moves += [move(partition(index=i), elect=False) for i in range(3)]
    assert [len(b) for b in batches(Plan(tuple(moves)), Election(batch_size=8, internal_batch_size=2))] == [8]


class TestIntents:
    def test_every_reorder_is_covered_before_it_is_sent(self):
        covered = record_intents(Plan((MOVE,), decisions=decisions(1)), record(), 2)
        made = covered.entries[MOVE.key]
        assert (made.baseline, made.written, made.state) == ((1, 2, 3), AWAY, EntryState.INTENDED)
        assert made.outstanding == (SentOrder(AWAY, 2),)
        assert list(covered.demoted) == [1]

    def test_giving_back_is_covered_as_giving_back(self):
        back = move(partition(replicas=AWAY), (1, 2, 3), kind=MoveKind.RESTORE, baseline=(1, 2, 3))
        made = record_intents(Plan((back,)), record({back.key: entry()}), 2).entries[back.key]
        assert (made.written, made.replaced, made.state) == ((1, 2, 3), AWAY, EntryState.RESTORING)

    def test_an_election_alone_changes_no_entry(self):
        elected = move(partition(replicas=AWAY, leader=1), AWAY, baseline=(1, 2, 3))
        before = record({elected.key: entry()}, demoted(1))
        assert record_intents(Plan((elected,), decisions=decisions(1)), before, None) is before

    def test_entry_of_other_baseline_begins_again_keeping_outstanding_orders(self):
        sent = [((3, 1, 2), 3)]
        for stale in (entry(baseline=(3, 2, 1), outstanding=sent), entry("orders-old", outstanding=sent)):
            made = record_intents(Plan((MOVE,)), record({MOVE.key: stale}), 2).entries[MOVE.key]
            assert (made.topic, made.baseline, made.written) == ("orders", (1, 2, 3), AWAY)
            assert made.outstanding == (SentOrder(AWAY, 2), SentOrder((3, 1, 2), 3))

    def test_a_changed_demotion_alone_is_recorded(self):
        covered = record_intents(Plan(decisions=decisions(1, 2)), record(None, demoted(1), epoch=7), None)
        assert (list(covered.demoted), covered.epoch) == ([1, 2], 7)

    def test_a_promotion_is_recorded(self):
        assert record_intents(Plan(), record(None, demoted(1)), None).demoted == {}


class TestResults:
    def entry_after(self, *, applied: bool = False, unanswered: bool = False) -> UndoEntry:
        before = record_intents(Plan((MOVE,)), record(), 2)
        sent = [(MOVE.key, SentOrder(AWAY, 2))]
        after = record_results(before, sent, sent if unanswered else [], [MOVE.key] if applied else [], START)
        return after.entries[MOVE.key]

    def test_order_seen_in_place_is_displaced_without_outstanding(self):
        made = self.entry_after(applied=True)
        assert (made.state, made.outstanding, made.replaced) == (EntryState.DISPLACED, (), None)

    def test_what_was_not_answered_stays_outstanding(self):
        made = self.entry_after(unanswered=True)
        assert (made.state, made.outstanding) == (EntryState.INTENDED, (SentOrder(AWAY, 2),))

    def test_what_was_refused_or_not_sent_is_not_outstanding(self):
        made = self.entry_after()
        assert (made.state, made.outstanding) == (EntryState.INTENDED, ())

    def test_a_restored_order_leaves_a_tombstone(self):
        back = move(partition(replicas=AWAY), (1, 2, 3), kind=MoveKind.RESTORE, baseline=(1, 2, 3))
        sent = record_intents(Plan((back,)), record({back.key: entry()}), 2)
        reorder = (back.key, SentOrder(back.order, 2))
        made = record_results(sent, [reorder], [], [back.key], START).entries[back.key]
        assert (made.state, made.finished_at, made.outstanding) == (EntryState.RESTORED, START, ())

    def test_outstanding_order_stays_so_though_same_order_is_in_place(self):
        undo = record({MOVE.key: entry(outstanding=[(AWAY, 2)], state=EntryState.INTENDED)})
        sent = record_intents(Plan((MOVE,)), undo, 2)
        after = record_results(sent, [(MOVE.key, SentOrder(AWAY, 2))], [], [MOVE.key], START)
        assert after.entries[MOVE.key].outstanding == (SentOrder(AWAY, 2),)


@pytest.mark.parametrize(
    ("fresh", "reason"),
    [
        pytest.param([partition()], None, id="as planned"),
        pytest.param([partition(replicas=AWAY)], None, id="in the wanted order already"),
        pytest.param([partition(leader=2)], None, id="led by another meanwhile"),
        pytest.param([], Reason.CHANGED_SINCE_PLAN, id="the topic is gone"),
        pytest.param([partition("other")], Reason.CHANGED_SINCE_PLAN, id="only another topic is left"),
        pytest.param([partition(topic_id="another")], Reason.CHANGED_SINCE_PLAN, id="another topic has the name"),
        pytest.param([partition(adding=[3])], Reason.REASSIGNING, id="replicas are being added"),
        pytest.param([partition(removing=[3])], Reason.REASSIGNING, id="replicas are being removed"),
        pytest.param([partition(replicas=[1, 2, 3, 4])], Reason.CHANGED_SINCE_PLAN, id="RF was raised"),
        pytest.param([partition(replicas=[1, 2])], Reason.CHANGED_SINCE_PLAN, id="RF was lowered"),
        pytest.param([partition(replicas=[1, 2, 4])], Reason.CHANGED_SINCE_PLAN, id="a replica was moved"),
        pytest.param([partition(replicas=[3, 2, 1])], Reason.CHANGED_SINCE_PLAN, id="reordered by another client"),
    ],
)
def test_what_is_no_longer_as_planned_is_held(fresh: Sequence[Partition], reason: Reason | None):
    checked = precheck([MOVE], fresh)
    assert [h.reason for h in checked.holds] == ([reason] if reason else [])
    assert checked.moves == (() if reason else (MOVE,))
    assert set(checked.facts) == (set() if reason else {MOVE.key})


def test_one_changed_partition_does_not_hold_its_batch():
    other = move(partition(index=1))
    checked = precheck([MOVE, other], [partition(index=1)])
    assert (checked.moves, [h.key for h in checked.holds]) == ((other,), [MOVE.key])


DONE = partition(replicas=AWAY, leader=1)


@pytest.mark.parametrize(
    ("after", "seen"),
    [
        pytest.param(DONE, ReadbackResult.DONE, id="it shows"),
        pytest.param(partition(), ReadbackResult.NOT_APPLIED, id="the old order"),
        pytest.param(None, ReadbackResult.NOT_APPLIED, id="metadata does not name it"),
        pytest.param(partition(replicas=[3, 2, 1]), ReadbackResult.NOT_APPLIED, id="another order"),
        pytest.param(replace(DONE, topic_id="another"), ReadbackResult.TOUCHED, id="another topic has the name"),
        pytest.param(
            replace(DONE, replicas=(2, 3, 1, 4), adding=(4,)),
            ReadbackResult.MOVING_ON,
            id="a replica is being added",
        ),
        pytest.param(replace(DONE, replicas=(2, 3, 1, 4)), ReadbackResult.TOUCHED, id="a replica was added"),
        pytest.param(replace(DONE, replicas=(2, 1)), ReadbackResult.TOUCHED, id="a replica was removed"),
        pytest.param(
            replace(DONE, replicas=(2, 3, 1, 4), removing=(4,)), ReadbackResult.TOUCHED, id="ours removes a new one"
        ),
        pytest.param(replace(DONE, adding=(3,)), ReadbackResult.TOUCHED, id="ours adds a lost replica"),
        pytest.param(replace(DONE, removing=(3,)), ReadbackResult.MOVING_ON, id="a replica is being removed"),
        pytest.param(replace(DONE, leader_epoch=1), ReadbackResult.OVERTAKEN, id="a new epoch under the same leader"),
        pytest.param(replace(DONE, leader_epoch=1, leader=2), ReadbackResult.DONE, id="a new epoch of a new leader"),
        pytest.param(replace(DONE, leader_epoch=1, isr=(1, 2)), ReadbackResult.DONE, id="a new epoch of a smaller ISR"),
    ],
)
def test_what_a_read_after_the_reorder_says(after: Partition | None, seen: ReadbackResult):
    assert verify(MOVE, partition(), after) is seen


def test_where_epochs_are_unknown_nothing_is_overtaken():
    assert verify(MOVE, replace(partition(), leader_epoch=-1), replace(DONE, leader_epoch=5)) is ReadbackResult.DONE


@pytest.mark.parametrize(
    ("after", "seen"),
    [
        pytest.param(DONE, ReadbackResult.DONE, id="metadata shows the order and not yet the leader"),
        pytest.param(replace(DONE, leader=2, leader_epoch=1), ReadbackResult.DONE, id="the epoch of our election"),
        pytest.param(replace(DONE, leader_epoch=1), ReadbackResult.OVERTAKEN, id="a new epoch under the same leader"),
        pytest.param(replace(DONE, leader=2, leader_epoch=2), ReadbackResult.OVERTAKEN, id="one epoch too many"),
        pytest.param(replace(DONE, leader=3, leader_epoch=2), ReadbackResult.DONE, id="another leader since"),
        pytest.param(replace(DONE, leader=2, leader_epoch=2, isr=(2, 3)), ReadbackResult.DONE, id="the old one left"),
    ],
)
def test_our_own_election_explains_one_epoch_and_no_more(after: Partition, seen: ReadbackResult):
    assert verify(MOVE, partition(), after, elected=True) is seen


def test_an_election_that_changed_no_leader_explains_no_epoch():
    led = partition(leader=2)
    assert verify(MOVE, led, replace(DONE, leader=2, leader_epoch=1), elected=True) is ReadbackResult.OVERTAKEN


@pytest.mark.parametrize(
    ("fact", "ready"),
    [
        pytest.param(partition(), True, id="led by another"),
        pytest.param(DONE, True, id="in its order already, and led by another"),
        pytest.param(partition(leader=None), True, id="leaderless"),
        pytest.param(partition(leader=2), False, id="led by the first already"),
        pytest.param(partition(isr=(1, 3)), False, id="the first is not in the ISR"),
    ],
)
def test_the_first_is_elected_only_where_it_is_in_sync(fact: Partition, ready: bool):
    assert can_elect(MOVE, fact) is ready
    assert not can_elect(MOVE._replace(elect=False), fact)


@pytest.mark.parametrize(
    ("now", "cancelled", "said"),
    [
        pytest.param(None, False, "the topic was deleted at the same time", id="gone"),
        pytest.param(
            replace(DONE, topic_id="another"), False, "the topic was recreated at the same time", id="another"
        ),
        pytest.param(
            partition(replicas=[1, 2, 3, 4]), True, "now [1, 2, 3, 4]; the reassignment was cancelled", id="undone"
        ),
        pytest.param(
            partition(replicas=[1, 2]), False, "now [1, 2]; there was no reassignment to cancel", id="too late"
        ),
        pytest.param(DONE, True, "our reorder overrode a reassignment that another tool had started", id="overridden"),
    ],
)
def test_a_changed_replica_set_is_reported_with_before_and_after(now: Partition | None, cancelled: bool, said: str):
    assert said in replica_set_changed_message(MOVE, partition(), now, cancelled=cancelled)


def test_an_overtaken_reassignment_is_reported_with_its_epochs():
    assert_wording(overtaken_message(partition(), replace(DONE, leader_epoch=2)))


def test_a_leader_that_is_no_longer_named_holds_its_move():
    found = precheck([MOVE], [partition(leader_unknown=True)])
    assert (found.moves, [h.reason for h in found.holds]) == ((), [Reason.LISTENER_MISSING])


@pytest.mark.parametrize(
    ("leader", "minutes", "seen", "kept"), [(1, 4, 0, True), (1, 5, 0, False), (2, 4, 1, False), (3, 4, 0, False)]
)
def test_an_election_that_is_never_seen_is_forgotten(leader: int, minutes: int, seen: int, kept: bool):
    unseen = {MOVE.key: UnseenElection(1, 2, START)}
    cluster = Cluster("any", partitions=(partition(leader=leader),))
    found = seen_late(unseen, cluster, START + timedelta(minutes=minutes))
    assert found == (seen, unseen if kept else {})
