"""The contract of the ports while all four brokers live: what the two requests promise, and what they do not."""

from __future__ import annotations

import pytest

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.errors import NotSent
from bellwether.ports.kafka import Reorder
from testkit.kafka.contract_clusters import Subject, partition


def first(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


def test_a_snapshot_names_every_broker_and_every_partition(subject: Subject):
    topic = subject.create((1, 2, 3), (2, 3, 4))
    seen = subject.reader.read()
    assert seen.cluster_id
    assert seen.live == {1, 2, 3, 4}
    ours = [p for p in seen.partitions if p.topic == topic]
    assert [(p.index, p.replicas, sorted(p.isr), p.leader) for p in ours] == [
        (0, (1, 2, 3), [1, 2, 3], 1),
        (1, (2, 3, 4), [2, 3, 4], 2),
    ]
    assert {len(p.topic_id) for p in ours} == {22}
    assert not any(p.reassigning or p.internal or p.elr for p in ours)


def test_a_fresh_read_names_only_the_topics_that_were_asked_for_and_that_exist(subject: Subject):
    topic = subject.create((1, 2, 3))
    assert [p.name for p in subject.reader.partitions([topic, "never-made"])] == [first(topic)]
    assert subject.reader.partitions(["never-made"]) == ()
    assert subject.reader.partitions([]) == ()


def test_reorder_keeps_leader_its_epoch_and_replica_set(subject: Subject):
    topic = subject.create((1, 2, 3))
    before = partition(subject, topic)
    assert subject.mover.reorder([Reorder(first(topic), (2, 3, 1))])[first(topic)].error == "NONE"
    subject.eventually(lambda: partition(subject, topic).replicas == (2, 3, 1))
    after = partition(subject, topic)
    assert (after.leader, after.leader_epoch, set(after.isr)) == (1, before.leader_epoch, {1, 2, 3})
    assert not after.reassigning


def test_a_reorder_can_be_sent_to_one_broker_which_says_that_it_forwards(subject: Subject):
    topic = subject.create((1, 2, 3))
    subject.reader.read()
    chosen = subject.mover.choose()
    assert chosen in {1, 2, 3, 4}
    for broker in (chosen, 4):
        order = (2, 3, 1) if broker == chosen else (3, 1, 2)
        assert subject.mover.reorder([Reorder(first(topic), order)], broker)[first(topic)].error == "NONE"
        subject.eventually(lambda order=order: partition(subject, topic).replicas == order)
        assert subject.mover.forwards(broker)


def test_what_is_for_a_broker_that_does_not_exist_is_not_sent(subject: Subject):
    topic = subject.create((1, 2, 3))
    subject.reader.read()
    with pytest.raises(NotSent):
        subject.mover.reorder([Reorder(first(topic), (2, 3, 1))], 99)
    assert not subject.mover.forwards(99)
    assert partition(subject, topic).replicas == (1, 2, 3)


def test_an_election_moves_leadership_to_the_first_of_the_order(subject: Subject):
    topic = subject.create((1, 2, 3))
    before = partition(subject, topic)
    subject.mover.reorder([Reorder(first(topic), (2, 3, 1))])
    outcome = subject.mover.elect([first(topic)])[first(topic)]
    assert outcome.ok
    assert outcome.error == "NONE"
    subject.eventually(lambda: partition(subject, topic).leader == 2)
    assert partition(subject, topic).leader_epoch > before.leader_epoch
    assert set(partition(subject, topic).isr) == {1, 2, 3}


def test_an_election_that_is_not_needed_says_so_and_counts_as_success(subject: Subject):
    topic = subject.create((1, 2, 3))
    outcome = subject.mover.elect([first(topic)])[first(topic)]
    assert outcome.error == "ELECTION_NOT_NEEDED"
    assert outcome.ok


def test_a_request_for_the_present_order_succeeds_and_changes_nothing(subject: Subject):
    topic = subject.create((1, 2, 3))
    before = partition(subject, topic)
    assert subject.mover.reorder([Reorder(first(topic), (1, 2, 3))])[first(topic)].ok
    assert partition(subject, topic) == before


def test_another_replica_set_of_the_same_size_is_carried_out_and_called_success(subject: Subject):
    topic = subject.create((1, 2, 3))
    assert subject.mover.reorder([Reorder(first(topic), (2, 3, 4))])[first(topic)].error == "NONE"
    subject.eventually(lambda: set(partition(subject, topic).replicas) == {2, 3, 4})


@pytest.mark.parametrize("order", [(2, 1), (2, 3, 1, 4)])
def test_another_number_of_replicas_is_refused_since_4_1(subject: Subject, order: tuple[int, ...]):
    topic = subject.create((1, 2, 3))
    outcome = subject.mover.reorder([Reorder(first(topic), order)])[first(topic)]
    assert outcome.error == ("NONE" if subject.version < (4, 1) else "INVALID_REPLICATION_FACTOR")
    assert outcome.ok == (subject.version < (4, 1))
    subject.eventually(lambda: partition(subject, topic).replicas == (order if subject.version < (4, 1) else (1, 2, 3)))


def test_stale_view_does_not_put_back_raised_factor_since_4_1(subject: Subject):
    topic = subject.create((1, 2, 3))
    subject.reassign(topic, (1, 2, 3, 4))
    outcome = subject.mover.reorder([Reorder(first(topic), (2, 3, 1))])[first(topic)]
    assert outcome.error == ("NONE" if subject.version < (4, 1) else "INVALID_REPLICATION_FACTOR")
    left = (2, 3, 1) if subject.version < (4, 1) else (1, 2, 3, 4)
    subject.eventually(lambda: partition(subject, topic).replicas == left)


def test_a_recreated_topic_is_hit_by_its_name(subject: Subject):
    topic = subject.create((1, 2, 3))
    old = partition(subject, topic)
    subject.delete(topic)
    subject.create((2, 3, 4), topic=topic)
    assert partition(subject, topic).topic_id != old.topic_id
    assert subject.mover.reorder([Reorder(old.name, (2, 1, 3))])[old.name].error == "NONE"
    subject.eventually(lambda: set(partition(subject, topic).replicas) == {1, 2, 3})


@pytest.mark.parametrize("index", [0, 7])
def test_unknown_partitions_are_named_and_block_no_others(subject: Subject, index: int):
    topic = subject.create((1, 2, 3))
    unknown = TopicPartition("never-made" if index == 0 else topic, index)
    orders = [Reorder(unknown, (2, 3, 1)), Reorder(first(topic), (2, 3, 1))]
    reordered = subject.mover.reorder(orders)
    elected = subject.mover.elect([unknown, first(topic)])
    cancelled = subject.mover.cancel([unknown])
    assert (
        reordered[unknown].error == elected[unknown].error == cancelled[unknown].error == "UNKNOWN_TOPIC_OR_PARTITION"
    )
    assert reordered[first(topic)].error == elected[first(topic)].error == "NONE"


def test_a_broker_that_was_never_registered_is_refused(subject: Subject):
    topic = subject.create((1, 2, 3))
    outcome = subject.mover.reorder([Reorder(first(topic), (2, 1, 99))])[first(topic)]
    assert outcome.error == "INVALID_REPLICA_ASSIGNMENT"
    assert partition(subject, topic).replicas == (1, 2, 3)


@pytest.mark.parametrize("order", [(), (2, 2, 1)], ids=["empty", "twice the same broker"])
def test_an_order_that_is_none_is_refused(subject: Subject, order: tuple[int, ...]):
    topic = subject.create((1, 2, 3))
    outcome = subject.mover.reorder([Reorder(first(topic), order)])[first(topic)]
    assert outcome.error == "INVALID_REPLICA_ASSIGNMENT"
    assert partition(subject, topic).replicas == (1, 2, 3)


def test_an_empty_request_gets_an_empty_answer_and_no_election(subject: Subject):
    topic = subject.create((1, 2, 3))
    subject.mover.reorder([Reorder(first(topic), (2, 3, 1))])
    assert subject.mover.reorder([]) == subject.mover.elect([]) == subject.mover.cancel([]) == {}
    assert partition(subject, topic).leader == 1


def test_partition_that_is_named_twice_is_mistake_of_caller(subject: Subject):
    topic = subject.create((1, 2, 3))
    with pytest.raises(ValueError, match="twice"):
        subject.mover.elect([first(topic), first(topic)])
    with pytest.raises(ValueError, match="twice"):
        subject.mover.reorder([Reorder(first(topic), (2, 3, 1)), Reorder(first(topic), (3, 2, 1))])
    assert partition(subject, topic).replicas == (1, 2, 3)


def test_cancelling_where_nothing_is_in_flight_says_so(subject: Subject):
    topic = subject.create((1, 2, 3))
    assert subject.mover.cancel([first(topic)])[first(topic)].error == "NO_REASSIGNMENT_IN_PROGRESS"


def test_many_partitions_move_in_one_request_each_way(subject: Subject):
    topic = subject.create(*[(1, 2, 3)] * 50)
    names = [TopicPartition(topic, i) for i in range(50)]
    assert all(o.ok for o in subject.mover.reorder([Reorder(n, (3, 2, 1)) for n in names]).values())
    assert all(o.ok for o in subject.mover.elect(names).values())
    subject.eventually(lambda: {p.leader for p in subject.reader.partitions([topic])} == {3})


def test_an_avoided_broker_changes_no_answer(subject: Subject):
    topic = subject.create((1, 2, 3))
    subject.reader.avoid([1, 2])
    assert subject.mover.reorder([Reorder(first(topic), (2, 3, 1))])[first(topic)].ok
    subject.eventually(lambda: partition(subject, topic).replicas == (2, 3, 1))
    subject.reader.avoid([])
