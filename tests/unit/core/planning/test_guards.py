"""The ordered chain of refusals, and each link of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.refusals import Hold, Refusal
from bellwether.core.model.snapshot import RefusedOrder
from bellwether.core.planning.guards import (
    REORDER_GUARDS,
    ProposedOrder,
    contested,
    external_operation_running,
    immovable,
    leader_unknown,
    names_removed_broker,
    reassigning,
    refuse_election,
    refuse_reorder,
    refused_before,
    remember_refusals,
)
from bellwether.core.reasons import Reason
from testkit.messages import assert_wording
from testkit.values.builders import after, cluster, entry, partition, snapshot

AWAY = (2, 3, 1)
FOUGHT = replace(entry(), contests=1, contested_at=after(0))


def proposal(
    seen: Partition | None = None, target: tuple[int, ...] = AWAY, fought: bool = False, now: datetime | None = None
) -> ProposedOrder:
    return ProposedOrder(seen or partition(), target, FOUGHT if fought else None, now or after(0))


def test_what_moves_is_asked_before_who_insists():
    assert (
        immovable,
        leader_unknown,
        reassigning,
        names_removed_broker,
        contested,
        external_operation_running,
        refused_before,
    ) == REORDER_GUARDS


def test_order_with_removed_broker_is_refused_by_name():
    asked = proposal()._replace(removed=frozenset({3, 9}))
    refusal = refuse_reorder(asked)
    assert refusal is not None
    assert refusal.reason is Reason.REMOVED_BROKER
    assert_wording(refusal.message)
    assert refuse_reorder(asked._replace(target=asked.partition.replicas)) is None, "the list as it is needs no request"
    assert refuse_reorder(asked._replace(removed=frozenset({9}))) is None


def test_first_refusal_of_chain_is_one_that_is_given():
    both = proposal(partition(adding=[3]), fought=True)
    assert contested(both) is not None
    refusal = refuse_reorder(both)
    assert refusal is not None
    assert refusal.reason is Reason.REASSIGNING


def refused(times: int, at: float, order: tuple[int, ...] = AWAY) -> RefusedOrder:
    return RefusedOrder(order, times, after(at), "INVALID_REPLICA_ASSIGNMENT: no broker 9")


def test_what_kafka_refused_is_asked_again_ever_more_rarely():
    for times, waits in ((1, 5), (2, 10), (3, 20), (20, 600)):
        seen = proposal()._replace(refused=refused(times, 0))
        assert refused_before(seen._replace(now=after(waits - 0.1))) is not None
        assert refused_before(seen._replace(now=after(waits))) is None


def test_another_order_than_refused_one_is_asked_for_at_once():
    assert refused_before(proposal()._replace(refused=refused(9, 0, (3, 2, 1)))) is None


def test_refusals_are_counted_until_another_order_is_wanted():
    seen = partition()
    held = Hold(seen.key, seen.topic, Reason.REMOVED_BROKER, "no")
    facts = snapshot(cluster(seen), now=after(0))
    once = remember_refusals(facts, [held], [], {seen.key: AWAY})
    twice = remember_refusals(replace(facts, refused=once, now=after(5)), [held], [], {seen.key: AWAY})
    assert (once[seen.key].times, twice[seen.key].times, twice[seen.key].at) == (1, 2, after(5))
    facts = replace(facts, refused=twice, now=after(6))
    assert remember_refusals(facts, [], [], {seen.key: AWAY}) == twice
    assert remember_refusals(facts, [], [], {seen.key: (3, 2, 1)}) == {}


def test_a_refused_election_waits_while_the_isr_is_the_same():
    seen = partition(replicas=AWAY, leader=AWAY[-1], isr=(1, 2, 3))
    held = Hold(seen.key, seen.topic, Reason.REQUEST_REFUSED, "PREFERRED_LEADER_NOT_AVAILABLE")
    facts = snapshot(cluster(seen), now=after(0))
    known = remember_refusals(facts, [], [held], {seen.key: AWAY})
    asked = proposal(seen)._replace(refused=known[seen.key], now=after(4))
    assert refused_before(asked) is not None
    assert refused_before(asked._replace(now=after(5))) is None
    assert refused_before(asked._replace(partition=replace(seen, isr=(1, 2)))) is None
    assert refused_before(asked._replace(partition=replace(seen, replicas=(3, 2, 1)))) is None
    assert remember_refusals(replace(facts, refused=known), [], [], {}) == known
    led = replace(seen, leader=AWAY[0])
    assert remember_refusals(replace(facts, cluster=cluster(led), refused=known), [], [], {seen.key: AWAY}) == {}


def test_nothing_against_it_is_no_refusal():
    assert refuse_reorder(proposal()) is None


@pytest.mark.parametrize(
    ("seen", "refused"),
    [
        pytest.param(partition(), False, id="at rest"),
        pytest.param(partition(adding=[3]), True, id="replicas are added"),
        pytest.param(partition(removing=[3]), True, id="replicas are removed"),
    ],
)
def test_a_partition_in_reassignment_is_left_alone(seen: Partition, refused: bool):
    assert (reassigning(proposal(seen)) is not None) is refused


@pytest.mark.parametrize(
    ("contests", "seconds", "refused"),
    [
        pytest.param(1, 0, True, id="just now"),
        pytest.param(1, 4.9, True, id="within the first wait"),
        pytest.param(1, 5, False, id="after the first wait"),
        pytest.param(2, 9.9, True, id="the second wait is longer"),
        pytest.param(2, 10, False, id="after the second wait"),
        pytest.param(50, 599, True, id="no wait is longer"),
        pytest.param(50, 600, False, id="than ten minutes"),
    ],
)
def test_a_contested_order_is_written_again_only_after_a_pause(contests: int, seconds: float, refused: bool):
    asked = proposal(now=after(seconds))._replace(entry=replace(FOUGHT, contests=contests))
    assert (contested(asked) is not None) is refused


BUSY = Refusal(Reason.EXTERNAL_OPERATION, "KafkaRebalance full is running")


@pytest.mark.parametrize(
    ("fought", "busy", "target", "refused"),
    [
        pytest.param(True, BUSY, AWAY, True, id="another client has overwritten it, and works on"),
        pytest.param(True, None, AWAY, False, id="no external operation any more"),
        pytest.param(False, BUSY, AWAY, False, id="not overwritten: a demotion goes on"),
        pytest.param(True, BUSY, (1, 2, 3), False, id="it goes home at a person's request"),
    ],
)
def test_what_others_have_overwritten_is_theirs_while_they_work(
    fought: bool, busy: Refusal | None, target: tuple[int, ...], refused: bool
):
    seen = partition(replicas=(1, 3, 2)) if target == (1, 2, 3) else partition()
    asked = proposal(seen, target, fought, after(3600))._replace(external_operation=busy)
    found = refuse_reorder(asked)
    assert (found is not None and found.reason is Reason.EXTERNAL_OPERATION) is refused


def test_preferred_racks_wait_for_an_external_operation():
    asked = proposal()._replace(external_operation=BUSY, for_racks=True)
    found = refuse_reorder(asked)
    assert found is not None
    assert found.reason is Reason.EXTERNAL_OPERATION
    assert refuse_reorder(asked._replace(external_operation=None)) is None
    assert refuse_reorder(asked._replace(target=asked.partition.replicas)) is None


def test_an_order_that_is_right_already_is_not_contested():
    assert contested(proposal(target=(1, 2, 3), fought=True)) is None


@pytest.mark.parametrize(
    ("seen", "target", "demoted", "chosen", "living", "reason"),
    [
        pytest.param(partition(), AWAY, {1}, 2, cluster(), None, id="nothing against it"),
        pytest.param(partition(), (1, 2, 3), set(), 1, cluster(), None, id="no broker is demoted"),
        pytest.param(partition(replicas=[1]), (1,), {1}, None, cluster(), Reason.ONLY_REPLICA, id="RF 1"),
        pytest.param(
            partition(replicas=[1, 2]), (1, 2), {1, 2}, None, cluster(), Reason.NO_HEALTHY_ISR_MEMBER, id="all demoted"
        ),
        pytest.param(
            partition(isr=[1]), AWAY, {1}, None, cluster(), Reason.NO_HEALTHY_ISR_MEMBER, id="no healthy ISR member"
        ),
        pytest.param(
            partition(isr=[2, 3]), (1, 2, 3), set(), None, cluster(), Reason.PREFERRED_NOT_IN_ISR, id="first not in ISR"
        ),
        pytest.param(
            partition(), (1, 2, 3), set(), None, cluster(fenced=[1]), Reason.PREFERRED_NOT_IN_ISR, id="first fenced"
        ),
        pytest.param(
            partition(), (1, 2, 3), set(), None, cluster(brokers=[2, 3]), Reason.PREFERRED_NOT_IN_ISR, id="first dead"
        ),
    ],
)
def test_an_election_is_refused_with_the_reason_that_helps_most(
    seen: Partition,
    target: tuple[int, ...],
    demoted: set[int],
    chosen: int | None,
    living: Cluster,
    reason: Reason | None,
):
    refusal = refuse_election(seen, target, frozenset(demoted), chosen, snapshot(living))
    assert (refusal.reason if refusal else None) is reason
    assert refusal is None or refusal.message


def test_a_refused_election_names_the_replicas_that_cannot_lead():
    refusal = refuse_election(partition(isr=[1]), AWAY, frozenset({1}), None, snapshot(cluster()))
    assert refusal is not None
    assert_wording(refusal.message)
