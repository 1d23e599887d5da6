"""What a run does about others who act in the same moment, on the fake: undo what is ours, leave what is theirs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from bellwether.core.doctor.risks import Risk
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.core.model.undo_record import UndoEntry
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Election, Mode
from bellwether.core.signals import OverrideState
from bellwether.execute import READ_BACK_PAUSES
from bellwether.ports.errors import LeaseUnconfirmed, NotSent
from bellwether.ports.kafka import Outcome
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.messages import assert_wording
from testkit.simulation.fault_injection import Fate, FaultyReader, Interruptions, Killed
from testkit.simulation.memory_site import MemoryLeadership, MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import name


def moved(site: MemorySite, target: Sequence[int]) -> Callable[[], None]:
    """Another tool moves the partition's data, and ends."""

    def act() -> None:
        site.cluster.foreign_reassign(name(), target)
        site.cluster.finish_reassignments()

    return act


def orders(site: MemorySite) -> Partition:
    return site.cluster.partition("orders")


def said(operator: Operator) -> Report:
    report = operator.reconcile()
    assert report is not None
    return report


def test_a_reassignment_that_began_after_our_reorder_is_left_alone_and_named(site: MemorySite):
    operator = Operator(site)
    # The first read behind the reorder is when it shows.
    operator.faults.race("partitions", lambda: None)
    operator.faults.race("partitions", lambda: site.cluster.foreign_reassign(name(), (1, 2, 4)))
    report = said(operator)
    assert report.result.touched == ()
    assert [h.reason for h in report.result.holds] == [Reason.REASSIGNING]
    assert (orders(site).adding, orders(site).removing) == ((4,), (3,))
    site.cluster.finish_reassignments()
    operator.reconciles(3)
    assert (sorted(orders(site).replicas), orders(site).replicas[-1]) == ([1, 2, 4], 1)


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.LATE])
def test_replicas_that_an_unanswered_reorder_set_moving_are_cancelled_by_the_next_reconcile(
    site: MemorySite, fate: Fate
):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.faults.fail_next("reorder", fate)
    report = said(operator)
    assert report.result.stopped is not None
    assert report.result.stopped.reason is Reason.NO_ANSWER
    operator.faults.deliver()
    assert orders(site).adding == (3,)
    report = said(operator)
    (hold,) = report.result.touched
    assert_wording(hold.message)
    assert "cancelled" in hold.message
    assert (sorted(orders(site).replicas), orders(site).reassigning) == ([1, 2, 4], False)
    site.signals.lift(1)
    operator.settle()
    assert orders(site).replicas == (1, 2, 4)


def test_replicas_that_a_killed_run_set_moving_are_cancelled_by_its_successor(site: MemorySite):
    life = Interruptions()
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.world = life.around(operator.world)
    life.at = 3
    with pytest.raises(Killed):
        operator.reconcile()
    assert life.effects == ["take_over", "save", "reorder"]
    assert orders(site).reassigning
    site.clock.advance(20)
    successor = Operator(site, identity="operator-b")
    (hold,) = said(successor).result.touched
    assert hold.reason is Reason.REPLICA_SET_CONFLICT
    assert (sorted(orders(site).replicas), orders(site).reassigning) == ([1, 2, 4], False)


def test_a_foreign_reassignment_is_never_cancelled(site: MemorySite):
    operator = Operator(site).reconciles(2)
    displaced = orders(site).replicas
    moved(site, (2, 3, 4))()
    # They put back the order before, which is our order; but its end had been seen, so it is theirs.
    site.cluster.kill(1)
    site.cluster.foreign_reassign(name(), displaced)
    assert orders(site).target == displaced
    operator.reconciles(3)
    assert orders(site).adding == (1,)
    assert all(r.result.touched == () for r in operator.reports)


