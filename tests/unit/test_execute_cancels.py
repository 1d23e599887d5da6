"""Cancellations of our own reassignments: what of them may still arrive, and who is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.undo_record import OUTSTANDING_LIMIT
from bellwether.core.reasons import Reason
from bellwether.ports.errors import BellwetherError, LeaseUnconfirmed, NotSent, Terminal
from bellwether.ports.kafka import Outcome
from testkit.simulation.fault_injection import Fate
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import Operator
from testkit.values.builders import name


def moved(site: MemorySite) -> Callable[[], None]:
    def act() -> None:
        site.cluster.foreign_reassign(name(), (1, 2, 4))
        site.cluster.finish_reassignments()

    return act


def refuse_with(error: BellwetherError) -> Callable[..., Mapping[TopicPartition, Outcome]]:
    def cancel(_: Sequence[TopicPartition], _broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        raise error

    return cancel


def test_cancel_that_kafka_refuses_is_not_outstanding(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator.world.leaders, "cancel", refuse_with(Terminal("not authorised")))
        operator.reconcile()
    assert [entry.cancel_may_arrive for entry in operator.memory.record.entries.values()] == [False]


def test_cancel_without_confirmed_lease_is_not_outstanding(site: MemorySite):
    operator, confirmed = Operator(site), []

    def confirm() -> None:
        confirmed.append(1)
        if len(confirmed) > 1:
            raise LeaseUnconfirmed("the Kubernetes API does not answer")

    operator.faults.race("reorder", moved(site))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator.world.leadership, "confirm", confirm)
        stopped = operator.reconcile().result.stopped
    assert stopped is not None
    assert stopped.reason is Reason.LEASE_UNCONFIRMED
    assert [entry.cancel_may_arrive for entry in operator.memory.record.entries.values()] == [False]


def test_cancel_is_not_sent_while_record_is_not_saved(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site))
    operator.faults.fail_next("save", after=1)
    stopped = operator.reconcile().result.stopped
    assert stopped is not None
    assert stopped.reason is Reason.RECORD_UNAVAILABLE
    assert site.cluster.partition("orders").reassigning
    assert [entry.cancel_may_arrive for entry in operator.memory.record.entries.values()] == [False]


def test_many_unanswered_cancels_do_not_grow_the_record(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site))
    operator.faults.fail_next("cancel", Fate.LOST, times=40)
    for _ in range(40):
        operator.reconcile()
    (entry,) = operator.memory.record.entries.values()
    assert entry.cancel_may_arrive
    assert len(entry.outstanding) <= OUTSTANDING_LIMIT


def test_plain_reorder_by_person_during_outstanding_cancel_is_undone_once(site: MemorySite):
    operator = Operator(site)
    operator.faults.race("reorder", moved(site))
    operator.faults.fail_next("cancel", Fate.LATE)
    operator.reconciles(3)
    (before,) = operator.memory.record.entries.values()
    theirs = (*before.written[1:], before.written[0])
    site.cluster.foreign_reorder(name(), theirs)
    report = operator.reconcile()
    assert ["another tool" in note.message for note in report.notes] == [True]
    operator.reconciles(2)
    assert site.cluster.partition("orders").replicas != theirs
    site.cluster.foreign_reorder(name(), theirs)
    operator.reconciles(3)
    (after,) = operator.memory.record.entries.values()
    assert after.baseline == theirs


def test_cancel_that_could_not_be_sent_goes_to_another_broker(site: MemorySite):
    operator = Operator(site)
    leaders, first = operator.world.leaders, operator.world.leaders.choose()
    cancel, asked = leaders.cancel, []

    def unreachable(names: Sequence[TopicPartition], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        asked.append(broker)
        if broker == first:
            raise NotSent(f"broker {broker} is not reachable")
        return cancel(names, broker)

    operator.faults.race("reorder", moved(site))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaders, "choose", lambda: first if first not in asked else first + 1)
        patch.setattr(leaders, "cancel", unreachable)
        operator.reconcile()
    assert asked == [first, first + 1]
    assert [entry.cancel_may_arrive for entry in operator.memory.record.entries.values()] == [False]
    assert not site.cluster.partition("orders").reassigning


def test_proof_of_a_broker_begins_again_after_an_unanswered_cancel(site: MemorySite):
    operator = Operator(site)
    operator.faults.fail_next("reorder", Fate.LATE)
    operator.reconcile()
    operator.faults.resumed = True
    operator.reconciles(1)
    while not any(c.proves(operator.arrival_seconds - 3) for c in operator.memory.checks.values()):
        operator.reconciles(1)
    moved(site)()
    operator.faults.deliver()
    assert site.cluster.partition("orders").reassigning
    operator.faults.fail_next("cancel", Fate.LATE)
    operator.reconcile()
    sent_at = site.clock.monotonic()
    while any(entry.cancel_may_arrive for entry in operator.memory.record.entries.values()):
        operator.reconciles(1)
    assert site.clock.monotonic() - sent_at >= operator.arrival_seconds
