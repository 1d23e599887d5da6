"""The order that every partition should have, with racks, limits and several demoted at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.context import Context
from bellwether.core.execution.reorder_checks import record_intents
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.planning.plan import MoveKind, Plan, build_plan
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference, Scope, TopicRule
from bellwether.core.settings.policy import Capacity, Demotion, Policy
from testkit.values.builders import (
    after,
    cluster,
    decisions,
    demoted,
    entry,
    partition,
    record,
    returning,
    snapshot,
    verdicts,
)

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
PREFER = Placement(Preference(("a", "b")))
MINE = Scope(included=("orders",))


def stretched(*partitions: Partition, fenced: Sequence[int] = (), racks: Mapping[int, str] = RACKS) -> Cluster:
    """Six brokers in three racks."""
    return cluster(*partitions, brokers=6, racks=racks, fenced=fenced)


def plan(
    seen: Cluster,
    *brokers: int,
    wish: Placement | None = PREFER,
    capacity: Capacity | None = None,
    undo: UndoRecord | None = None,
    decided: Decisions | None = None,
    loads: Loads | None = None,
    **standings: list[int],
) -> Plan:
    policy = Policy(name="p", placement=wish, demotion=Demotion(capacity=capacity or Capacity()))
    found = snapshot(seen, now=after(100), undo=undo or record(None, *(demoted(b) for b in brokers)))
    found = replace(found, loads=loads)
    return build_plan(Context(found, verdicts(seen, **standings), policy), decided or decisions(*brokers))


def done(made: Plan, seen: Cluster, undo: UndoRecord) -> tuple[Cluster, UndoRecord]:
    """The cluster and the record once a plan was carried out and confirmed."""
    moved = {m.key: m for m in made.moves}
    partitions = tuple(
        replace(p, replicas=m.order, leader=m.order[0] if m.elect else p.leader) if (m := moved.get(p.key)) else p
        for p in seen.partitions
    )
    after_it = record_intents(made, undo, None)
    stand = {
        k: replace(e, state=EntryState.DISPLACED if e.state is EntryState.INTENDED else EntryState.RESTORED)
        for k, e in after_it.entries.items()
        if k in moved
    }
    return replace(seen, partitions=partitions), after_it.with_entries(stand)


def orders_of(made: Plan) -> list[tuple[tuple[int, ...], bool]]:
    return [(m.order, m.elect) for m in made.moves]


class TestOrderedRacks:
    @pytest.mark.parametrize(
        ("seen", "moves"),
        [
            pytest.param(partition(replicas=(1, 3, 5)), [], id="it is as the racks want it"),
            pytest.param(partition(replicas=(3, 1, 5)), [((1, 3, 5), True)], id="the first rack takes over"),
            pytest.param(partition(replicas=(5, 3, 1)), [((1, 3, 5), True)], id="those behind follow by rack"),
            pytest.param(partition(replicas=(1, 5, 3)), [((1, 3, 5), False)], id="so that Kafka goes on there"),
            pytest.param(partition(replicas=(5, 3)), [((3, 5), True)], id="the second, where the first has no replica"),
            pytest.param(partition(replicas=(5, 6)), [], id="no listed rack has a replica"),
            pytest.param(partition(replicas=(3, 1, 5), isr=(3, 5)), [], id="a replica out of sync takes nothing over"),
            pytest.param(partition(replicas=(5, 1, 3), isr=(5, 3)), [((3, 1, 5), True)], id="the next one does"),
            pytest.param(partition(replicas=(1, 3, 5), leader=3), [((1, 3, 5), True)], id="back in sync: elected"),
            pytest.param(partition(replicas=(2, 1, 3), leader=1), [], id="led from the right rack: left to Kafka"),
            pytest.param(partition(replicas=(3, 1, 5), adding=[5]), [], id="being reassigned: left alone"),
        ],
    )
    def test_what_becomes_of_a_partition(self, seen: Partition, moves: list[tuple[tuple[int, ...], bool]]):
        assert orders_of(plan(stretched(seen))) == moves

    def test_baseline_is_order_as_it_was_and_move_displaces(self):
        (move,) = plan(stretched(partition(replicas=(3, 1, 5)))).moves
        assert (move.kind, move.baseline) == (MoveKind.DISPLACE, (3, 1, 5))

    def test_a_rack_that_is_gone_moves_no_order(self):
        """Kafka goes on to the next of the order by itself, and comes back."""
        lost = partition(replicas=(1, 3, 5), isr=(3, 5))
        made = plan(stretched(lost, fenced=[1, 2]))
        assert made.empty
        assert [h.reason for h in made.holds] == [Reason.PREFERRED_NOT_IN_ISR]

    def test_rack_unknown_to_metadata_moves_no_order(self):
        lost = partition(replicas=(1, 5, 3), isr=(5, 3))
        seen = cluster(lost, brokers=[3, 4, 5, 6], racks=RACKS)
        assert plan(seen).empty

    def test_when_all_candidates_of_rack_are_demoted_next_leads(self):
        made = plan(stretched(partition(replicas=(1, 2, 4, 5))), 1, 2)
        assert orders_of(made) == [((4, 5, 1, 2), True)]

    def test_another_of_same_rack_leads_before_any_of_next(self):
        made = plan(stretched(partition(replicas=(1, 3, 2))), 1)
        assert orders_of(made) == [((2, 3, 1), True)]

    def test_sick_undemoted_broker_is_not_chosen_before_well_next_rack(self):
        made = plan(stretched(partition(replicas=(5, 1, 3))), sick=[1])
        assert orders_of(made) == [((3, 1, 5), True)]

    def test_sick_broker_leading_for_cap_is_not_moved_by_racks(self):
        assert plan(stretched(partition(replicas=(1, 3, 5))), sick=[1]).empty

    def test_new_leaders_are_spread_over_the_brokers_of_the_rack(self):
        led = [partition(index=i, replicas=(3 + i % 2, 1, 2, 5)) for i in range(40)]
        made = plan(stretched(*led))
        assert Counter(m.leads_next for m in made.moves) == {1: 20, 2: 20}

    def test_the_same_facts_give_no_work_once_orders_are_done(self):
        led = [partition(index=i, replicas=(3 + i % 3, 1, 2)) for i in range(30)]
        seen, undo = stretched(*led), record()
        made = plan(seen, undo=undo)
        assert made.moves
        seen, undo = done(made, seen, undo)
        again = plan(seen, undo=undo)
        assert (again.moves, again.holds, again.entries) == ((), (), {})

    def test_a_recovered_broker_of_the_rack_gets_its_share_again(self):
        """What was moved to its rack while it was demoted is with its neighbour, and is spread once more."""
        led = [partition(index=i, replicas=(3, 1, 2)) for i in range(40)]
        seen, undo = stretched(*led), record()
        seen, undo = done(plan(seen, 1, undo=undo), seen, undo)
        assert Counter(p.leader for p in seen.partitions) == {2: 40}
        seen, undo = done(plan(seen, undo=undo), seen, undo)
        counts = Counter(p.leader for p in seen.partitions)
        assert abs(counts[1] - counts[2]) <= 4
        assert plan(seen, undo=undo).empty

    def test_broker_given_leader_for_its_rack_gets_fewer_others(self):
        seen = stretched(partition(index=0, replicas=(3, 1)), partition(index=1, replicas=(3, 1, 2)))
        assert {m.key.partition: m.leads_next for m in plan(seen).moves} == {0: 1, 1: 2}

    def test_resting_orders_spread_where_one_broker_leads_all_of_rack(self):
        led = [partition(index=i, replicas=(2, 1, 3)) for i in range(40)]
        undo = record({p.key: entry(baseline=(3, 1, 2), written=(2, 1, 3)) for p in led})
        assert Counter(m.leads_next for m in plan(stretched(*led), undo=undo).moves) == {1: 20}

    def test_broker_awaiting_its_wave_is_not_first_for_its_rack(self):
        """It restarted: the order from before is the racks', and its leaders come back in waves."""
        seen = stretched(partition(replicas=(1, 3), leader=3))
        undo = record({seen.partitions[0].key: entry(baseline=(3, 1), written=(1, 3))})
        made = plan(seen, undo=undo, decided=Decisions({}, returning={1: returning(1, 0)}))
        assert orders_of(made) == [((3, 1), False)]

    def test_broker_awaiting_its_wave_does_not_lead_for_its_rack(self):
        seen = stretched(partition(replicas=(1, 2, 3)))
        undo = record({seen.partitions[0].key: entry(baseline=(3, 1, 2), written=(1, 2, 3))})
        made = plan(seen, undo=undo, decided=Decisions({}, returning={1: returning(1, 0)}))
        assert [m.leads_next for m in made.moves] == [2]

    def test_what_the_racks_let_a_returning_broker_lead_is_awaited(self):
        seen = stretched(partition(index=0, replicas=(3, 1)), partition(index=1, replicas=(1, 2, 3)))
        decided = Decisions({}, returning={1: returning(1, 0)})
        assert plan(seen, decided=decided).withheld == {1: 2}
        assert plan(seen, decided=decided, wish=None).withheld == {1: 1}

    def test_partitions_only_it_may_lead_return_before_its_wave(self):
        seen = cluster(*[partition(index=i, replicas=(2, 3, 1)) for i in range(10)])
        undo = record({p.key: entry(baseline=(3, 1, 2), written=(2, 3, 1)) for p in seen.partitions}, demoted(1))
        decided = decisions(1, back=[returning(3, 10)])
        sick = plan(seen, undo=undo, decided=decided, wish=None, sick=[1, 2])
        assert sum(move.leads_next == 3 for move in sick.moves) == 10
        assert sick.withheld[3] == 0
        well = plan(seen, undo=undo, decided=decided, wish=None, sick=[1])
        assert (well.withheld[3], well.early) == (sick.early[3], {})

    def test_without_preferred_racks_every_order_returns_to_its_baseline(self):
        led = [partition(index=i, replicas=(3, 1, 5)) for i in range(5)]
        seen, undo = stretched(*led), record()
        seen, undo = done(plan(seen, undo=undo), seen, undo)
        made = plan(seen, undo=undo, wish=None)
        assert {(m.order, m.kind) for m in made.moves} == {((3, 1, 5), MoveKind.RESTORE)}

    def test_on_deletion_every_order_returns_despite_preferred_racks(self):
        seen = stretched(partition(replicas=(1, 3, 5)))
        undo = record({seen.partitions[0].key: entry(baseline=(3, 1, 5), written=(1, 3, 5))})
        made = plan(seen, undo=undo, decided=Decisions({}, policy_deleted=True))
        assert orders_of(made) == [((3, 1, 5), True)]

    def test_changed_preferred_racks_keep_the_same_baseline(self):
        seen = stretched(partition(replicas=(3, 1, 5)))
        undo = record()
        seen, undo = done(plan(seen, undo=undo), seen, undo)
        (move,) = plan(seen, undo=undo, wish=Placement(Preference(("c",)))).moves
        assert (move.order, move.baseline) == ((5, 3, 1), (3, 1, 5))

    def test_brokers_without_racks_leave_everything_as_it_is(self):
        assert plan(stretched(partition(replicas=(3, 1, 5)), racks={})).empty

    def test_each_topic_follows_its_own_rule(self):
        wish = Placement(Preference(("a",)), (TopicRule("eu-*", Preference(("c",))),))
        seen = stretched(partition("eu-orders", replicas=(3, 1, 5)), partition("orders", replicas=(3, 1, 5)))
        assert {m.topic: m.leads_next for m in plan(seen, wish=wish).moves} == {"eu-orders": 5, "orders": 1}

    def test_topics_without_a_rule_stay_where_only_others_have_one(self):
        wish = Placement(rules=(TopicRule("eu-*", Preference(("c",))),))
        seen = stretched(partition("eu-orders", replicas=(3, 1, 5)), partition("orders", replicas=(3, 1, 5)))
        assert [m.topic for m in plan(seen, wish=wish).moves] == ["eu-orders"]


