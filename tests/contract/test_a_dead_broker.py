"""The contract of the ports while one broker of four is dead: reassignments stay in flight, elections are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.kafka import Reorder
from testkit.kafka.contract_clusters import Subject, partition

pytestmark = pytest.mark.usefixtures("dead_four")


def first(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


def rests(subject: Subject, topic: str, replicas: tuple[int, ...]) -> bool:
    """Whether a partition has that order, and the controller moves nothing of it."""
    found = partition(subject, topic)
    return found.replicas == replicas and not found.reassigning


@pytest.fixture(scope="module")
def made_before(subject: Subject) -> dict[str, str]:
    """Topics that were whole before broker 4 died."""
    return {
        "led by 4": subject.create((4, 2, 3)),
        "followed by 4": subject.create((1, 2, 4)),
        "only on 4": subject.create((4,)),
        "below min.insync.replicas": subject.create((3, 4), min_isr=2),
    }


@pytest.fixture(scope="module")
def dead_four(subject: Subject, made_before: dict[str, str]) -> Iterator[dict[str, str]]:
    subject.kill(4)
    yield made_before
    subject.revive(4)


def test_a_dead_broker_is_not_live_and_still_named(subject: Subject):
    seen = subject.reader.read()
    assert seen.live == {1, 2, 3}
    assert 4 in seen.named


def test_the_next_in_the_order_leads_for_a_dead_leader(subject: Subject, dead_four: dict[str, str]):
    topic = dead_four["led by 4"]
    subject.eventually(lambda: partition(subject, topic).leader == 2)
    assert partition(subject, topic).replicas == (4, 2, 3)
    assert set(partition(subject, topic).isr) == {2, 3}


def test_without_a_live_replica_there_is_no_leader(subject: Subject, dead_four: dict[str, str]):
    topic = dead_four["only on 4"]
    subject.eventually(lambda: partition(subject, topic).leader is None)
    lost = partition(subject, topic)
    # Without ELR the last member stays in the ISR though it is dead.
    eligible = ((4,), (), ()) if subject.version < (4, 1) else ((), (4,), (4,))
    assert (lost.isr, lost.elr, lost.last_known_elr) == eligible


def test_not_even_unclean_election_finds_leader_where_no_replica_lives(subject: Subject, dead_four: dict[str, str]):
    topic = dead_four["only on 4"]
    subject.eventually(lambda: partition(subject, topic).leader is None)
    assert subject.unclean.elect(first(topic)).error == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    assert partition(subject, topic).leader is None


def test_an_unclean_election_keeps_an_existing_leader(subject: Subject, dead_four: dict[str, str]):
    topic = dead_four["below min.insync.replicas"]
    subject.eventually(lambda: partition(subject, topic).leader == 3)
    before = partition(subject, topic)
    assert subject.unclean.elect(first(topic)).error == "ELECTION_NOT_NEEDED"
    assert partition(subject, topic) == before


def test_an_unclean_election_of_an_unknown_partition_is_named(subject: Subject):
    assert subject.unclean.elect(first("never-made")).error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_who_left_a_too_small_isr_is_eligible_with_elr(subject: Subject, dead_four: dict[str, str]):
    topic = dead_four["below min.insync.replicas"]
    subject.eventually(lambda: partition(subject, topic).isr == (3,))
    assert partition(subject, topic).elr == (() if subject.version < (4, 1) else (4,))


def test_election_of_dead_first_replica_is_refused_and_leader_stays(subject: Subject, dead_four: dict[str, str]):
    topic = dead_four["followed by 4"]
    assert subject.mover.reorder([Reorder(first(topic), (4, 2, 1))])[first(topic)].ok
    before = partition(subject, topic)
    outcome = subject.mover.elect([first(topic)])[first(topic)]
    assert outcome.error == "PREFERRED_LEADER_NOT_AVAILABLE"
    assert not outcome.ok
    assert partition(subject, topic).leader == before.leader == 1


def test_one_refused_election_does_not_hold_up_the_others(subject: Subject, dead_four: dict[str, str]):
    dead = first(dead_four["led by 4"])
    topic = subject.create((1, 2, 3))
    subject.mover.reorder([Reorder(first(topic), (3, 2, 1))])
    outcomes = subject.mover.elect([dead, first(topic), TopicPartition("never-made", 0)])
    assert {n: o.error for n, o in outcomes.items()} == {
        dead: "PREFERRED_LEADER_NOT_AVAILABLE",
        first(topic): "NONE",
        TopicPartition("never-made", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_stale_view_sets_replicas_moving_and_cancel_undoes_it(subject: Subject):
    topic = subject.create((1, 2, 3))
    assert subject.mover.reorder([Reorder(first(topic), (2, 3, 4))])[first(topic)].error == "NONE"
    # The controller tells what moves; a broker tells the replicas, and hears of them later.
    subject.eventually(lambda: set(partition(subject, topic).replicas) == {1, 2, 3, 4})
    moving = partition(subject, topic)
    assert (moving.adding, moving.removing, moving.leader) == ((4,), (1,), 1)
    assert subject.mover.cancel([first(topic)])[first(topic)].error == "NONE"
    # The set is as before; the order is that of the request, as far as it goes: a cancel restores no order.
    subject.eventually(lambda: rests(subject, topic, (2, 3, 1)))
    after = partition(subject, topic)
    assert (set(after.isr), after.leader) == ({1, 2, 3}, 1)


def test_a_reorder_overrides_a_foreign_reassignment_in_flight(subject: Subject):
    topic = subject.create((1, 2, 3))
    subject.reassign(topic, (1, 2, 4))
    subject.eventually(lambda: 4 in partition(subject, topic).replicas)
    before = partition(subject, topic)
    assert (before.adding, before.removing) == ((4,), (3,))
    assert subject.mover.reorder([Reorder(first(topic), (2, 3, 1))])[first(topic)].error == "NONE"
    if subject.version >= (4, 3):
        # What was being added is now to be removed as well, and stays in sight until it is cancelled.
        subject.eventually(lambda: partition(subject, topic).replicas == (2, 3, 1, 4))
        after = partition(subject, topic)
        assert (after.adding, after.removing) == ((4,), (4,))
        assert subject.mover.cancel([first(topic)])[first(topic)].error == "NONE"
    # Before, the reorder itself ends it, as all that stays is in sync: the leader epoch alone shows it.
    subject.eventually(lambda: rests(subject, topic, (2, 3, 1)))
    after = partition(subject, topic)
    assert after.leader == 1
    assert after.leader_epoch > before.leader_epoch


def test_raise_of_factor_in_flight_is_not_overridden_since_4_1(subject: Subject):
    topic = subject.create((1, 2, 3))
    subject.reassign(topic, (1, 2, 3, 4))
    outcome = subject.mover.reorder([Reorder(first(topic), (2, 3, 1))])[first(topic)]
    assert outcome.error == ("NONE" if subject.version < (4, 1) else "INVALID_REPLICATION_FACTOR")
    if subject.version < (4, 1):
        subject.eventually(lambda: rests(subject, topic, (2, 3, 1)))
    else:
        assert partition(subject, topic).adding == (4,)


def test_the_dead_broker_can_be_reordered_to_the_end(subject: Subject):
    topic = subject.create((4, 1, 2))
    assert subject.mover.reorder([Reorder(first(topic), (2, 1, 4))])[first(topic)].error == "NONE"
    assert subject.mover.elect([first(topic)])[first(topic)].ok
    subject.eventually(lambda: partition(subject, topic).leader == 2)
