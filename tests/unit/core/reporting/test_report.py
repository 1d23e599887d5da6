"""What a reconcile says: counts, samples, and the same words for the same news."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.cluster import Partition
from bellwether.core.model.refusals import Hold
from bellwether.core.model.restoration_waves import wave_position
from bellwether.core.model.undo_record import EntryState, UndoEntry
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import SAMPLE_SIZE, PlacementCounts, count_placements
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.core.settings.policy import Mode, Policy
from testkit.messages import assert_wording
from testkit.values.builders import (
    after,
    cluster,
    decisions,
    demoted,
    entry,
    move,
    partition,
    record,
    returning,
    said,
    snapshot,
    verdicts,
)

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)
OBSERVE = Policy(name="main", mode=Mode.OBSERVE)


def hold(index: int = 0, reason: Reason = Reason.ONLY_REPLICA, topic: str = "orders") -> Hold:
    return Hold(partition(topic, index).key, topic, reason, "so it is")


def test_a_held_run_counts_its_reasons():
    held = (hold(0), hold(1), hold(2, Reason.REASSIGNING))
    report = said(policy=ENFORCE, plan=Plan(holds=held))
    assert report.blocked_by_reason == {Reason.ONLY_REPLICA: 2, Reason.REASSIGNING: 1}
    assert_wording(report.condition("Ready").message)


def test_what_the_run_held_replaces_what_the_plan_held():
    late = hold(0, Reason.NO_ANSWER)
    assert said(plan=Plan(holds=(hold(0),)), result=ExecutionResult(holds=(late,))).held == (late,)


def test_a_status_names_a_bounded_sample_in_a_stable_order():
    held = [hold(i, topic=t) for t in ("zebra", "aardvark") for i in range(SAMPLE_SIZE)]
    forth, back = said(plan=Plan(holds=tuple(held))), said(plan=Plan(holds=tuple(held[::-1])))
    assert forth.held_sample == back.held_sample
    assert len(forth.held_sample) == SAMPLE_SIZE
    assert {h.topic for h in forth.held_sample} == {"aardvark"}


@pytest.mark.parametrize(
    ("policy", "shown", "would"),
    [
        pytest.param(ENFORCE, {1, 2}, (), id="enforcing, they are demoted"),
        pytest.param(OBSERVE, {1}, (2,), id="observing, one would be"),
        pytest.param(replace(ENFORCE, suspend=True), {1}, (2,), id="suspended, one would be"),
    ],
)
def test_demoted_are_actual_ones_and_not_candidates(policy: Policy, shown: set[int], would: tuple[int]):
    report = said(snapshot(undo=record(None, demoted(1))), policy, plan=Plan(decisions=decisions(1, 2)))
    assert {b.broker for b in report.brokers if b.demoted is not None} == shown
    assert report.would_demote == would


def test_displaced_partitions_and_leaders_out_of_place_are_counted():
    away = partition(replicas=[2, 3, 1])
    stays = partition(index=1, replicas=[2, 3, 1], leader=1)
    other = partition(index=2, leader=3)
    home = partition(index=3)
    undo = record(
        {away.key: entry(), stays.key: entry(), home.key: entry(written=(1, 2, 3), state=EntryState.RESTORED)}
    )
    report = said(snapshot(cluster(away, stays, other, home), undo=undo))
    assert (report.displaced, report.leaders_out_of_place) == (2, 2)


def test_verdicts_are_counted_by_standing():
    seen = cluster(partition(), brokers=5)
    report = said(snapshot(seen), judged=verdicts(seen, sick=[1], unknown=[2, 3]))
    counts = {s: n for s, n in report.states.items() if n}
    assert counts == {HealthState.HEALTHY: 2, HealthState.SICK: 1, HealthState.UNKNOWN: 2}


def test_the_same_news_makes_the_same_report_whatever_the_time():
    first, later = said(snapshot(now=after(0))), said(snapshot(now=after(999)))
    assert replace(first, now=after(999)) == later


@pytest.mark.parametrize(
    ("plan", "result", "settled"),
    [
        pytest.param(Plan(), ExecutionResult(), True, id="nothing to do"),
        pytest.param(Plan(holds=(hold(),)), ExecutionResult(), True, id="what is held is not to do"),
        pytest.param(Plan((move(),)), ExecutionResult(), False, id="a move is left"),
        pytest.param(Plan(), ExecutionResult(elected=1), False, id="something was done, so look again"),
    ],
)
def test_settled_is_when_nothing_is_left_to_do(plan: Plan, result: ExecutionResult, settled: bool):
    assert said(plan=plan, result=result).settled is settled


def test_reports_of_brokers_that_did_not_change_are_same_objects():
    first = said()
    assert said(last=first).brokers is first.brokers
    later = said(judged=verdicts(cluster(partition()), sick=[2]), last=first)
    kept = [before is now for before, now in zip(first.brokers, later.brokers, strict=True)]
    assert kept == [True, False, True]


def test_broker_that_is_gone_changes_reports_of_no_other():
    first = said(snapshot(cluster(partition(), brokers=4)))
    later = said(last=first)
    assert later.brokers == first.brokers[:3]
    assert all(before is now for before, now in zip(first.brokers, later.brokers, strict=False))


RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
IN_A = Policy(name="main", mode=Mode.ENFORCE, placement=Placement(Preference(("a",))))
ANYWHERE = replace(IN_A, placement=None)
AWAY = partition(replicas=(1, 3, 4))
FROM_B = entry(baseline=(3, 1, 4), written=(1, 3, 4))


def found(
    seen: Partition = AWAY,
    undo: UndoEntry = FROM_B,
    policy: Policy = IN_A,
    decided: Decisions | None = None,
    racks: dict[int, str] | None = None,
) -> PlacementCounts:
    """The counts that the real plan of one partition comes to."""
    facts = snapshot(cluster(seen, brokers=4, racks=racks or RACKS), undo=record({seen.key: undo}))
    judged = Context(facts, verdicts(facts.cluster), policy)
    return count_placements(judged, build_plan(judged, decided or decisions()))


def test_partitions_away_for_their_racks_are_counted_apart():
    assert found() == PlacementCounts(displaced=1, for_racks=1, leaders_out_of_place=0)


def test_without_preferred_racks_it_is_out_of_place():
    assert found(policy=ANYWHERE) == PlacementCounts(displaced=1, for_racks=0, leaders_out_of_place=1)


def test_a_topic_without_preferred_racks_is_out_of_place():
    elsewhere = replace(IN_A, placement=Placement(rules=(TopicRule("other", Preference(("a",))),)))
    assert found(policy=elsewhere).for_racks == 0


def test_with_weights_it_stays_where_its_rack_has_its_share():
    wish = Placement(Preference(weights=(("a", 1), ("b", 1))))
    assert found(policy=replace(IN_A, placement=wish)).for_racks == 1


def test_with_an_unknown_rack_of_its_first_replica_it_stays():
    assert found(racks={1: "a", 2: "a", 4: "b"}).for_racks == 1


def test_partition_that_may_lead_in_own_rack_is_to_return():
    home = entry(baseline=(1, 2, 3), written=(2, 1, 3))
    assert found(partition(replicas=(2, 1, 3)), home) == PlacementCounts(1, 0, 1)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(replace(AWAY, leader=3), id="led by another than its first"),
        pytest.param(replace(AWAY, adding=(2,)), id="being reassigned"),
        pytest.param(replace(AWAY, leader=None, isr=()), id="without a leader"),
    ],
)
def test_misplaced_partitions_do_not_count_as_placed(seen: Partition):
    assert (found(seen).displaced, found(seen).for_racks) == (1, 0)


def test_what_a_demotion_displaced_is_the_demotions():
    assert found(decided=decisions(4)).for_racks == 0
    assert found(decided=decisions(2)).for_racks == 1


@pytest.mark.parametrize(("share", "for_racks"), [(0, 0), (99, 0), (100, 1)])
def test_partition_awaiting_later_wave_is_not_in_final_place(share: int, for_racks: int):
    # Its turn among the waves is 99, the last one.
    last = partition(
        index=next(i for i in range(1000) if wave_position(partition(index=i).key) >= 99), replicas=(1, 3, 4)
    )
    assert found(last, decided=decisions(back=[returning(4, share)])).for_racks == for_racks


def test_a_policy_that_goes_gives_everything_back():
    assert found(decided=replace(decisions(), policy_deleted=True)).for_racks == 0


def test_hold_for_lack_of_room_is_not_counted_for_racks():
    facts = snapshot(cluster(AWAY, brokers=4, racks=RACKS), undo=record({AWAY.key: FROM_B}))
    judged = Context(facts, verdicts(facts.cluster), IN_A)
    plan = build_plan(judged, decisions())
    hold = Hold(AWAY.key, "orders", Reason.CAPACITY_REACHED, "x")
    held = replace(plan, holds=(hold,), targets={AWAY.key: AWAY.replicas}, resting=0)
    assert (count_placements(judged, plan).for_racks, count_placements(judged, held).for_racks) == (1, 0)
