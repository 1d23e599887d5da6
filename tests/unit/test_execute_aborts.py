"""Where a run stops, what it holds and what it never sends: the world answers late, in part, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.audit import AuditEntry, complete_entry, with_orders
from bellwether.core.settings.policy import Election, Policy
from bellwether.execute import READ_BACK_PAUSES, Execution, execute
from bellwether.ports.errors import Fenced, Terminal, Transient
from bellwether.ports.kafka import Outcome, Reorder
from bellwether.ports.world import World
from testkit.messages import assert_wording
from testkit.simulation.fault_injection import Fate, Faults, Interruptions
from testkit.simulation.memory_site import MemorySite
from testkit.values.builders import context, decisions, name, site, verdicts

BATCHES = Policy(name="main", election=Election(batch_size=2))


class Run:
    """Broker 1 of three is to be demoted; ``execute`` is called once, in a world that fails as scripted."""

    def __init__(self, made: MemorySite | None = None) -> None:
        self.site = made or site()
        self.faults = Faults()
        self.life = Interruptions()
        self.world: World = self.life.around(self.faults.around(self.site.process()))
        self.record: UndoRecord = self.world.records.take_over(self.site.cluster_id)
        self.life.effects.clear()
        self.plan = self.devise()

    def devise(self) -> Plan:
        found = Snapshot(self.site.clock.now(), self.site.cluster.snapshot(), self.record)
        return build_plan(context(found, verdicts(found.cluster, sick=[1])), decisions(1))

    def carry_out(self) -> Execution:
        return execute(self.plan, self.record, BATCHES, self.world)

    @property
    def led(self) -> int:
        return self.site.cluster.snapshot().leaders()[1]


def reasons(done: Execution) -> list[Reason]:
    return [h.reason for h in done.holds]


def test_record_is_saved_then_each_batch_is_reordered_and_elected():
    run = Run()
    done = run.carry_out()
    assert run.life.effects[0] == "save"
    assert run.life.effects.count("save") == 1
    assert run.life.effects.count("reorder") == 2
    assert (done.reordered, len(done.led), done.stopped, run.led) == (4, 2, None, 0)


def requests(run: Run) -> list[str]:
    """The reads of topics, reorders and elections that are sent from now on, in their order."""
    sent = list[str]()
    for port, kind in (
        (run.world.clusters, "partitions"),
        (run.world.leaders, "reorder"),
        (run.world.leaders, "elect"),
    ):
        inner = getattr(port, kind)

        def watched(*asked: object, _inner: Callable[..., object] = inner, _kind: str = kind) -> object:
            sent.append(_kind)
            return _inner(*asked)

        setattr(port, kind, watched)
    return sent


def lagging(run: Run, reads: int) -> None:
    """The next reads of topics show partitions as they are now, as a broker does that is behind the controller."""
    before = run.site.cluster.partitions()
    ask, left = run.world.clusters.partitions, iter(range(reads))
    run.world.clusters.partitions = lambda topics: ask(topics) if next(left, None) is None else before  # type: ignore[method-assign]


def elections_only(count: int) -> Run:
    """A run of two batches of leaders."""
    run = Run(site(3, {"orders": count}))
    run.plan = replace(run.plan, moves=tuple(m for m in run.plan.moves if m.elect))
    return run


def test_leaders_are_elected_on_the_controller_s_answer_and_one_read_is_read_back_and_check():
    run = elections_only(9)
    sent = requests(run)
    assert len(run.carry_out().led) == 3
    assert sent == [*["partitions", "reorder", "elect"] * 2, "partitions"]


def test_leaders_do_not_wait_until_a_broker_shows_the_batch_before_and_it_is_read_back_in_the_end():
    run = elections_only(9)
    lagging(run, reads=2)
    sent = requests(run)
    done = run.carry_out()
    assert sent == [*["partitions", "reorder", "elect"] * 2, "partitions"]
    assert (done.reordered, len(done.led), done.holds, done.outstanding) == (3, 3, [], set())


def test_coordinators_wait_until_a_broker_shows_the_batch_before():
    run = elections_only(9)
    run.plan = replace(run.plan, moves=tuple(m._replace(internal=True) for m in run.plan.moves))
    lagging(run, reads=3)
    sent = requests(run)
    run.carry_out()
    assert sent[:7] == ["partitions", "reorder", "elect", "partitions", "partitions", "partitions", "reorder"]


def test_mere_reorders_wait_until_a_broker_shows_the_batch_before():
    run = Run(site(3, {"orders": 6}))
    lagging(run, reads=3)
    sent = requests(run)
    run.carry_out()
    assert sent[:7] == ["partitions", "reorder", "elect", "partitions", "partitions", "partitions", "reorder"]


def test_the_read_before_a_batch_of_leaders_finds_what_the_batch_before_set_moving():
    run = elections_only(9)
    made = run.site.cluster
    run.faults.race("reorder", lambda: made.recreate_topic("orders", assignment=[(3, 2, 1)] * 9))
    sent = requests(run)
    done = run.carry_out()
    assert (sent.count("reorder"), len(done.touched)) == (1, 2)
    assert "cancel" not in run.life.effects  # nothing moves


def test_leaders_wait_where_read_shows_more_than_missing_order():
    made = site(4, {"orders": 9})
    run = Run(made)
    run.plan = replace(run.plan, moves=tuple(m for m in run.plan.moves if m.elect))
    run.faults.race("elect", lambda: made.cluster.foreign_reassign(run.plan.moves[0].name, (2, 3, 4)))
    sent = requests(run)
    run.carry_out()
    assert sent[:5] == ["partitions", "reorder", "elect", "partitions", "partitions"]


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.UNANSWERED])
def test_orders_are_read_back_though_their_election_was_not_answered(fate: Fate):
    run = Run(site(3, {"orders": 3}))
    run.faults.fail_next("elect", fate)
    done = run.carry_out()
    assert done.stopped is not None
    assert done.stopped.reason is Reason.NO_ANSWER
    (first_batch,) = [done.record.entries[m.key] for m in run.plan.moves if m.elect]
    assert (first_batch.state, first_batch.outstanding) == (EntryState.DISPLACED, ())


def test_a_conflict_stops_the_run_and_is_undone_though_the_election_was_not_answered():
    made = site(4, {"orders": 1})
    run = Run(made)
    run.faults.race("reorder", lambda: made.cluster.recreate_topic("orders", assignment=[(2, 3, 4)]))
    run.faults.fail_next("elect")
    done = run.carry_out()
    assert done.stopped is not None
    assert done.stopped.reason is Reason.REPLICA_SET_CONFLICT
    now = made.cluster.partition("orders")
    assert (sorted(now.replicas), now.reassigning) == ([2, 3, 4], False)


def test_the_broker_that_is_asked_is_chosen_for_reorders_alone():
    run = Run(site(3, {"orders": 1}))
    assert run.carry_out().asked == run.world.leaders.choose()
    run.plan = replace(run.plan, moves=tuple(m._replace(seen=m.order) for m in run.plan.moves))
    assert run.carry_out().asked is None


def test_a_plan_without_moves_sends_nothing_and_an_unchanged_record_is_not_written():
    run = Run()
    run.plan = Plan()
    writes = run.site.store.writes
    assert run.carry_out().result.changed is False
    assert (run.life.effects, run.site.store.writes) == ([], writes)


def test_record_that_cannot_be_saved_stops_everything_before_it_begins():
    run = Run()
    run.faults.fail_next("save")
    with pytest.raises(Transient):
        run.carry_out()
    assert run.life.effects == ["save"]


@pytest.mark.parametrize("left", [0.0, 1.0, 2.0])
def test_nothing_is_sent_on_lease_that_does_not_outlast_request(left: float):
    run = Run()
    run.world.leadership.seconds = left  # type: ignore[attr-defined]
    with pytest.raises(Fenced, match="Lease"):
        run.carry_out()
    assert run.life.effects == ["save"]


def test_a_lease_that_runs_short_in_the_middle_ends_the_run_before_the_next_request():
    run = Run()
    run.faults.race("reorder", lambda: setattr(run.world.leadership, "seconds", 1.0))
    with pytest.raises(Fenced):
        run.carry_out()
    assert run.life.effects == ["save", "reorder"]


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.UNANSWERED])
@pytest.mark.parametrize("kind", ["partitions", "reorder", "elect"])
def test_request_without_answer_ends_run_and_is_not_repeated(kind: str, fate: Fate):
    run = Run()
    run.faults.fail_next(kind, fate)
    done = run.carry_out()
    assert done.stopped is not None
    assert (done.stopped.reason, kind in done.stopped.message) == (Reason.NO_ANSWER, True)
    assert run.life.effects.count(kind) == (0 if kind == "partitions" else 1)


def test_request_that_is_refused_as_whole_ends_run_with_remedy():
    run = Run()

    def refuse(_: Sequence[Reorder], _broker: int | None) -> Mapping[TopicPartition, Outcome]:
        raise Terminal("not allowed to alter partitions: grant ALTER on Cluster")

    run.world.leaders.reorder = refuse  # type: ignore[method-assign]
    done = run.carry_out()
    assert done.stopped is not None
    assert done.stopped.reason is Reason.REQUEST_REFUSED
    assert "grant ALTER" in done.stopped.message
    assert run.led == 2


def test_what_kafka_refuses_is_held_with_its_words_and_the_rest_goes_on():
    run = Run()
    run.faults.refuse("reorder", name("orders", 0), "POLICY_VIOLATION")
    run.faults.refuse("elect", name("orders", 3), "PREFERRED_LEADER_NOT_AVAILABLE")
    done = run.carry_out()
    assert sorted(reasons(done)) == [Reason.REQUEST_REFUSED, Reason.REQUEST_REFUSED]
    assert "POLICY_VIOLATION" in " ".join(h.message for h in done.holds)
    assert (done.reordered, len(done.led), run.led) == (3, 0, 2)
    assert [h.key.partition for h in done.result.refused_orders] == [0], "an election is retried without a delay"


def test_an_accepted_order_that_never_shows_is_held_after_patience_and_keeps_its_leader():
    run = Run()
    inner = run.world.leaders
    sent = inner.reorder

    def forgetful(orders: Sequence[Reorder], broker: int | None) -> Mapping[TopicPartition, Outcome]:
        kept = [o for o in orders if o.name != name("orders", 0)]
        return {**{o.name: Outcome() for o in orders}, **sent(kept, broker)}

    inner.reorder = forgetful  # type: ignore[method-assign]
    began = run.site.clock.monotonic()
    done = run.carry_out()
    waited = run.site.clock.monotonic() - began
    assert [(h.reason, h.key.partition) for h in done.holds] == [(Reason.NO_ANSWER, 0)]
    assert waited == pytest.approx(sum(READ_BACK_PAUSES))
    assert done.record.entries[run.plan.moves[0].key].state is EntryState.INTENDED
    assert run.site.cluster.partition("orders", 0).leader == 1


def test_an_answer_that_leaves_a_partition_out_is_a_refusal():
    run = Run()
    sent = run.world.leaders.reorder
    run.world.leaders.reorder = lambda *asked: dict(list(sent(*asked).items())[1:])  # type: ignore[method-assign]
    done = run.carry_out()
    assert set(reasons(done)) == {Reason.REQUEST_REFUSED}
    assert_wording(done.holds[0].message)


class TestOutstanding:
    """Four partitions are reordered in two batches; the first request meets its fate."""

    @staticmethod
    def outstanding(done: Execution) -> list[int]:
        return sorted(key.partition for key, entry in done.record.entries.items() if entry.outstanding)

    @pytest.mark.parametrize("fate", Fate)
    def test_a_batch_without_an_answer_stays_outstanding_and_the_next_one_was_not_sent(self, fate: Fate):
        run = Run()
        run.faults.fail_next("reorder", fate)
        done = run.carry_out()
        assert self.outstanding(done) == sorted(m.key.partition for m in run.plan.moves[:2])
        assert {o.broker for e in done.record.entries.values() for o in e.outstanding} == {done.asked}
        assert run.site.store.record is not None
        stored = [e for e in run.site.store.record.entries.values() if e.outstanding]
        assert len(stored) == len(done.record.entries), "a killed process cannot say which of them it sent"

    def test_nothing_is_outstanding_once_all_is_answered(self):
        assert self.outstanding(Run().carry_out()) == []

    def test_a_request_that_was_surely_not_sent_is_not_outstanding(self):
        run = Run()
        run.faults.race("reorder", lambda: run.site.cluster.freeze(1))
        done = run.carry_out()
        assert done.stopped is not None
        assert (done.stopped.reason, self.outstanding(done)) == (Reason.NO_ANSWER, [])

    def test_one_refused_partition_is_not_outstanding(self):
        run = Run()
        run.faults.refuse("reorder", name("orders", 0), "POLICY_VIOLATION")
        assert self.outstanding(run.carry_out()) == []

    def test_an_accepted_order_that_does_not_show_stays_outstanding(self):
        run = Run()
        run.world.leaders.reorder = lambda orders, _broker: {o.name: Outcome() for o in orders}  # type: ignore[method-assign]
        assert len(self.outstanding(run.carry_out())) == len(run.plan.moves)


def test_a_written_order_is_recorded_as_displaced():
    assert {e.state for e in Run().carry_out().record.entries.values()} == {EntryState.DISPLACED}


def test_partition_that_changed_since_plan_is_held_and_not_sent():
    run = Run()
    run.site.cluster.foreign_reorder(name("orders", 0), (3, 2, 1))
    run.site.cluster.delete_topic("orders")
    done = run.carry_out()
    assert set(reasons(done)) == {Reason.CHANGED_SINCE_PLAN}
    assert run.life.effects == ["save"]


def test_an_order_that_is_in_place_by_now_is_not_sent_again():
    run = Run(site(3, {"orders": 1}))
    (move,) = run.plan.moves
    run.site.cluster.foreign_reorder(move.name, move.order)
    done = run.carry_out()
    assert "reorder" not in run.life.effects
    assert (done.reordered, len(done.led), run.led) == (0, 1, 0)


def test_the_audit_entry_is_written_before_the_first_request_and_completed_with_the_result():
    run, kept = Run(), list[tuple[int, AuditEntry]]()

    class Trail:
        def begin(self, entry: AuditEntry) -> None:
            kept.append((run.life.effects.count("reorder"), entry))

        conclude = begin

    entry = AuditEntry(run.site.clock.now(), run.site.cluster_id, 1)
    done = execute(run.plan, run.record, BATCHES, replace(run.world, trail=Trail()), entry=entry)
    assert kept == [(0, with_orders(entry, run.plan.moves, done.asked)), (2, complete_entry(entry, done.result))]


def test_a_topic_that_was_made_again_is_never_touched():
    run = Run()
    run.site.cluster.recreate_topic("orders")
    before = run.site.cluster.mutations
    assert set(reasons(run.carry_out())) == {Reason.CHANGED_SINCE_PLAN}
    assert run.site.cluster.mutations == before


class TestRaces:
    """Something happens between the last check and our request."""

    def run(self, act: Callable[[MemorySite], object], brokers: int = 4) -> tuple[Run, Execution]:
        made = site(brokers, {"orders": 4})
        run = Run(made)
        run.faults.race("reorder", lambda: act(made))
        return run, run.carry_out()

    def stopped(self, done: Execution) -> str:
        assert done.stopped is not None
        assert done.stopped.reason is Reason.REPLICA_SET_CONFLICT
        return done.stopped.message

    def test_a_raised_replication_factor_is_not_put_back(self):
        run, done = self.run(lambda made: made.cluster.raise_rf("orders"))
        assert set(reasons(done)) == {Reason.REQUEST_REFUSED, Reason.CHANGED_SINCE_PLAN}
        assert {len(p.replicas) for p in run.site.cluster.partitions()} == {4}
        assert "INVALID_REPLICATION_FACTOR" in done.holds[0].message

    def test_reassignment_that_we_overrode_is_undone_named_and_ends_run(self):
        def act(made: MemorySite) -> None:
            for p in made.cluster.partitions():
                made.cluster.foreign_reassign(p.name, (2, 3, 4))
            made.cluster.finish_reassignments()

        run, done = self.run(act)
        assert "orders-" in self.stopped(done)
        assert {h.reason for h in done.touched} == {Reason.REPLICA_SET_CONFLICT}
        assert len(done.led) == 0
        assert {tuple(sorted(p.replicas)) for p in run.site.cluster.partitions()} == {(2, 3, 4)}

    def test_a_topic_made_again_in_that_moment_is_put_right_and_named(self):
        def act(made: MemorySite) -> None:
            made.cluster.recreate_topic("orders", assignment=[(2, 3, 4)] * 4)

        run, done = self.run(act)
        assert "the topic was recreated" in self.stopped(done)
        assert not any(p.reassigning for p in run.site.cluster.partitions())
        assert {tuple(sorted(p.replicas)) for p in run.site.cluster.partitions()} == {(2, 3, 4)}

    def test_a_topic_deleted_in_that_moment_is_no_harm(self):
        _, done = self.run(lambda made: made.cluster.delete_topic("orders"))
        assert (done.reordered, bool(done.holds)) == (0, True)

    def test_what_our_reorder_set_moving_is_cancelled_at_once(self):
        run, done = self.run(lambda made: made.cluster.recreate_topic("orders", assignment=[(2, 3, 4)] * 4))
        self.stopped(done)
        waited = run.site.clock.monotonic() - Run(site(4, {"orders": 4})).site.clock.monotonic()
        assert waited == 0

    def test_replicas_that_are_named_are_those_after_cancel_shows(self):
        run, reads = Run(site(4, {"orders": 1})), list[tuple[Partition, ...]]()
        ask = run.world.clusters.partitions

        def late(topics: Collection[str]) -> tuple[Partition, ...]:
            reads.append(ask(topics))
            before = reads[-2] if len(reads) > 1 else reads[-1]
            return before if any(p.reassigning for p in before) else reads[-1]

        run.world.clusters.partitions = late  # type: ignore[method-assign]
        run.faults.race("reorder", lambda: run.site.cluster.recreate_topic("orders", assignment=[(2, 3, 4)]))
        assert_wording(self.stopped(run.carry_out()))

    def test_a_cancel_that_never_shows_is_waited_for_as_long_as_any_other(self):
        run, moving = Run(site(4, {"orders": 1})), list[tuple[Partition, ...]]()
        ask = run.world.clusters.partitions

        def stale(topics: Collection[str]) -> tuple[Partition, ...]:
            seen = ask(topics)
            moving.extend([seen] if any(p.reassigning for p in seen) else [])
            return moving[0] if moving else seen

        run.world.clusters.partitions = stale  # type: ignore[method-assign]
        run.faults.race("reorder", lambda: run.site.cluster.recreate_topic("orders", assignment=[(2, 3, 4)]))
        began = run.site.clock.monotonic()
        self.stopped(run.carry_out())
        assert run.site.clock.monotonic() - began == pytest.approx(sum(READ_BACK_PAUSES))

    @pytest.mark.parametrize(("touched", "more"), [(2, ""), (4, " and 1 more"), (6, " and 3 more")])
    def test_many_touched_partitions_are_summed_up(self, touched: int, more: str):
        count = touched * 3  # broker 1 leads a third of them, and those are sent first
        run = Run(site(3, {"orders": count}))
        run.faults.race("reorder", lambda: run.site.cluster.recreate_topic("orders", assignment=[(3, 2, 1)] * count))
        done = execute(run.plan, run.record, Policy(name="main"), run.world)
        message = self.stopped(done)
        assert len(done.touched) == touched
        assert message.count("orders-") == min(touched, 3)
        assert message.endswith(more or "cancel")
