"""What a killed, frozen or contested run left behind: every state of an entry against every observed order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.execution.recovery import (
    RecoveredRecord,
    project_baseline,
    recover,
    set_aside,
    topics_to_reread,
    with_overwritten,
)
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.refusals import CONTEST_LONGEST_SECONDS
from bellwether.core.model.undo_record import RESTORE_TIMEOUT, EntryState, SentOrder, UndoEntry, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from testkit.values.builders import after, cluster, demoted, entry, partition, record

HOME, AWAY, EARLIER, LATE, FOREIGN = (1, 2, 3), (2, 3, 1), (3, 2, 1), (3, 1, 2), (2, 1, 3)
INTENDED, DISPLACED, RESTORING, RESTORED = EntryState
GRACE = 20.0
NOW = after(100)
KEY = partition().key


def recovered(
    known: UndoEntry, seen: Partition | None, *brokers: int, living: Cluster | None = None
) -> RecoveredRecord:
    found = living or cluster(*([seen] if seen else []), brokers=4)
    return recover(record({KEY: known}, *(demoted(b) for b in brokers)), found, NOW, GRACE)


def entry_of(found: RecoveredRecord) -> UndoEntry | None:
    return found.record.entries.get(KEY)


@pytest.mark.parametrize(
    ("state", "observed", "becomes", "note"),
    [
        pytest.param(INTENDED, AWAY, DISPLACED, None, id="intended, and it arrived"),
        pytest.param(INTENDED, HOME, INTENDED, None, id="intended, and not sent or not arrived"),
        pytest.param(INTENDED, EARLIER, INTENDED, None, id="intended, the order before it is there"),
        pytest.param(INTENDED, LATE, INTENDED, None, id="intended, a late reorder overtook it"),
        pytest.param(INTENDED, FOREIGN, DISPLACED, Reason.ORDER_OVERWRITTEN, id="intended, a foreign order is there"),
        pytest.param(DISPLACED, AWAY, DISPLACED, None, id="displaced, and its order is there"),
        pytest.param(DISPLACED, HOME, DISPLACED, Reason.ORDER_OVERWRITTEN, id="displaced, and put back"),
        pytest.param(DISPLACED, LATE, INTENDED, None, id="displaced, a late reorder overwrote it"),
        pytest.param(
            DISPLACED, EARLIER, DISPLACED, Reason.ORDER_OVERWRITTEN, id="displaced, the order before ours is back"
        ),
        pytest.param(DISPLACED, FOREIGN, DISPLACED, Reason.ORDER_OVERWRITTEN, id="displaced, a foreign order is there"),
        pytest.param(RESTORING, HOME, RESTORED, None, id="restoring, and it arrived"),
        pytest.param(RESTORING, AWAY, RESTORING, None, id="restoring, and not arrived"),
        pytest.param(RESTORING, LATE, RESTORING, None, id="restoring, a late reorder overtook it"),
        pytest.param(RESTORING, FOREIGN, DISPLACED, Reason.ORDER_OVERWRITTEN, id="restoring, a foreign order is there"),
        pytest.param(RESTORED, HOME, RESTORED, None, id="restored, and its order is there"),
        pytest.param(RESTORED, LATE, RESTORING, None, id="restored, a late reorder displaced it again"),
        pytest.param(RESTORED, AWAY, RESTORED, Reason.ORDER_OVERWRITTEN, id="restored, what we undid is back"),
        pytest.param(RESTORED, FOREIGN, RESTORED, Reason.ORDER_OVERWRITTEN, id="restored, a foreign order is there"),
    ],
)
def test_every_state_meets_every_order(
    state: EntryState, observed: tuple[int, ...], becomes: EntryState | None, note: Reason | None
):
    back = state in (RESTORING, RESTORED)
    known = entry(
        baseline=HOME,
        written=HOME if back else AWAY,
        replaced={INTENDED: EARLIER, RESTORING: AWAY}.get(state),
        outstanding=[(LATE, 3)],
        state=state,
        finished_at=after(99) if state is RESTORED else None,
    )
    found = recovered(known, partition(replicas=observed), 1)
    now = entry_of(found)
    assert (now.state if now else None) is becomes
    assert [n.reason for n in found.notes] == ([note] if note else [])
    if now is not None:
        theirs = note is not None and observed != HOME
        assert now.baseline == (observed if theirs else HOME)
        assert now.may_arrive(LATE)


def test_a_settled_record_is_left_as_it_is():
    known = record({KEY: entry()}, demoted(1))
    assert recover(known, cluster(partition(replicas=AWAY)), NOW, GRACE).record is known


def test_a_foreign_order_without_demotions_becomes_the_baseline():
    found = recovered(entry(), partition(replicas=FOREIGN))
    assert entry_of(found) is None
    assert "becomes the baseline" in found.notes[0].message


def test_foreign_order_becomes_baseline_and_drops_ours():
    known = entry(state=INTENDED, replaced=EARLIER)
    now = entry_of(recovered(known, partition(replicas=FOREIGN), 1))
    assert now is not None
    assert (now.baseline, now.written, now.replaced) == (FOREIGN, FOREIGN, None)


def test_order_that_comes_in_middle_of_reassignment_is_not_judged():
    known = entry()
    found = recovered(known, partition(replicas=(*HOME, 4), adding=[4]), 1)
    assert (entry_of(found), found.notes) == (known, ())


@pytest.mark.parametrize(
    ("seen", "again"),
    [
        pytest.param([partition(replicas=AWAY)], [], id="our order is in place"),
        pytest.param([partition(replicas=FOREIGN)], ["orders"], id="an order that is not ours may be old metadata"),
        pytest.param([partition(replicas=(*HOME, 4), adding=[4])], [], id="a reassignment is not judged"),
        pytest.param([partition("logs")], ["orders"], id="a missing topic may be one that we may not describe"),
    ],
)
def test_topics_are_read_once_more_before_a_conclusion_is_drawn(seen: list[Partition], again: list[str]):
    assert sorted(topics_to_reread(record({KEY: entry(written=AWAY)}), cluster(*seen, brokers=4))) == again


@pytest.mark.parametrize(
    ("state", "written", "astray"),
    [
        pytest.param(INTENDED, HOME, True, id="it leads to the order that we set out to write"),
        pytest.param(RESTORING, HOME, True, id="it leads to the baseline that we set out to write"),
        pytest.param(INTENDED, AWAY, False, id="it leads to another order"),
        pytest.param(DISPLACED, HOME, False, id="our order was seen before it"),
        pytest.param(RESTORED, HOME, False, id="a tombstone asks for nothing"),
        pytest.param(DISPLACED, LATE, True, id="it leads to an order that is outstanding"),
        pytest.param(RESTORED, LATE, True, id="restored, and it leads to an order that is outstanding"),
    ],
)
def test_reassignment_that_unseen_reorder_of_ours_became_is_astray(
    state: EntryState, written: tuple[int, ...], astray: bool
):
    known = entry(written=written, state=state, outstanding=[(LATE, 3)])
    moving = partition(replicas=(*(LATE if written == LATE else HOME), 4), removing=[4])
    assert recovered(known, moving, 1).strays == ((moving,) if astray else ())


class TestOutstanding:
    @pytest.mark.parametrize("state", [INTENDED, RESTORING])
    def test_reorder_whose_order_is_seen_may_take_effect_once_more(self, state: EntryState):
        written = HOME if state is RESTORING else AWAY
        known = entry(written=written, state=state, outstanding=[(written, 2), (LATE, 3)])
        now = entry_of(recovered(known, partition(replicas=written), 1))
        assert now is not None
        assert (now.state, now.outstanding) == (RESTORED if state is RESTORING else DISPLACED, known.outstanding)

    def test_late_order_is_undone_until_its_broker_holds_nothing(self):
        stone = entry(written=HOME, state=RESTORED, finished_at=after(0), outstanding=[(LATE, 3)])
        for _ in range(2):
            late = recovered(stone, partition(replicas=LATE), 4)
            undoing = entry_of(late)
            assert undoing is not None
            assert (undoing.baseline, undoing.written, undoing.state, late.notes) == (HOME, HOME, RESTORING, ())
            undone = entry_of(recovered(undoing, partition(replicas=HOME), 4))
            assert undone is not None
            assert (undone.state, undone.outstanding, undone.replaced) == (RESTORED, stone.outstanding, None)
            stone = undone
        living = cluster(partition(replicas=LATE), brokers=4)
        again = recover(record({KEY: stone}, demoted(4)), living, NOW, GRACE, None, frozenset({3}))
        assert [note.reason for note in again.notes] == [Reason.ORDER_OVERWRITTEN]

    def test_a_late_restoration_is_no_contest(self):
        found = recovered(entry(outstanding=[(HOME, 3)]), partition(replicas=HOME), 1)
        now = entry_of(found)
        assert now is not None
        assert (now.state, now.written, now.contests, found.notes) == (INTENDED, AWAY, 0, ())

    def test_order_of_another_tool_is_kept_against_what_is_outstanding(self):
        found = recovered(entry(outstanding=[(LATE, 3)]), partition(replicas=FOREIGN))
        kept = entry_of(found)
        assert kept is not None
        assert (kept.baseline, kept.state) == (FOREIGN, RESTORED)
        undoing = entry_of(recovered(kept, partition(replicas=LATE)))
        assert undoing is not None
        assert (undoing.baseline, undoing.written, undoing.state) == (FOREIGN, FOREIGN, RESTORING)


class TestContests:
    def contested(self, known: UndoEntry) -> UndoEntry:
        now = entry_of(recovered(known, partition(replicas=HOME), 1))
        assert now is not None
        return now

    def test_the_first_is_counted_and_timed(self):
        now = self.contested(entry())
        assert (now.contests, now.contested_at, now.written) == (1, NOW, HOME)

    def test_the_next_adds_up(self):
        assert self.contested(replace(entry(), contests=3, contested_at=after(50))).contests == 4

    def test_after_a_long_pause_contests_count_from_one(self):
        old = after(100 - CONTEST_LONGEST_SECONDS)
        assert self.contested(replace(entry(), contests=9, contested_at=old)).contests == 1


class TestMissingTopics:
    def test_partition_that_metadata_does_not_name_is_kept_for_while(self):
        first = entry_of(recovered(entry(), None, 1))
        assert first == entry(finished_at=NOW)
        early = replace(first, finished_at=after(100 - GRACE + 0.1))
        assert entry_of(recovered(early, None, 1)) == early

    def test_then_its_baseline_is_dropped_and_named(self):
        found = recovered(entry(finished_at=after(100 - GRACE)), None, 1)
        assert entry_of(found) is None
        note = found.notes[0]
        assert (note.reason, note.topic, note.partition) == (Reason.CHANGED_SINCE_PLAN, "orders", 0)
        assert "[1,2,3]" in note.message

    def test_it_is_kept_while_any_reorder_is_outstanding(self):
        gone = entry(finished_at=after(-(10**6)), outstanding=[(AWAY, 2)])
        assert entry_of(recovered(gone, None, 1)) == gone

    def test_one_that_is_back_is_as_it_was(self):
        assert entry_of(recovered(entry(finished_at=after(90)), partition(replicas=AWAY), 1)) == entry()

    def test_a_topic_of_the_same_name_is_another_one(self):
        again = cluster(partition(topic_id="another"), brokers=4)
        assert entry_of(recovered(entry(finished_at=after(0)), None, 1, living=again)) is None

    def test_a_renamed_topic_keeps_its_baseline(self):
        renamed = partition("new", topic_id=KEY.topic_id, replicas=AWAY)
        now = entry_of(recovered(entry("old"), renamed, 1))
        assert now is not None
        assert now.topic == "new"


class TestTombstones:
    def stone(self, seconds: float) -> UndoEntry:
        return entry(written=HOME, state=RESTORED, finished_at=after(100 - seconds))

    @pytest.mark.parametrize(
        ("seen", "age", "kept"),
        [
            pytest.param(partition(), 19.9, True, id="another broker's metadata may be behind"),
            pytest.param(partition(), 20.0, False, id="every broker shows it by now"),
            pytest.param(partition(leader=2), 99.0, True, id="its preferred leader lives and does not lead yet"),
            pytest.param(partition(leader=2, isr=[2, 3]), 99.0, True, id="it is not in sync yet"),
            pytest.param(partition(leader=2), RESTORE_TIMEOUT.total_seconds(), True, id="there is time left"),
            pytest.param(partition(leader=2), RESTORE_TIMEOUT.total_seconds() + 1, False, id="time is up"),
        ],
    )
    def test_one_is_kept_as_long_as_it_is_of_use(self, seen: Partition, age: float, kept: bool):
        assert (entry_of(recovered(self.stone(age), seen)) is not None) is kept

    def test_one_is_kept_while_any_reorder_is_outstanding(self):
        stone = replace(self.stone(10**6), outstanding=(SentOrder(AWAY, 2),))
        assert entry_of(recovered(stone, partition())) == stone

    def test_one_is_dropped_when_asked_broker_holds_nothing_any_more(self):
        stone = replace(self.stone(10**6), outstanding=(SentOrder(AWAY, 2),))
        found = recover(record({KEY: stone}), cluster(partition(), brokers=4), NOW, GRACE, None, {2})
        assert found.record.entries == {}

    def test_a_dead_preferred_leader_is_not_waited_for(self):
        gone = cluster(partition(leader=2, isr=[2, 3]), brokers=[2, 3])
        assert entry_of(recovered(self.stone(99), None, living=gone)) is None

    def test_one_of_another_replica_set_is_dropped_in_silence(self):
        found = recovered(self.stone(1), partition(replicas=[1, 2, 4]))
        assert (entry_of(found), found.notes) == (None, ())

    def test_other_replica_set_is_kept_while_reorder_is_outstanding(self):
        stone = replace(self.stone(1), outstanding=(SentOrder(AWAY, 2),))
        now = entry_of(recovered(stone, partition(replicas=[1, 2, 4])))
        assert now is not None
        assert (now.baseline, now.state, now.outstanding) == ((1, 2, 4), RESTORED, stone.outstanding)


@pytest.mark.parametrize(
    ("baseline", "placed", "becomes"),
    [
        pytest.param((1, 2, 3), (2, 3, 1), (1, 2, 3), id="the same set"),
        pytest.param((1, 2, 3), (2, 3, 4), (2, 3, 4), id="one replaced by a newcomer at the end"),
        pytest.param((1, 2, 3), (4, 3, 1), (4, 1, 3), id="a new replica keeps its place"),
        pytest.param((1, 2, 3), (3, 2, 1, 4), (1, 2, 3, 4), id="RF raised"),
        pytest.param((1, 2, 3), (3, 1), (1, 3), id="RF lowered"),
        pytest.param((1, 2), (3, 4), (3, 4), id="no replica survives"),
        pytest.param((3, 1, 2), (1, 5, 2), (1, 5, 2), id="survivors keep their relative order"),
    ],
)
def test_a_baseline_is_projected_on_another_set(
    baseline: tuple[int, ...], placed: tuple[int, ...], becomes: tuple[int, ...]
):
    assert project_baseline(baseline, placed) == becomes


def test_another_replica_set_projects_the_baseline_and_is_named():
    found = recovered(entry(), partition(replicas=[2, 3, 1, 4]), 1)
    now = entry_of(found)
    assert now is not None
    assert (now.baseline, now.written, now.state) == ((1, 2, 3, 4), (2, 3, 1, 4), DISPLACED)
    assert found.notes[0].reason is Reason.CHANGED_SINCE_PLAN
    assert "from [1,2,3] to [1,2,3,4]" in found.notes[0].message


def test_who_is_demoted_and_under_which_epoch_is_kept():
    before = record({KEY: entry(finished_at=after(0))}, demoted(1), epoch=9)
    found = recover(before, cluster(), NOW, GRACE).record
    assert found == UndoRecord(before.cluster_id, 9, before.demoted, {})


class TestPreferredRacks:
    """No broker is demoted, and the order is the racks'."""

    WISH = Placement(Preference(("a",)))

    def found(self, known: UndoEntry, seen: Partition, wish: Placement | None) -> RecoveredRecord:
        return recover(record({KEY: known}), cluster(seen, brokers=4), NOW, GRACE, wish)

    def test_foreign_order_becomes_the_baseline_and_counts_as_a_contest(self):
        after_it = entry_of(self.found(entry(), partition(replicas=FOREIGN), self.WISH))
        assert after_it is not None
        assert (after_it.baseline, after_it.contests, after_it.state) == (FOREIGN, 1, DISPLACED)

    def test_where_nothing_is_wanted_for_the_topic_it_is_theirs(self):
        other = Placement(rules=(TopicRule("payments", Preference(("a",))),))
        assert entry_of(self.found(entry(), partition(replicas=FOREIGN), other)) is None

    def test_a_restored_old_order_counts_as_a_contest(self):
        found = self.found(entry(), partition(replicas=HOME), self.WISH)
        assert [n.reason for n in found.notes] == [Reason.ORDER_OVERWRITTEN]


def test_settled_record_is_not_compared_with_same_cluster_again():
    seen = cluster(partition(replicas=AWAY))
    found = recovered(entry(baseline=HOME, written=AWAY, state=DISPLACED), None, living=seen)
    assert found.repeats(found.record, seen)
    assert not found.repeats(found.record, replace(seen))
    assert not found.repeats(replace(found.record, entries=dict(found.record.entries)), seen)


@pytest.mark.parametrize(
    "known",
    [
        entry(baseline=HOME, written=AWAY, state=INTENDED),
        entry(baseline=HOME, written=AWAY, state=DISPLACED, outstanding=(SentOrder(LATE, 1),)),
        entry(baseline=HOME, written=AWAY, state=RESTORED, finished_at=NOW),
        entry(baseline=HOME, written=LATE, state=DISPLACED),
    ],
    ids=["not seen before", "outstanding", "tombstone", "overwritten"],
)
def test_record_with_entry_that_may_change_is_compared_each_time(known: UndoEntry):
    seen = cluster(partition(replicas=AWAY))
    found = recovered(known, None, living=seen)
    assert not found.repeats(found.record, seen)


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