def test_election_that_kafka_refuses_is_asked_for_ever_more_rarely(site: MemorySite):
    operator, asked = Operator(site), list[float]()
    elect = operator.world.leaders.elect

    def counted(names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        asked.append(site.clock.monotonic())
        return elect(names)

    operator.world.leaders.elect = counted  # type: ignore[method-assign]
    operator.faults.refuse("elect", name(), "PREFERRED_LEADER_NOT_AVAILABLE")
    operator.reconciles(120, seconds=5)
    assert [later - first for first, later in pairwise(asked)] == [5, 10, 20, 40, 80, 160]
    assert operator.reports[-1].blocked_by_reason == {Reason.REQUEST_REFUSED: 1}
    operator.faults.relent()
    site.cluster.shrink_isr(name(), 3)
    operator.reconciles(2)
    assert orders(site).leader == 2  # at once, as the ISR is another one


def two_batches() -> tuple[MemorySite, Operator]:
    """Broker 1 leads four partitions and is to be demoted, two moves at a time."""
    cluster = MemoryCluster(4)
    cluster.create_topic("orders", assignment=[(1, 2, 3)] * 4)
    made = MemorySite(cluster)
    made.signals.override(1, OverrideState.DEMOTED)
    return made, Operator(made, replace(POLICY, election=Election(batch_size=2)))


def test_stopped_process_ends_after_its_batch_with_nothing_outstanding():
    made, operator = two_batches()
    operator.world = replace(operator.world, stopping=lambda: orders(made).leader != 1)
    result = said(operator).result
    assert (result.reordered, result.elected, result.stopped) == (2, 2, None)
    assert not any(entry.outstanding for entry in recorded(made))


def test_a_move_costs_what_its_longest_batch_of_elections_takes():
    made, operator = two_batches()
    elect, took = operator.world.leaders.elect, iter((0.9, 0.4))

    def slowly(names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        made.clock.advance(next(took))
        return elect(names)

    operator.world.leaders.elect = slowly  # type: ignore[method-assign]
    assert said(operator).elections == (pytest.approx(0.9),)


def test_a_proof_counts_for_what_is_read_after_it(site: MemorySite):
    operator = Operator(site)
    operator.faults.fail_next("reorder", Fate.LOST)
    operator.reconcile()
    (sent,) = next(iter(operator.memory.record.entries.values())).outstanding  # type: ignore[union-attr]
    site.signals.lift(1)
    proven = False
    while not proven:
        operator.reconciles(1)
        memory = operator.memory
        assert memory is not None
        proven = sent.broker in memory.checks and memory.checks[sent.broker].proves(operator.arrival_seconds)
        assert any(sent in entry.outstanding for entry in memory.record.entries.values())
    operator.reconciles(1)
    assert not any(sent in entry.outstanding for entry in operator.memory.record.entries.values())  # type: ignore[union-attr]


def test_a_stray_whose_cancel_is_not_answered_is_cancelled_later(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.faults.fail_next("reorder", Fate.UNANSWERED)
    operator.faults.fail_next("cancel", Fate.LOST)
    operator.reconcile()
    report = said(operator)
    assert report.result.stopped is not None
    assert report.result.stopped.reason is Reason.NO_ANSWER
    assert orders(site).reassigning
    assert said(operator).result.touched
    assert sorted(orders(site).replicas) == [1, 2, 4]


def test_cancel_without_answer_names_what_it_may_still_end(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.faults.fail_next("cancel", Fate.LATE)
    stopped = said(operator).result.stopped
    assert stopped is not None
    assert_wording(stopped.message)
    assert said(operator).result.touched[0].message.endswith("it was cancelled")


def test_order_that_late_cancel_leaves_is_undone_once_and_named(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.faults.fail_next("cancel", Fate.LATE)
    said(operator)
    assert said(operator).result.touched
    operator.reconciles(3)
    (entry,) = recorded(site)
    assert entry.cancel_may_arrive
    before = orders(site).replicas
    site.cluster.foreign_reassign(name(), (4, 1, 3))
    said(operator)
    operator.faults.deliver()
    left = orders(site)
    assert not left.reassigning
    assert left.replicas != before
    report = said(operator)
    assert_wording([note.message for note in report.notes])
    operator.reconciles(3)
    assert orders(site).replicas != left.replicas
    (after,) = recorded(site)
    assert (after.baseline, after.cancel_may_arrive) == (entry.baseline, False)
    site.cluster.foreign_reorder(name(), left.replicas)
    operator.reconciles(3)
    (contested,) = recorded(site)
    assert contested.baseline == left.replicas


def recorded(site: MemorySite) -> list[UndoEntry]:
    assert site.store.record is not None
    return list(site.store.record.entries.values())


def unsent(_: Sequence[TopicPartition], _broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
    raise NotSent("no connection to the controller")


def test_a_cancel_that_was_not_sent_leaves_nothing_to_name(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.world.leaders.cancel = unsent  # type: ignore[method-assign]
    stopped = said(operator).result.stopped
    assert stopped is not None
    assert_wording(stopped.message)


def overtaken(site: MemorySite) -> Operator:
    """An operator whose reorder is late: it is still to come, and a replica has been moved since."""
    operator = Operator(site)
    operator.faults.fail_next("reorder", Fate.LATE)
    operator.reconcile()
    site.signals.lift(1)
    operator.reconciles(3)
    moved(site, (1, 2, 4))()
    operator.reconciles(3)
    return operator


def test_the_order_before_a_late_reorder_of_ours_is_back_after_its_cancel(site: MemorySite):
    operator = overtaken(site)
    operator.faults.deliver()
    operator.reconciles(5)
    assert orders(site).replicas == (1, 2, 4)
    assert not any("another tool" in note.message for report in operator.reports for note in report.notes)


@pytest.mark.parametrize("change", [{"suspend": True}, {"mode": Mode.OBSERVE}])
def test_a_late_reorder_of_ours_is_cancelled_and_named_where_the_policy_does_not_act(
    site: MemorySite, change: Mapping[str, Any]
):
    operator = overtaken(site)
    operator.policy = replace(operator.policy, **change)
    operator.reconcile()
    operator.faults.deliver()
    assert (orders(site).adding, orders(site).removing) == ((3,), (4,))
    (hold,) = said(operator).result.touched
    assert_wording(hold.message)
    assert (sorted(orders(site).replicas), orders(site).reassigning) == ([1, 2, 4], False)


def test_replicas_that_a_late_reorder_has_moved_are_named_as_perhaps_ours(site: MemorySite):
    operator = overtaken(site)
    operator.faults.deliver()
    site.cluster.finish_reassignments()
    (note,) = said(operator).notes
    assert_wording(note.message)


def test_nothing_is_sent_on_lease_that_another_process_has(site: MemorySite):
    operator, before = Operator(site), orders(site)
    leadership = cast(MemoryLeadership, operator.world.leadership)
    leadership.frozen = True
    leadership.lease.holder, leadership.lease.renewed_at = "operator-b", site.clock.monotonic()
    leadership.seconds_left = lambda: 15.0  # type: ignore[method-assign] - as its own clock has it
    operator.reconcile()
    assert operator.fenced
    assert orders(site) == before


def test_kubernetes_error_about_lease_is_not_reported_as_kafkas(site: MemorySite):
    operator, before = Operator(site), orders(site)

    def unanswered() -> None:
        raise LeaseUnconfirmed("the Kubernetes API does not answer")

    operator.world.leadership.confirm = unanswered  # type: ignore[method-assign]
    stopped = said(operator).result.stopped
    assert stopped is not None
    assert stopped.reason is Reason.LEASE_UNCONFIRMED
    assert orders(site) == before
    assert operator.memory is not None
    assert not any(entry.outstanding for entry in operator.memory.record.entries.values())


def test_time_limit_of_request_counts_from_before_lease_is_read(site: MemorySite):
    operator, asked = Operator(site), list[str]()
    operator.world.leaders.start_deadline = lambda: asked.append("start")  # type: ignore[method-assign]
    operator.world.leadership.confirm = lambda: asked.append("confirm")  # type: ignore[method-assign]
    operator.reconcile()
    assert asked[:4] == ["start", "confirm"] * 2


def test_a_stray_is_not_cancelled_on_a_lease_that_does_not_outlast_the_request(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.faults.fail_next("reorder", Fate.UNANSWERED)
    operator.reconcile()
    operator.world.leadership.seconds = operator.world.leaders.request_timeout_seconds  # type: ignore[attr-defined]
    before = orders(site)
    operator.reconcile()
    assert operator.fenced
    assert orders(site) == before
    assert before.reassigning


def test_what_our_reorder_set_moving_is_left_to_the_successor_where_the_lease_does_not_outlast_the_cancel(
    site: MemorySite,
):
    operator = Operator(site)

    def late() -> None:
        moved(site, (1, 2, 4))()
        operator.world.leadership.seconds = 0.1  # type: ignore[attr-defined]

    operator.faults.race("reorder", late)
    operator.reconcile()
    assert operator.fenced
    assert orders(site).reassigning
    site.clock.advance(20)
    (hold,) = said(Operator(site, identity="operator-b")).result.touched
    assert hold.reason is Reason.REPLICA_SET_CONFLICT
    assert (sorted(orders(site).replicas), orders(site).reassigning) == ([1, 2, 4], False)


def test_reassignment_that_has_replaced_stray_since_is_not_cancelled(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.faults.fail_next("reorder", Fate.UNANSWERED)
    operator.reconcile()
    operator.faults.race("partitions", lambda: site.cluster.foreign_reassign(name(), (4, 3, 2)))
    report = said(operator)
    assert report.result.touched == ()
    assert orders(site).reassigning
    assert orders(site).target == (4, 3, 2)


def test_an_order_that_does_not_show_in_time_is_named_and_looked_for_at_once(site: MemorySite):
    operator = Operator(site)
    before = orders(site).replicas
    operator.faults.race("partitions", lambda: None)
    for _ in range(len(READ_BACK_PAUSES) + 1):
        operator.faults.race("partitions", lambda: site.cluster.foreign_reorder(name(), before))
    report = said(operator)
    assert [h.reason for h in report.result.holds] == [Reason.NO_ANSWER]
    assert (report.result.reordered, report.result.elected, report.result.changed) == (0, 1, True)
    operator.reconciles(2)
    assert orders(site).leader != 1


def test_other_replicas_that_one_read_shows_may_be_metadata_that_trails(site: MemorySite):
    operator = Operator(site)
    after = orders(site)
    seen: list[str] = []

    class Trailing(FaultyReader):
        """The first read behind the reorder comes from a broker that does not know the end of a reassignment yet."""

        def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
            seen.append("read")
            if len(seen) == 2:
                return (replace(after, replicas=(1, 2, 3, 4)),)
            return super().partitions(topics)

    operator.world = replace(operator.world, clusters=Trailing(operator.world.clusters, operator.faults))
    report = said(operator)
    assert len(seen) > 2
    assert (report.result.touched, report.result.stopped) == ((), None)
    assert orders(site).leader != 1


def test_a_reassignment_that_ended_before_our_election_is_named_though_the_leader_moved(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site, (1, 2, 4)))
    operator.faults.race("elect", site.cluster.finish_reassignments)
    report = said(operator)
    (hold,) = report.result.touched
    assert_wording(hold.message)
    assert report.result.stopped is not None
    assert (orders(site).replicas, orders(site).leader) == ((2, 3, 1), 2)


def test_a_leader_is_elected_when_it_is_read_back_not_when_kafka_says_so(site: MemorySite):
    operator = Operator(site)
    site.cluster.elect_preferred = lambda _: True  # type: ignore[method-assign]
    report = said(operator)
    assert (report.result.reordered, report.result.elected, orders(site).leader) == (1, 0, 1)
    assert [(h.reason, h.message) for h in report.result.holds] == [
        (Reason.NO_ANSWER, "Kafka accepted the election, but later reads do not show the new leader.")
    ]


@pytest.mark.parametrize("listed", [True, False], ids=["Kafka lists its registrations", "Kafka before 4.0"])
def test_a_list_that_names_a_removed_broker_is_held_and_where_kafka_says_so_nothing_is_sent(
    site: MemorySite, listed: bool
):
    site.cluster.unregister(3)
    if not listed:
        site.cluster.unregistered.clear()
    operator = Operator(site)
    for _ in range(2):
        report = said(operator)
        assert [h.reason for h in report.held] == [Reason.REMOVED_BROKER]
    assert "no such broker is registered" in report.held[0].message or listed
    assert report.risk_summary.counts.get(Risk.REMOVED_BROKER, 0) == listed
    assert orders(site).replicas == (1, 2, 3)