class TestWeightedRacks:
    WISH = Placement(Preference(weights=(("a", 70), ("b", 30))))

    def racks_of(self, seen: Cluster) -> Counter[str]:
        return Counter(RACKS[p.leader] for p in seen.partitions if p.leader is not None)

    def settle(self, seen: Cluster, undo: UndoRecord) -> tuple[Cluster, UndoRecord]:
        for _ in range(5):
            made = plan(seen, undo=undo, wish=self.WISH)
            if made.empty:
                return seen, undo
            seen, undo = done(made, seen, undo)
        raise AssertionError("it does not settle")

    def test_leaders_come_in_proportion_and_stay(self):
        led = [partition(index=i, replicas=[(1, 3, 5), (3, 5, 2), (6, 2, 4)][i % 3]) for i in range(100)]
        seen, _ = self.settle(stretched(*led), record())
        counts = self.racks_of(seen)
        assert counts["c"] == 0
        assert 63 <= counts["a"] <= 77

    def test_a_partition_moves_no_more_than_it_must(self):
        led = [partition(index=i, replicas=[(1, 3), (3, 1)][i >= 70]) for i in range(100)]
        assert plan(stretched(*led), wish=self.WISH).empty

    def test_those_that_are_not_at_home_go_on_first(self):
        away = [partition(index=i, replicas=(3, 1)) for i in range(60)]
        entries = {p.key: entry(baseline=(1, 3), written=(3, 1)) for p in away[:30]}
        made = plan(stretched(*away), wish=self.WISH, undo=record(entries))
        assert {m.key for m in made.moves} >= set(entries)
        assert all(m.order == (1, 3) for m in made.moves)

    def test_a_rack_that_is_gone_moves_no_order(self):
        led = [partition(index=i, replicas=[(1, 3), (3, 1)][i >= 70], isr=(3,), leader=3) for i in range(100)]
        assert plan(stretched(*led, fenced=[1, 2]), wish=self.WISH).empty

    def test_where_no_weighted_rack_can_lead_another_does(self):
        made = plan(stretched(partition(replicas=(1, 5))), 1, wish=self.WISH)
        assert orders_of(made) == [((5, 1), True)]

    def test_sick_undemoted_broker_leads_on_where_well_racks_lack_weight(self):
        led = [partition(index=i, replicas=(1, 5)) for i in range(20)]
        assert plan(stretched(*led), wish=self.WISH, sick=[1]).empty


