"""What is posed to a rebalance planner where racks are preferred: no plan that it makes can work against them."""

from __future__ import annotations

from datetime import UTC, datetime

from bellwether.core.model.cluster import Partition
from bellwether.core.model.rack_ranking import RackRankings
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.core.settings.rebalance import Rebalance
from bellwether_load.plan.problem import PartitionInput
from bellwether_load.plan.problem_builder import build_problem
from testkit.values.builders import cluster, entry, partition, record

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
PREFER = Placement(Preference(("a", "b")))


def slot(
    seen: Partition, *, wish: Placement = PREFER, undo: UndoRecord | None = None, shut: dict[int, str] | None = None
) -> PartitionInput:
    of = cluster(seen, brokers=4, racks=RACKS)
    rankings = RackRankings(wish, of)
    made = build_problem(of, undo or record(), shut or {}, Rebalance(), policy="p", made_at=NOON, rankings=rankings)
    return made.partitions[0]


def test_only_those_of_the_best_rack_may_lead():
    assert slot(partition(replicas=(1, 3, 2))).isr == (1, 2)


def test_the_next_rack_may_where_the_first_is_closed_or_out_of_sync():
    assert slot(partition(replicas=(1, 3, 4), isr=(3, 4))).isr == (3, 4)
    assert slot(partition(replicas=(1, 3, 4)), shut={1: "Sick"}).isr == (3, 4)


def test_with_weights_those_of_todays_rack_may():
    wish = Placement(Preference(weights=(("a", 1), ("b", 1))))
    assert slot(partition(replicas=(3, 1, 4)), wish=wish).isr == (3, 4)


def test_topics_without_preferred_racks_may_have_any_in_sync_leader():
    wish = Placement(rules=(TopicRule("other", Preference(("a",))),))
    assert slot(partition(replicas=(3, 1, 4)), wish=wish).isr == (3, 1, 4)


def test_what_is_displaced_for_the_racks_alone_is_free_to_move():
    seen = partition(replicas=(1, 3, 2))
    undo = record({seen.key: entry(baseline=(3, 1, 2), written=(1, 3, 2))})
    assert slot(partition(replicas=(1, 2, 3)), undo=undo).held == ""


def test_what_is_on_its_way_is_held():
    seen = partition(replicas=(1, 2, 3))
    for state, leader, baseline in (
        (EntryState.INTENDED, 1, (3, 1, 2)),
        (EntryState.DISPLACED, 3, (3, 1, 2)),
        (EntryState.DISPLACED, 1, (2, 1, 3)),
    ):
        undo = record({seen.key: entry(baseline=baseline, written=(1, 2, 3), state=state)})
        assert slot(partition(replicas=(1, 2, 3), leader=leader), undo=undo).held == "Displaced"
