"""What one snapshot of metadata says, and what its gaps say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bellwether.core.model.cluster import Cluster, Partition, PartitionKey, TopicPartition
from testkit.messages import assert_wording
from testkit.values.builders import cluster, partition


def test_only_registered_and_unfenced_brokers_live():
    assert cluster(brokers=4, fenced=[2]).live == {1, 3, 4}


def test_dead_broker_is_named_while_replica_lists_name_it():
    seen = cluster(partition(replicas=[1, 9]), brokers=2)
    assert (seen.named, seen.live) == ({1, 2, 9}, {1, 2})


def test_every_named_broker_has_a_count_of_leaders():
    seen = cluster(partition(), partition(index=1, leader=None), partition(index=2, replicas=[2, 9]), brokers=3)
    assert seen.leaders() == {1: 1, 2: 1, 3: 0, 9: 0}


def test_a_broker_holds_what_it_leads_and_what_it_follows():
    led, followed, other = partition(), partition(index=1, replicas=[2, 1]), partition(index=2, replicas=[2, 3])
    assert list(cluster(led, followed, other).held_by(1)) == [led, followed]


def test_what_every_broker_holds_is_found_in_one_pass():
    class Counted(tuple[Partition, ...]):
        passes = 0

        def __iter__(self) -> Iterator[Partition]:
            self.passes += 1
            return super().__iter__()

    partitions = Counted(partition(index=n) for n in range(9))
    seen = replace(cluster(), partitions=partitions)
    assert [len(list(seen.held_by(broker))) for broker in (1, 2, 3, 4)] == [9, 9, 9, 0]
    assert partitions.passes == 1


def test_a_partition_is_found_by_topic_id_and_index():
    one = partition("orders", 3, topic_id="uuid")
    assert cluster(one).by_key == {PartitionKey("uuid", 3): one}
    assert (one.name, str(one.name)) == (TopicPartition("orders", 3), "orders-3")


def test_adding_and_removing_are_reassigning():
    assert partition(adding=[3]).reassigning
    assert partition(removing=[3]).reassigning
    assert not partition().reassigning


def test_target_is_what_is_left_once_reassignment_is_done():
    assert partition(replicas=[1, 2, 3, 4], adding=[4], removing=[1]).target == (2, 3, 4)


LED_BY_4 = partition(replicas=[4, 1, 2], leader_unknown=True)


@pytest.mark.parametrize(
    ("seen", "unlisted"),
    [
        pytest.param(cluster(LED_BY_4), {4}, id="it may be the leader that is not named"),
        pytest.param(cluster(partition(replicas=[1, 4])), {4}, id="in an ISR with another"),
        pytest.param(cluster(partition(replicas=[4], leader=None)), set(), id="dead, and the last of its ISR"),
        pytest.param(cluster(partition(replicas=[4, 1], isr=[1])), set(), id="out of the ISR"),
        pytest.param(cluster(LED_BY_4, brokers=4, fenced=[4]), set(), id="fenced"),
        pytest.param(cluster(partition(replicas=[5, 4], leader_unknown=True)), {4, 5}, id="one of two"),
    ],
)
def test_a_broker_that_serves_without_the_asked_listener_is_unlisted(seen: Cluster, unlisted: set[int]):
    assert seen.unlisted == unlisted


def test_the_message_names_broker_listener_and_remedy():
    assert_wording(cluster(LED_BY_4).without_listener(4))


def test_offline_replicas_of_live_brokers_are_counted():
    seen = cluster(
        partition(offline=[2, 4], replicas=[1, 2, 4]), partition(index=1, offline=[3]), brokers=3, fenced=[3]
    )
    assert seen.offline_counts == {2: 1}
    assert_wording(seen.offline_message(2))