class TestCapacity:
    def led_by_1(self, count: int) -> list[Partition]:
        return [partition(index=i, replicas=(1, 2, 3)) for i in range(count)]

    def test_what_others_can_carry_moves_and_rest_stays_with_reason(self):
        made = plan(stretched(*self.led_by_1(10)), 1, wish=None, capacity=Capacity(max_leaders=3))
        assert len(made.moves) == 6
        assert Counter(h.reason for h in made.holds) == {Reason.CAPACITY_REACHED: 4}

    def test_what_stays_is_not_touched(self):
        made = plan(stretched(*self.led_by_1(3)), 1, wish=None, capacity=Capacity(max_leaders=1))
        held = {h.key for h in made.holds}
        assert held
        assert {made.targets[k] for k in held} == {(1, 2, 3)}

    def test_a_demoted_follower_goes_last_even_without_room_elsewhere(self):
        seen = stretched(*(partition(index=i, replicas=(2, 1, 3)) for i in range(5)))
        made = plan(seen, 1, wish=None, capacity=Capacity(max_leaders=1))
        assert {m.order for m in made.moves} == {(2, 3, 1)}
        assert made.holds == ()

    def test_it_is_settled_once_what_fits_has_moved(self):
        seen, undo = stretched(*self.led_by_1(10)), record(None, demoted(1))
        limit = Capacity(max_leaders=3)
        seen, undo = done(plan(seen, 1, wish=None, capacity=limit, undo=undo), seen, undo)
        again = plan(seen, 1, wish=None, capacity=limit, undo=undo)
        assert again.empty
        assert len(again.holds) == 4

    def test_what_was_left_moves_when_there_is_room_again(self):
        seen, undo = stretched(*self.led_by_1(10)), record(None, demoted(1))
        seen, undo = done(plan(seen, 1, wish=None, capacity=Capacity(max_leaders=3), undo=undo), seen, undo)
        made = plan(seen, 1, wish=None, capacity=Capacity(max_leaders=5), undo=undo)
        assert (len(made.moves), made.holds) == (4, ())

    def test_the_heaviest_move_first(self):
        led = self.led_by_1(6)
        loads = Loads({p.key: 10 * (1 + p.index) for p in led})
        made = plan(stretched(*led), 1, wish=None, capacity=Capacity(max_load=60), loads=loads)
        assert {m.key.partition for m in made.moves} == {5, 4, 0}
        assert len(made.holds) == 3

    def test_a_broker_that_follows_much_takes_over_less(self):
        led = self.led_by_1(6)
        loads = Loads({p.key: 10 for p in led}, following={2: 30, 3: 50})
        made = plan(stretched(*led), 1, wish=None, capacity=Capacity(max_load=60), loads=loads)
        assert Counter(m.leads_next for m in made.moves) == {2: 3, 3: 1}

    def test_nothing_moves_while_loads_are_awaited_and_reason_says_so(self):
        made = plan(stretched(*self.led_by_1(3)), 1, wish=None, capacity=Capacity(max_load=60), loads=LOADS_PENDING)
        assert made.empty
        assert Counter(h.reason for h in made.holds) == {Reason.NO_EVIDENCE: 3}

    def test_a_limit_by_number_waits_for_no_loads(self):
        made = plan(stretched(*self.led_by_1(3)), 1, wish=None, capacity=Capacity(max_leaders=9), loads=LOADS_PENDING)
        assert len(made.moves) == 3

    def test_without_loads_the_limit_by_number_alone_applies(self):
        made = plan(stretched(*self.led_by_1(10)), 1, wish=None, capacity=Capacity(max_leaders=3, max_load=1))
        assert (len(made.moves), len(made.holds)) == (6, 4)

    def test_grown_loads_do_not_move_placed_leaders(self):
        seen, undo = stretched(*self.led_by_1(6)), record(None, demoted(1))
        light, heavy = (Loads({p.key: load for p in seen.partitions}) for load in (10, 100))
        limit = Capacity(max_load=30)
        seen, undo = done(plan(seen, 1, wish=None, capacity=limit, undo=undo, loads=light), seen, undo)
        for loads in (heavy, light, heavy):
            assert plan(seen, 1, wish=None, capacity=limit, undo=undo, loads=loads).empty

    def test_the_leaders_of_the_sickest_move_first(self):
        led = [partition("a", i, (1, 3)) for i in range(3)] + [partition("b", i, (2, 3)) for i in range(3)]
        undo = record(None, demoted(1), demoted(2))
        slow = replace(demoted(1), reason=Reason.STORAGE_SLOW)
        both = Decisions({1: slow, 2: demoted(2)})
        made = plan(stretched(*led), wish=None, capacity=Capacity(max_leaders=3), undo=undo, decided=both)
        assert {m.topic for m in made.moves} == {"b"}, "led by the broker that clients cannot reach"

    def test_a_demotion_goes_to_the_next_rack_rather_than_nowhere(self):
        led = [partition(index=i, replicas=(1, 2, 3)) for i in range(4)]
        made = plan(stretched(*led), 1, capacity=Capacity(max_leaders=2))
        assert Counter(m.leads_next for m in made.moves) == {2: 2, 3: 2}

    def test_and_stays_there_while_the_better_rack_is_full(self):
        led = [partition(index=i, replicas=(1, 2, 3)) for i in range(4)]
        seen, undo = stretched(*led), record(None, demoted(1))
        limit = Capacity(max_leaders=2)
        seen, undo = done(plan(seen, 1, capacity=limit, undo=undo), seen, undo)
        assert plan(seen, 1, capacity=limit, undo=undo).empty

    def test_full_rack_takes_no_more_than_it_can_carry(self):
        led = [partition(index=i, replicas=(3, 1)) for i in range(5)]
        seen, undo = stretched(*led), record()
        limit = Capacity(max_leaders=2)
        made = plan(seen, capacity=limit, undo=undo)
        assert Counter(m.leads_next for m in made.moves) == {1: 2}
        seen, undo = done(made, seen, undo)
        assert plan(seen, capacity=limit, undo=undo).empty


