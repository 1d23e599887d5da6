"""A rebalance plan where racks are preferred: it moves leaders within them, and never fights them."""

from __future__ import annotations

from dataclasses import replace

from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.undo_record import ApplicationEnd, UndoRecord
from bellwether.core.planning.plan import build_plan
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import Policy
from bellwether.core.waves.approved_plan import RebalanceInput
from bellwether.core.waves.rebalance_waves import WaveResult, apply_next_wave
from testkit.loads.approved_plans import accepted, application, loadmove, policy
from testkit.values.builders import after, cluster, decisions, entry, partition, record, snapshot, verdicts

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
ORDERED = Placement(Preference(("a", "b")))
WEIGHTED = Placement(Preference(weights=(("a", 1), ("b", 1))))


def wishing(wish: Placement = ORDERED) -> Policy:
    return replace(policy(), placement=wish)


def seen_with(*partitions: Partition) -> Cluster:
    return cluster(*partitions, brokers=4, racks=RACKS)


def reconcile(
    seen: Cluster, *moves: Partition, to: int, undo: UndoRecord | None = None, by: Policy | None = None
) -> WaveResult:
    plan = accepted(*(loadmove(p, to) for p in moves))
    facts = snapshot(seen, undo=undo, now=after(0))
    return apply_next_wave(RebalanceInput(plan), Context(facts, verdicts(seen), by or wishing()), decisions())


def test_an_order_away_for_its_racks_is_no_unfinished_wave():
    away, free = partition(index=0, replicas=(1, 3)), partition(index=1, replicas=(1, 2, 3))
    undo = record({away.key: entry(baseline=(3, 1), written=(1, 3))})
    assert reconcile(seen_with(away, free), free, to=2, undo=undo).taken == 1


def test_one_whose_first_is_out_of_sync_holds_no_wave():
    """It may be out for days, as with a lost log directory; any replica that can lead leads until then."""
    behind, free = partition(index=0, replicas=(1, 2, 3), isr=(2, 3)), partition(index=1, replicas=(1, 2, 3))
    undo = record({behind.key: entry(baseline=(3, 1, 2), written=(1, 2, 3))})
    assert reconcile(seen_with(behind, free), free, to=2, undo=undo).taken == 1
    elected = replace(behind, isr=(1, 2, 3))
    waits = reconcile(seen_with(elected, free), free, to=2, undo=undo).waits
    assert waits is not None
    assert waits.reason is Reason.APPLYING


def test_one_without_room_in_its_rack_holds_no_wave():
    """Nor is it on its way home: the racks do not want its home to lead."""
    full, free = partition(index=0, replicas=(4, 1, 3)), partition(index=1, replicas=(1, 2, 3))
    undo = record({full.key: entry(baseline=(3, 1, 4), written=(4, 1, 3))})
    assert reconcile(seen_with(full, free), free, to=2, undo=undo).taken == 1


def test_its_new_baseline_keeps_those_behind_where_they_were():
    """The racks' own order of those behind is no order to go back to."""
    away = partition(replicas=(1, 2, 3, 4))
    before = replace(entry(baseline=(4, 1, 3, 2), written=(1, 2, 3, 4)), contests=2)
    found = reconcile(seen_with(away), away, to=2, undo=record({away.key: before})).record.entries[away.key]
    assert found == replace(before, baseline=(2, 4, 1, 3))


def test_the_planned_leader_leads_in_the_racks_order():
    away = partition(replicas=(1, 2, 3, 4))
    undo = record({away.key: entry(baseline=(4, 1, 3, 2), written=(1, 2, 3, 4))})
    seen = seen_with(away)
    after_it = reconcile(seen, away, to=2, undo=undo).record
    (move,) = build_plan(Context(snapshot(seen, undo=after_it), verdicts(seen), wishing()), decisions()).moves
    assert (move.order, move.elect) == ((2, 1, 4, 3), True)


def test_once_the_planned_leader_leads_the_plan_is_done():
    stands = partition(replicas=(2, 1, 4, 3))
    undo = record({stands.key: entry(baseline=(2, 4, 1, 3), written=(2, 1, 4, 3))})
    was = partition(replicas=(1, 2, 3, 4))
    undo = replace(undo, application=application(1, taken_up=1))
    done = reconcile(seen_with(stands), was, to=2, undo=undo).application
    assert done is not None
    assert (done.ended, done.left) == (ApplicationEnd.DONE, {})


def test_plan_that_wants_less_preferred_rack_to_lead_is_refused():
    """The preferred racks have changed since the plan was made, or the better rack has come back."""
    seen = partition(replicas=(1, 3))
    ended = reconcile(seen_with(seen), seen, to=3).application
    assert ended is not None
    assert ended.ended is ApplicationEnd.STALE
    assert ended.left == {Reason.CHANGED_SINCE_PLAN: 1}


def test_with_weights_plan_moves_leaders_only_within_their_rack():
    seen = partition(replicas=(1, 2, 3))
    assert reconcile(seen_with(seen), seen, to=2, by=wishing(WEIGHTED)).taken == 1
    across = reconcile(seen_with(seen), seen, to=3, by=wishing(WEIGHTED)).application
    assert across is not None
    assert across.left == {Reason.CHANGED_SINCE_PLAN: 1}


def test_with_weights_the_planned_leader_leads():
    seen = seen_with(partition(replicas=(1, 2, 3)))
    undo = reconcile(seen, *seen.partitions, to=2, by=wishing(WEIGHTED)).record
    (move,) = build_plan(Context(snapshot(seen, undo=undo), verdicts(seen), wishing(WEIGHTED)), decisions()).moves
    assert move.order == (2, 1, 3)
