"""An approved rebalance plan becomes baselines, wave by wave; what changed meanwhile is left out and named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Cluster, PartitionKey
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.snapshot import RefusedOrder
from bellwether.core.model.undo_record import ApplicationEnd, EntryState, SkippedPartition, UndoEntry, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceInput
from bellwether.core.waves.rebalance_waves import WaveResult, apply_next_wave
from bellwether.simulation.memory_world import START
from testkit.loads.approved_plans import DIGEST, accepted, application, loadmove, policy, settings
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, decisions, entry, partition, record, returning, snapshot, verdicts

FIRST = partition(index=0, replicas=(1, 2, 3))
SECOND = partition(index=1, replicas=(2, 3, 1))
THIRD = partition(index=2, replicas=(3, 1, 2))
ALL = cluster(FIRST, SECOND, THIRD)
MOVES = (loadmove(FIRST), loadmove(SECOND), loadmove(THIRD))
RAISED = partition(replicas=(2, 1, 3), leader=2)
"""The first partition as the plan wants it."""


def reconcile(
    plan: ApprovedPlan | None = None,
    seen: Cluster = ALL,
    undo: UndoRecord | None = None,
    *,
    seconds: float = 0,
    by: Policy | None = None,
    demoted: tuple[int, ...] = (),
    superseded: str = "",
    refused: Mapping[PartitionKey, RefusedOrder] | None = None,
    **standings: Any,
) -> WaveResult:
    facts = replace(snapshot(seen, undo=undo, now=after(seconds)), refused=refused or {})
    rebalance_input = RebalanceInput(accepted(*MOVES) if plan is None else plan, superseded)
    return apply_next_wave(
        rebalance_input, Context(facts, verdicts(seen, **standings), by or policy()), decisions(*demoted)
    )


def test_the_first_wave_records_the_original_order_as_baseline():
    done = reconcile(accepted(MOVES[0]))
    assert done.taken == 1
    assert done.record.entries == {FIRST.key: UndoEntry("orders", (2, 1, 3), (1, 2, 3), state=EntryState.DISPLACED)}
    assert done.application == application(1, taken_up=1)


def test_wave_takes_its_share_and_next_continues_behind_it():
    by = policy(settings(partitions=2))
    first = reconcile(by=by)
    assert sorted(first.record.entries) == [FIRST.key, SECOND.key]
    stands = cluster(RAISED, partition(index=1, replicas=(3, 2, 1), leader=3), THIRD)
    quiet = replace(first.record, entries={})
    second = reconcile(seen=stands, undo=quiet, by=by, seconds=1)
    assert sorted(second.record.entries) == [THIRD.key]
    assert second.application == application(3, taken_up=3, waved_at=after(1))


def test_next_wave_waits_for_pause_and_says_when_it_comes():
    by, standing = policy(settings(pause_seconds=30)), record()
    waiting = reconcile(undo=replace(standing, application=application(3, taken_up=1)), by=by, seconds=12)
    assert waiting.waits is not None
    assert (waiting.waits.reason, waiting.taken, waiting.again_seconds) == (Reason.APPLYING, 0, 18.0)
    assert reconcile(undo=replace(standing, application=application(3, taken_up=1)), by=by, seconds=29.5).taken == 0
    assert reconcile(undo=replace(standing, application=application(3, taken_up=1)), by=by, seconds=30).taken == 2


def test_the_first_wave_waits_for_no_pause():
    assert reconcile(by=policy(settings(pause_seconds=3600))).taken == 3


def test_the_next_wave_waits_until_the_last_one_is_done():
    undo = record({FIRST.key: entry(baseline=(2, 1, 3), written=(1, 2, 3))})
    waiting = reconcile(undo=replace(undo, application=application(3, taken_up=1)), seconds=100)
    assert waiting.waits is not None
    assert waiting.waits.reason is Reason.APPLYING
    assert "orders-0" in waiting.waits.message
    assert waiting.record.application == application(3, taken_up=1)


def test_partition_that_guard_holds_back_is_not_waited_for():
    """It may take hours to be reassigned."""
    moving = partition(replicas=(1, 2, 3), adding=(4,))
    undo = record({FIRST.key: entry(baseline=(2, 1, 3), written=(1, 2, 3))})
    undo = replace(undo, application=application(3, taken_up=1))
    assert reconcile(seen=cluster(moving, SECOND, THIRD), undo=undo).taken == 2


@pytest.mark.parametrize("undo", [None, replace(record(), application=application(3, taken_up=1))])
def test_no_wave_starts_where_no_leader_can_move(undo: UndoRecord | None):
    waiting = reconcile(seen=replace(ALL, immovable="Grant this user the ACL Alter on Cluster"), undo=undo, seconds=100)
    assert waiting.waits == Refusal(Reason.REQUEST_REFUSED, "waits: Grant this user the ACL Alter on Cluster")
    assert waiting.record == (undo or record())


def test_an_order_that_kafka_refuses_is_not_waited_for():
    undo = record({FIRST.key: entry(baseline=(2, 1, 3), written=(1, 2, 3))})
    undo = replace(undo, application=application(3, taken_up=1))
    refused = {FIRST.key: RefusedOrder((2, 1, 3), 1, START, "CLUSTER_AUTHORIZATION_FAILED")}
    assert reconcile(undo=undo, refused=refused).taken == 2


def test_a_tombstone_is_not_waited_for():
    tombstone = entry(baseline=(2, 1, 3), written=(2, 1, 3), state=EntryState.RESTORED, finished_at=START)
    undo = replace(record({FIRST.key: tombstone}), application=application(3, taken_up=1))
    assert reconcile(seen=cluster(RAISED, SECOND, THIRD), undo=undo).taken == 2


@pytest.mark.parametrize("standing", ["sick", "down", "suspect", "recovering", "unknown"])
def test_no_wave_starts_while_formerly_well_broker_is_not(standing: str):
    waiting = reconcile(**{standing: [3]})
    assert waiting.waits is not None
    assert waiting.waits.reason is Reason.ANOTHER_BROKER_UNHEALTHY
    assert_wording(waiting.waits.message)
    assert waiting.record == record()


def test_no_wave_is_taken_up_in_reconcile_that_demotes_broker():
    waiting = reconcile(demoted=(3,))
    assert waiting.waits is not None
    assert_wording(waiting.waits.message)


def test_broker_unable_to_lead_at_planning_stops_nothing():
    assert reconcile(accepted(MOVES[0], closed=[3]), sick=[3]).taken == 1


@pytest.mark.parametrize(("registered", "taken"), [(3, 1), (4, 0)])
def test_down_broker_before_its_return_stops_nothing(registered: int, taken: int):
    """What waits for it may wait for ever; a way back that goes on ends within minutes."""
    away = partition(index=7, replicas=(1, 2, 4), isr=(1, 2))
    seen = cluster(FIRST, away, brokers=registered)
    undo = record({away.key: entry(baseline=(4, 1, 2), written=(1, 2, 4))})
    plan = RebalanceInput(accepted(MOVES[0], closed=[4]))
    facts = snapshot(seen, undo=undo, now=after(0))
    assert (
        apply_next_wave(plan, Context(facts, verdicts(seen), policy()), decisions(back=[returning(4, 0)])).taken
        == taken
    )


def test_without_any_healthy_broker_unknown_ones_do_not_block():
    assert reconcile(unknown=[1, 2, 3]).taken == 3


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        (replace(policy(), mode=Mode.OBSERVE), Reason.NOT_ENFORCING),
        (replace(policy(), suspend=True), Reason.NOT_ENFORCING),
    ],
)
def test_inactive_policy_starts_no_wave_and_says_so(by: Policy, reason: Reason):
    waiting = reconcile(by=by)
    assert waiting.waits is not None
    assert (waiting.waits.reason, waiting.record) == (reason, record())


def test_without_a_plan_and_without_rebalancing_nothing_changes():
    undo = replace(record(), application=application(3, taken_up=1))
    facts = snapshot(ALL, undo=undo)
    assert apply_next_wave(RebalanceInput(), Context(facts, verdicts(ALL), policy()), decisions()) == WaveResult(undo)
    assert reconcile(undo=undo, by=replace(policy(), rebalance=None)) == WaveResult(undo)


OTHER_ID = partition(topic_id="id-of-another-orders")
MANY = tuple(partition("many", i, (1, 2, 3)) for i in range(10))


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        pytest.param((), Reason.CHANGED_SINCE_PLAN, id="its topic is gone"),
        pytest.param((OTHER_ID,), Reason.CHANGED_SINCE_PLAN, id="its topic was made again"),
        pytest.param((partition(replicas=(1, 2, 4)),), Reason.CHANGED_SINCE_PLAN, id="its replicas are others"),
        pytest.param((partition(replicas=(3, 2, 1)),), Reason.CHANGED_SINCE_PLAN, id="reordered by another client"),
        pytest.param((partition(adding=(4,)),), Reason.REASSIGNING, id="it is being reassigned"),
        pytest.param((partition(isr=(1, 3)),), Reason.PREFERRED_NOT_IN_ISR, id="its leader-to-be is not in sync"),
    ],
)
def test_changes_since_planning_are_left_out_counted_and_named(instead: Any, reason: Reason):
    plan = accepted(loadmove(FIRST), *(loadmove(p) for p in MANY))
    done = reconcile(plan, cluster(*instead, *MANY, brokers=4))
    assert done.taken == 10
    assert FIRST.key not in done.record.entries
    assert [(h.topic, h.key, h.reason) for h in done.left] == [("orders", FIRST.key, reason)]
    assert done.application is not None
    assert done.application.left == {str(reason): 1}
    assert done.application.sample == (SkippedPartition("orders", 0, str(reason)),)
    assert done.application.left_load == 100


def test_what_names_a_removed_broker_is_left_out_as_kafka_refuses_its_order():
    done = reconcile(accepted(MOVES[0]), cluster(FIRST, removed=[3]))
    assert done.application is not None
    assert done.application.left == {"RemovedBroker": 1}


def test_planned_leader_unable_then_and_now_is_refused():
    plan = accepted(loadmove(FIRST), *(loadmove(p, to=3) for p in MANY), closed=[2])
    done = reconcile(plan, cluster(FIRST, *MANY), sick=[2])
    assert [(h.key, h.reason, h.message) for h in done.left] == [
        (FIRST.key, Reason.CHANGED_SINCE_PLAN, "broker 2 is Sick")
    ]


def test_a_partition_already_as_planned_is_neither_taken_nor_skipped():
    done = reconcile(accepted(*MOVES), cluster(RAISED, SECOND, THIRD))
    assert sorted(done.record.entries) == [SECOND.key, THIRD.key]
    assert done.left == ()


def test_a_planned_order_under_another_leader_is_taken_for_election():
    stands = partition(replicas=(2, 1, 3), leader=1)
    done = reconcile(accepted(MOVES[0]), cluster(stands))
    assert done.record.entries == {FIRST.key: UndoEntry("orders", (2, 1, 3), (2, 1, 3), state=EntryState.DISPLACED)}


def test_partition_without_leader_gets_order_and_so_leader():
    leaderless = partition(replicas=(1, 2, 3), leader=None)
    assert reconcile(accepted(loadmove(leaderless)), cluster(leaderless)).taken == 1


def test_displaced_partition_gets_new_home_and_stays_where_it_is():
    displaced = replace(entry(baseline=(1, 2, 3), written=(3, 2, 1), outstanding=[((2, 3, 1), 3)]), contests=2)
    seen = cluster(partition(replicas=(3, 2, 1)))
    done = reconcile(accepted(MOVES[0], closed=[1]), seen, record({FIRST.key: displaced}), demoted=(1,))
    assert done.record.entries == {FIRST.key: replace(displaced, baseline=(2, 1, 3))}


@pytest.mark.parametrize(("replicas", "replaced"), [((1, 2, 3), (1, 2, 3)), ((3, 2, 1), None)])
def test_order_before_reorder_that_is_not_seen_yet_is_kept(replicas: tuple[int, ...], replaced: tuple[int, ...] | None):
    intended = entry(baseline=(1, 2, 3), written=(3, 2, 1), state=EntryState.INTENDED)
    undo = record({FIRST.key: intended})
    done = reconcile(accepted(MOVES[0], closed=[1]), cluster(partition(replicas=replicas)), undo, demoted=(1,))
    assert done.record.entries == {FIRST.key: replace(intended, baseline=(2, 1, 3), replaced=replaced)}


def test_displaced_partition_with_another_home_is_left_out():
    displaced = entry(baseline=(3, 1, 2), written=(3, 2, 1))
    plan = accepted(MOVES[0], *(loadmove(p) for p in MANY), closed=[1])
    seen = cluster(partition(replicas=(3, 2, 1)), *MANY)
    done = reconcile(plan, seen, record({FIRST.key: displaced}), demoted=(1,))
    assert [h.reason for h in done.left] == [Reason.CHANGED_SINCE_PLAN]
    assert done.record.entries[FIRST.key] == displaced


def test_orders_that_may_still_arrive_late_stay_known():
    tombstone = entry(
        baseline=(1, 2, 3),
        written=(1, 2, 3),
        outstanding=[((3, 2, 1), 3)],
        state=EntryState.RESTORED,
        finished_at=START,
    )
    done = reconcile(accepted(MOVES[0]), cluster(FIRST), record({FIRST.key: tombstone}))
    made = done.record.entries[FIRST.key]
    assert (made.baseline, made.written, made.outstanding) == ((2, 1, 3), (1, 2, 3), (((3, 2, 1), 3),))
    assert made.finished_at is None


def test_recorded_but_uncounted_wave_is_not_started_twice():
    """Shards are written before the header that counts: a kill between them leaves this."""
    undo = reconcile(accepted(*MOVES)).record
    again = reconcile(accepted(*MOVES), undo=replace(undo, application=None), refused=_all_refused())
    assert again.record.entries == undo.entries
    assert again.taken == 0


def _all_refused() -> dict[PartitionKey, RefusedOrder]:
    return {m.key: RefusedOrder(m.order, 1, START, "not now") for m in MOVES}


def test_plan_of_which_much_changed_is_stale_before_moves():
    done = reconcile(accepted(*(loadmove(p) for p in MANY)), cluster(*MANY[3:]))
    assert done.taken == 0
    assert done.record.entries == {}
    assert done.application is not None
    assert done.application.ended is ApplicationEnd.STALE
    assert_wording(done.application.message)


def test_a_plan_whose_heaviest_move_cannot_be_made_is_stale():
    heavy = accepted(loadmove(MANY[0], load=1000), *(loadmove(p) for p in MANY[1:]))
    done = reconcile(heavy, cluster(*MANY[1:]))
    assert done.application is not None
    assert done.application.ended is ApplicationEnd.STALE


def test_a_fifth_may_be_left_out():
    done = reconcile(accepted(*(loadmove(p) for p in MANY)), cluster(*MANY[2:]))
    assert done.taken == 8


def test_a_plan_that_grows_stale_on_the_way_stops_there():
    plan = accepted(*(loadmove(p) for p in MANY))
    undo = replace(record(), application=application(10, taken_up=4))
    done = reconcile(plan, cluster(*MANY[:4]), undo)
    assert done.taken == 0
    assert done.application is not None
    assert (done.application.ended, done.application.taken_up) == (ApplicationEnd.STALE, 4)


def test_a_plan_that_is_too_old_is_not_begun():
    done = reconcile(seconds=86401)
    assert (done.taken, done.record.entries) == (0, {})
    assert done.application is not None
    assert done.application.ended is ApplicationEnd.STALE


def test_plan_too_old_does_not_continue_however_sick_the_cluster():
    undo = replace(record(), application=application(3, taken_up=1))
    done = reconcile(undo=undo, seconds=86401, sick=[1])
    assert done.application is not None
    assert done.application.ended is ApplicationEnd.STALE


def test_whole_plan_ends_when_too_old_despite_displaced_partitions():
    displaced = entry(baseline=(2, 1, 3), written=(3, 1, 2))
    undo = replace(record({FIRST.key: displaced}), application=application(1, taken_up=1))
    seen = cluster(partition(replicas=(3, 1, 2)))
    done = reconcile(accepted(MOVES[0]), seen, undo, seconds=86401, demoted=(2,))
    assert done.application is not None
    assert (done.application.ended, done.application.left) == (ApplicationEnd.DONE, {})


def test_the_end_counts_finished_moves_and_names_others():
    seen = cluster(RAISED, partition(index=1, replicas=(1, 2, 3)), *MANY)
    plan = accepted(MOVES[0], MOVES[1], *(loadmove(p, to=1) for p in MANY))
    undo = replace(record(), application=application(12, taken_up=12))
    done = reconcile(plan, seen, undo)
    assert done.application is not None
    assert done.application.ended is ApplicationEnd.DONE
    assert_wording(done.application.message)
    assert done.application.left == {"ChangedSincePlan": 1}
    assert done.application.sample == (SkippedPartition("orders", 1, "ChangedSincePlan"),)


def test_a_partition_that_went_back_to_its_old_order_is_named_and_not_fought_over():
    undo = replace(record(), application=application(1, taken_up=1))
    done = reconcile(accepted(MOVES[0]), cluster(FIRST), undo)
    assert done.record.entries == {}
    assert done.application is not None
    assert (done.application.ended, done.application.left) == (ApplicationEnd.DONE, {"ChangedSincePlan": 1})


def test_a_plan_that_has_ended_is_not_begun_again():
    undo = replace(record(), application=application(3, taken_up=3, ended=ApplicationEnd.DONE))
    assert reconcile(undo=undo) == WaveResult(undo)


def test_another_plan_takes_the_place_of_one_that_has_ended():
    undo = replace(
        record(), application=application(3, taken_up=3, ended=ApplicationEnd.STALE, left={"ChangedSincePlan": 1})
    )
    done = reconcile(accepted(*MOVES, digest="f" * 16), undo=undo)
    assert done.taken == 3
    assert done.application is not None
    assert (done.application.digest, done.application.left) == ("f" * 16, {})


def test_a_plan_that_another_supersedes_ends_where_it_is():
    undo = replace(record(), application=application(3, taken_up=1))
    done = reconcile(undo=undo, superseded=DIGEST)
    assert (done.taken, done.record.entries) == (0, {})
    assert done.application == application(
        3, taken_up=1, ended=ApplicationEnd.SUPERSEDED, message="Another plan was requested instead."
    )


def test_a_plan_without_moves_is_done_at_once():
    done = reconcile(accepted())
    assert done.application is not None
    assert done.application.ended is ApplicationEnd.DONE
