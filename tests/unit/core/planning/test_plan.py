"""The plan for a snapshot: one partition after the other, and what of it stays undone and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.planning.plan import MoveKind, Plan, build_plan
from bellwether.core.reasons import Reason
from testkit.values.builders import (
    after,
    cluster,
    context,
    decisions,
    demoted,
    entry,
    partition,
    record,
    returning,
    snapshot,
    verdicts,
)


def plan(seen: Cluster, *brokers: int, undo: UndoRecord | None = None, **standings: list[int]) -> Plan:
    found = snapshot(seen, now=after(100), undo=undo or record(None, *(demoted(b) for b in brokers)))
    return build_plan(context(found, verdicts(seen, **standings)), decisions(*brokers))


@pytest.mark.parametrize(
    ("seen", "order", "elect", "hold"),
    [
        pytest.param(partition(), (2, 3, 1), True, None, id="led by the demoted"),
        pytest.param(partition(replicas=[2, 1, 3]), (2, 3, 1), False, None, id="followed: reordered, not elected"),
        pytest.param(partition(replicas=[2, 3, 1]), None, False, None, id="last and led by another already"),
        pytest.param(partition(replicas=[2, 3, 1], leader=1), (2, 3, 1), True, None, id="last, and it leads: elected"),
        pytest.param(partition(replicas=[2, 3]), None, False, None, id="not on the demoted"),
        pytest.param(partition(replicas=[2, 3], leader=3), None, False, None, id="not ours, and led by the second"),
        pytest.param(partition(replicas=[1]), None, False, Reason.ONLY_REPLICA, id="the only replica"),
        pytest.param(
            partition(isr=[1]),
            (2, 3, 1),
            False,
            Reason.NO_HEALTHY_ISR_MEMBER,
            id="no other in sync: it leads on",
        ),
        pytest.param(partition(isr=[1, 3]), (3, 2, 1), True, None, id="only the third is in sync"),
        pytest.param(partition(adding=[3]), None, False, Reason.REASSIGNING, id="being reassigned"),
        pytest.param(
            partition(replicas=[3, 1, 2], leader_unknown=True),
            None,
            False,
            Reason.LISTENER_MISSING,
            id="led by a broker that is not named",
        ),
        pytest.param(partition(isr=[2], leader=2), (2, 3, 1), False, None, id="left by the demoted already"),
        pytest.param(partition(isr=[], leader=None), (2, 3, 1), False, Reason.NO_HEALTHY_ISR_MEMBER, id="offline"),
        pytest.param(partition(replicas=[1], leader=None), None, False, Reason.ONLY_REPLICA, id="left to Kafka"),
    ],
)
def test_what_becomes_of_a_partition_when_broker_1_is_demoted(
    seen: Partition, order: tuple[int, ...] | None, elect: bool, hold: Reason | None
):
    made = plan(cluster(seen), 1)
    assert [(m.order, m.elect) for m in made.moves] == ([(order, elect)] if order else [])
    assert [h.reason for h in made.holds] == ([hold] if hold else [])


def test_what_the_kafka_service_does_not_offer_is_not_planned():
    made = plan(replace(cluster(partition()), immovable="this Kafka service does not offer ElectLeaders"), 1)
    assert made.moves == ()
    assert [(h.reason, h.message) for h in made.holds] == [
        (Reason.REQUEST_REFUSED, "this Kafka service does not offer ElectLeaders")
    ]


@pytest.mark.parametrize(
    ("seen", "leader"),
    [
        pytest.param(partition(replicas=[1, 2, 4], isr=[1, 2]), None, id="led by its first: it stays"),
        pytest.param(partition(replicas=[2, 1, 4], isr=[1, 2], leader=1), 2, id="its first takes over by an election"),
        pytest.param(partition(replicas=[2, 1, 4], isr=[1], leader=1), None, id="its first is not in sync"),
        pytest.param(partition(replicas=[4, 1, 2], isr=[1, 2], leader=1), None, id="its first is the removed broker"),
        pytest.param(partition(replicas=[2, 1, 4], isr=[1, 2], leader=2), None, id="led by its first, not reordered"),
    ],
)
def test_no_order_is_planned_for_list_with_removed_broker_4(seen: Partition, leader: int | None):
    made = plan(cluster(seen, removed=[4]), 1)
    assert [(m.order, m.elect, m.leads_next) for m in made.moves] == ([(seen.replicas, True, leader)] if leader else [])
    assert [h.reason for h in made.holds] == [Reason.REMOVED_BROKER]


def test_a_sick_first_replica_is_not_elected_for_a_list_that_names_a_removed_broker():
    seen = partition(replicas=[2, 1, 4], isr=[1, 2], leader=1)
    assert plan(cluster(seen, removed=[4]), 1, sick=[1, 2]).empty


def test_all_replicas_demoted_is_named_and_left_as_it_is():
    made = plan(cluster(partition(replicas=[1, 2]), brokers=4), 1, 2)
    assert made.empty
    assert made.holds[0].reason is Reason.NO_HEALTHY_ISR_MEMBER


@pytest.mark.parametrize(
    ("seen", "leader"),
    [
        pytest.param(cluster(partition(), brokers=[1, 3]), 3, id="a dead one, though metadata names it in the ISR"),
        pytest.param(cluster(partition(), fenced=[2]), 3, id="a fenced one"),
    ],
)
def test_only_a_broker_that_can_lead_is_put_first(seen: Cluster, leader: int):
    assert plan(seen, 1).moves[0].leads_next == leader


def test_a_sick_undemoted_broker_leads_only_without_another_candidate():
    seen = cluster(*(partition(index=i) for i in range(4)), partition("tight", isr=[1, 2]))
    leads = {m.topic: m.leads_next for m in plan(seen, 1, sick=[2]).moves}
    assert leads == {"orders": 3, "tight": 2}


def test_displacing_moves_internal_topics_first_and_restoring_last():
    seen = cluster(partition("__consumer_offsets", internal=True), partition("zebra"), partition("aardvark"))
    assert [m.topic for m in plan(seen, 1).moves] == ["__consumer_offsets", "aardvark", "zebra"]
    displaced = replace(seen, partitions=tuple(replace(p, replicas=(2, 3, 1), leader=2) for p in seen.partitions))
    undo = record({p.key: entry(p.topic) for p in displaced.partitions})
    made = plan(displaced, undo=undo)
    assert [m.topic for m in made.moves] == ["aardvark", "zebra", "__consumer_offsets"]
    assert {m.kind for m in made.moves} == {MoveKind.RESTORE}


def test_what_demoted_broker_leads_goes_before_what_it_follows():
    followed, led = partition("aardvark", replicas=[2, 1, 3]), partition("zebra")
    seen = cluster(partition("__consumer_offsets", replicas=[2, 1, 3], internal=True), followed, led)
    made = plan(seen, 1)
    assert [(m.topic, m.elect) for m in made.moves] == [
        ("zebra", True),
        ("__consumer_offsets", False),
        ("aardvark", False),
    ]


def test_leader_that_returns_goes_before_followers_that_are_only_reordered():
    returned = partition("returned", replicas=[2, 5, 1], leader=2)
    undo = record({returned.key: entry("returned", (1, 2, 5), (2, 5, 1))})
    made = plan(cluster(returned, partition("followed", replicas=[4, 3, 5]), brokers=5), 3, undo=undo)
    assert [(m.topic, m.kind, m.elect) for m in made.moves] == [
        ("returned", "Restore", True),
        ("followed", "Displace", False),
    ]


def test_giving_to_one_precedes_any_return():
    taken, returned = partition("taken", replicas=[3, 4, 5]), partition("returned", replicas=[2, 5, 1], leader=2)
    undo = record({returned.key: entry("returned", (1, 2, 5), (2, 5, 1))})
    made = plan(cluster(returned, taken, brokers=5), 3, undo=undo)
    assert [(m.topic, m.kind) for m in made.moves] == [("taken", "Displace"), ("returned", "Restore")]


class TestRestoring:
    HOME = (1, 2, 3)
    AWAY = (2, 3, 1)

    def plan(self, seen: Partition, state: EntryState = EntryState.DISPLACED, *brokers: int) -> Plan:
        undo = record({seen.key: entry(state=state, written=seen.replicas)}, *(demoted(b) for b in brokers))
        return plan(cluster(seen), *brokers, undo=undo)

    def test_the_baseline_is_put_back_and_elected(self):
        (move,) = self.plan(partition(replicas=self.AWAY)).moves
        assert (move.kind, move.order, move.elect, move.leads_next) == (MoveKind.RESTORE, self.HOME, True, 1)

    def test_order_returns_though_preferred_leader_is_not_in_sync_yet(self):
        made = self.plan(partition(replicas=self.AWAY, isr=[2, 3]))
        assert [(m.order, m.elect) for m in made.moves] == [(self.HOME, False)]
        assert made.holds[0].reason is Reason.PREFERRED_NOT_IN_ISR

    def test_order_that_is_back_at_its_baseline_becomes_a_tombstone(self):
        seen = partition(replicas=self.HOME)
        made = self.plan(seen)
        finished = made.entries[seen.key]
        assert finished is not None
        assert (finished.state, finished.written, finished.finished_at) == (EntryState.RESTORED, self.HOME, after(100))
        assert made.empty

    def test_a_tombstone_is_left_as_it_is(self):
        assert self.plan(partition(replicas=self.HOME), EntryState.RESTORED).entries == {}

    def test_leader_that_is_still_away_is_elected_from_tombstone(self):
        made = self.plan(partition(replicas=self.HOME, leader=2), EntryState.RESTORED)
        assert [(m.reorders, m.elect) for m in made.moves] == [(False, True)]

    def test_a_second_broker_is_demoted_from_the_same_baseline(self):
        seen = partition(replicas=self.AWAY)
        made = self.plan(seen, EntryState.DISPLACED, 1, 2)
        assert made.moves[0].order == (3, 1, 2)
        assert made.moves[0].baseline == self.HOME

    def test_the_first_of_two_is_promoted_from_the_same_baseline(self):
        made = self.plan(partition(replicas=(3, 1, 2)), EntryState.DISPLACED, 2)
        assert [(m.order, m.kind) for m in made.moves] == [((1, 3, 2), MoveKind.DISPLACE)]

    def test_a_baseline_of_another_replica_set_is_not_applied(self):
        seen = partition(replicas=[2, 3, 4])
        made = plan(cluster(seen, brokers=4), undo=record({seen.key: entry()}))
        assert made.empty


class TestReturningInWaves:
    """Of the partitions of ``orders``, number 2 is released at 8 percent and number 0 at 66."""

    EARLY, LATE = 2, 0

    def plan(self, seen: Partition, *brokers: int, share: int = 10, baseline: Sequence[int] = (1, 2, 3)) -> Plan:
        standing = [demoted(b) for b in brokers]
        undo = record({seen.key: entry(seen.topic, baseline, seen.replicas)}, *standing)
        found = snapshot(cluster(seen), now=after(100), undo=undo)
        return build_plan(context(found, verdicts(cluster(seen))), decisions(*brokers, back=[returning(1, share)]))

    def test_what_its_wave_lets_go_goes_home(self):
        (move,) = self.plan(partition(index=self.EARLY, replicas=[2, 3, 1])).moves
        assert (move.order, move.elect, move.kind) == ((1, 2, 3), True, MoveKind.RESTORE)

    def test_withheld_partitions_are_led_by_others_and_keep_its_place(self):
        made = self.plan(partition(index=self.LATE, replicas=[2, 3, 1]))
        assert [(m.order, m.elect, m.kind) for m in made.moves] == [((2, 1, 3), False, MoveKind.DISPLACE)]
        assert self.plan(partition(index=self.LATE, replicas=[2, 1, 3])).empty

    def test_a_withheld_partition_returns_with_a_later_wave(self):
        late = partition(index=self.LATE, replicas=[2, 1, 3])
        assert self.plan(late, share=50).empty
        assert [m.order for m in self.plan(late, share=66).moves] == [(1, 2, 3)]

    def test_rolled_back_share_displaces_again_what_it_let_go(self):
        seen = partition(index=self.EARLY)
        (move,) = build_plan(context(snapshot(cluster(seen))), decisions(back=[returning(1, 5)])).moves
        assert (move.leads_next, move.elect, move.baseline, move.kind) == (2, True, (1, 2, 3), MoveKind.DISPLACE)

    def test_it_does_not_lead_partitions_of_next_demoted_broker(self):
        made = self.plan(partition(index=self.LATE, replicas=[2, 1, 3]), 2, baseline=(2, 1, 3))
        assert [(m.order, m.elect) for m in made.moves] == [((3, 1, 2), True)]

    def test_it_may_lead_them_once_their_turn_has_come(self):
        made = self.plan(partition(index=self.EARLY, replicas=[2, 1, 3]), 2, baseline=(2, 1, 3))
        assert [m.leads_next in (1, 3) for m in made.moves] == [True]

    @pytest.mark.parametrize(
        ("isr", "sick"),
        [
            pytest.param([1], [], id="the others are not in sync"),
            pytest.param([1, 2, 3], [2, 3], id="the others are sick and not demoted"),
        ],
    )
    def test_a_wave_yields_where_it_would_leave_no_healthy_leader(self, isr: list[int], sick: list[int]):
        seen = partition(index=self.LATE, replicas=[2, 1, 3], isr=isr, leader=isr[0])
        undo = record({seen.key: entry(written=seen.replicas)})
        found = snapshot(cluster(seen), now=after(100), undo=undo)
        made = build_plan(context(found, verdicts(cluster(seen), sick=sick)), decisions(back=[returning(1)]))
        assert [m.order for m in made.moves] == [(1, 2, 3)]

    def test_demoted_broker_is_no_reason_for_wave_to_hold(self):
        seen = partition(index=self.LATE, replicas=[2, 1], leader=2)
        made = self.plan(seen, 2, baseline=(1, 2))
        assert [(m.order, m.elect) for m in made.moves] == [((1, 2), True)]

    def test_where_it_is_not_first_at_home_nothing_is_withheld(self):
        made = self.plan(partition(index=self.LATE, replicas=[2, 3, 1]), baseline=(2, 1, 3))
        assert [(m.order, m.kind) for m in made.moves] == [((2, 1, 3), MoveKind.RESTORE)]

    def test_a_partition_in_reassignment_is_left_as_it_is(self):
        made = self.plan(partition(index=self.LATE, replicas=[1, 2, 3], adding=[3]))
        assert made.empty
        assert [h.reason for h in made.holds] == [Reason.REASSIGNING]

    def test_topic_made_in_meantime_waits_for_its_wave_too(self):
        late, early = partition(index=self.LATE), partition(index=self.EARLY)
        seen = cluster(late, early)
        made = build_plan(context(snapshot(seen)), decisions(back=[returning(1)]))
        assert [(m.key.partition, m.leads_next) for m in made.moves] == [(self.LATE, 2)]
        assert set(made.targets) == {late.key}


def test_a_contested_partition_waits():
    seen = partition(replicas=[1, 2, 3])
    fought = replace(entry(written=(1, 2, 3)), contests=3, contested_at=after(90))
    undo = record({seen.key: fought}, demoted(1))
    made = plan(cluster(seen), 1, undo=undo)
    assert made.empty
    assert made.holds[0].reason is Reason.ORDER_OVERWRITTEN


def test_the_digest_names_the_moves_and_nothing_else():
    seen = cluster(*(partition(index=i) for i in range(4)))
    first = plan(seen, 1)
    later = build_plan(context(snapshot(seen, now=after(999)), verdicts(seen, sick=[1])), decisions(1))
    assert first.digest == later.digest
    assert len(first.digest) == 16
    assert first.digest != plan(seen, 2).digest
    assert Plan().digest == plan(seen).digest


def test_a_settled_cluster_needs_no_plan():
    assert plan(cluster(*(partition(index=i, replicas=[1 + i % 3, 1 + (i + 1) % 3]) for i in range(6)))).empty


def test_an_empty_cluster_needs_no_plan():
    assert plan(cluster(), 1) == replace(Plan(), decisions=decisions(1))


def test_every_partition_of_ours_has_a_target():
    mine, other = partition(replicas=[1, 2]), partition("other", replicas=[2, 3])
    assert plan(cluster(mine, other), 1).targets == {mine.key: (2, 1)}


class TestRepeatedPlans:
    def test_plan_without_work_is_repeated_while_inputs_are_same(self):
        facts = context(snapshot(cluster(partition(replicas=[2, 3, 1]))))
        first = build_plan(facts, decisions(1))
        later = facts.with_snapshot(now=after(999))
        assert first.empty
        assert build_plan(later, decisions(1), first).targets is first.targets

    @pytest.mark.parametrize(
        "change",
        [
            {"cluster": cluster(partition(replicas=[2, 3, 1]))},
            {"record": record({partition().key: entry(baseline=(1, 2, 3), written=(2, 3, 1))})},
        ],
        ids=["cluster", "record"],
    )
    def test_any_other_cluster_or_record_is_planned_for_again(self, change: dict[str, object]):
        facts = context(snapshot(cluster(partition(replicas=[2, 3, 1]))))
        first = build_plan(facts, decisions(1))
        assert build_plan(facts.with_snapshot(**change), decisions(1), first).targets is not first.targets

    def test_other_decisions_are_planned_for(self):
        facts = context(snapshot(cluster(partition(replicas=[2, 3, 1]))))
        first = build_plan(facts, decisions(1))
        assert build_plan(facts, decisions(2), first).moves

    @pytest.mark.parametrize(
        "seen", [partition(), partition(adding=[3])], ids=["it moves something", "a guard postpones a move"]
    )
    def test_a_plan_that_time_may_change_is_made_again(self, seen: Partition):
        facts = context(snapshot(cluster(seen)))
        assert build_plan(facts, decisions(1)).inputs is None
