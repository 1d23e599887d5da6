"""What stands elsewhere than its baseline, and what of it stays so as the racks of the policy want it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.model.cluster import Partition
from bellwether.core.model.refusals import Hold
from bellwether.core.model.restoration_waves import wave_position
from bellwether.core.model.undo_record import UndoEntry
from bellwether.core.planning.plan import build_plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import PlacementCounts, count_placements
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.core.settings.policy import Mode, Policy
from testkit.values.builders import cluster, decisions, entry, partition, record, returning, snapshot, verdicts

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


def test_what_may_lead_in_its_own_rack_is_to_go_back():
    home = entry(baseline=(1, 2, 3), written=(2, 1, 3))
    assert found(partition(replicas=(2, 1, 3)), home) == PlacementCounts(1, 0, 1)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(replace(AWAY, leader=3), id="led by another than its first"),
        pytest.param(replace(AWAY, adding=(2,)), id="being reassigned"),
        pytest.param(replace(AWAY, leader=None, isr=()), id="led by nobody"),
    ],
)
def test_what_is_not_as_it_should_be_does_not_count_as_placed(seen: Partition):
    assert (found(seen).displaced, found(seen).for_racks) == (1, 0)


def test_what_a_demotion_displaced_is_the_demotions():
    assert found(decided=decisions(4)).for_racks == 0
    assert found(decided=decisions(2)).for_racks == 1


@pytest.mark.parametrize(("share", "for_racks"), [(0, 0), (99, 0), (100, 1)])
def test_what_waits_for_a_later_wave_of_a_broker_is_not_where_it_is_to_stay(share: int, for_racks: int):
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