class TestSeveralDemoted:
    SLOW, CUT_OFF, ASKED = Reason.STORAGE_SLOW, Reason.EXTERNALLY_UNREACHABLE, Reason.OVERRIDE_DEMOTED

    def decided(self, **reasons: Reason) -> Decisions:
        return Decisions({int(b[1:]): replace(demoted(int(b[1:])), reason=r) for b, r in reasons.items()})

    def order(self, seen: Partition, decided: Decisions) -> tuple[int, ...]:
        return plan(stretched(seen), wish=None, decided=decided).targets[seen.key]

    def test_the_least_sick_come_first_among_the_demoted(self):
        three = self.decided(b1=self.CUT_OFF, b2=self.SLOW, b3=self.ASKED)
        assert self.order(partition(replicas=(1, 2, 3, 4)), three) == (4, 3, 2, 1)

    def test_equally_sick_brokers_keep_their_baseline_order(self):
        two = self.decided(b1=self.SLOW, b2=self.SLOW)
        assert self.order(partition(replicas=(2, 1, 3)), two) == (3, 2, 1)

    def test_verdict_that_changes_from_reconcile_to_reconcile_changes_no_order(self):
        two = self.decided(b1=self.CUT_OFF, b2=self.SLOW)
        seen = stretched(partition(replicas=(1, 2, 3)))
        first = plan(seen, wish=None, decided=two, sick=[1, 2]).targets
        assert plan(seen, wish=None, decided=two, recovering=[1], sick=[2]).targets == first

    def test_least_sick_is_elected_where_only_demoted_are_left(self):
        two = self.decided(b1=self.CUT_OFF, b2=self.SLOW)
        made = plan(stretched(partition(replicas=(1, 2))), wish=None, decided=two)
        assert orders_of(made) == [((2, 1), True)]
        assert [h.reason for h in made.holds] == [Reason.NO_HEALTHY_ISR_MEMBER]

    def test_it_is_not_elected_while_it_is_out_of_sync(self):
        two = self.decided(b1=self.CUT_OFF, b2=self.SLOW)
        made = plan(stretched(partition(replicas=(1, 2), isr=(1,))), wish=None, decided=two)
        assert orders_of(made) == [((2, 1), False)]

    def test_among_those_alike_the_leader_stays(self):
        two = self.decided(b1=self.SLOW, b2=self.SLOW)
        made = plan(stretched(partition(replicas=(1, 2), leader=2)), wish=None, decided=two)
        assert made.empty
        assert [h.reason for h in made.holds] == [Reason.NO_HEALTHY_ISR_MEMBER]

    def test_demoted_broker_that_leads_for_want_of_another_is_named(self):
        made = plan(stretched(partition(replicas=(3, 2, 1), isr=(1,))), wish=None, decided=self.decided(b1=self.SLOW))
        assert [h.reason for h in made.holds] == [Reason.NO_HEALTHY_ISR_MEMBER]


@pytest.mark.parametrize("placement", [None, PREFER])
def test_leaders_out_of_scope_count_when_leaders_are_spread(placement: Placement | None):
    racks = dict.fromkeys((1, 2, 3), "a")
    mine = [partition(index=n, replicas=(1, 2, 3)) for n in range(6)]
    others = [partition("others", index=n, replicas=(2, 3, 1), leader=2) for n in range(4)]
    seen = cluster(*mine, *others, racks=racks)
    policy = Policy(name="p", placement=placement and replace(placement, scope=MINE), scope=MINE)
    found = snapshot(seen, now=after(100), undo=record(None, demoted(1)))
    made = build_plan(Context(found, verdicts(seen), policy), decisions(1))
    assert Counter(m.leads_next for m in made.moves if m.topic == "orders") == {2: 1, 3: 5}
