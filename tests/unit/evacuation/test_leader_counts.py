"""Leaders counted without the decoder of the product, next to kafka-python's own encoder."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataResponse

from evacuation.leader_counts import VERSION, count_leaders

Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
LEADERS = st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 4)), max_size=200)


def body(*topics: list[tuple[int, int]], error: int = 0) -> bytes:
    """A response with these topics; of each partition, its leader and how large its ISR is."""
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=n, host="kafka" * 40, port=9092, rack=rack)
        for n, rack in ((1, None), (2, "rack-a"))
    ]
    made = [
        Topic(
            error_code=error,
            name=f"topic-{number}",
            topic_id=UUID(int=number + 1),
            is_internal=False,
            partitions=[
                Partition(
                    error_code=0,
                    partition_index=index,
                    leader_id=leader,
                    leader_epoch=7,
                    replica_nodes=[1, 2, 3],
                    isr_nodes=list(range(isr)),
                    offline_replicas=[],
                )
                for index, (leader, isr) in enumerate(partitions)
            ],
        )
        for number, partitions in enumerate(topics)
    ]
    response = MetadataResponse(
        version=VERSION, throttle_time_ms=0, brokers=brokers, cluster_id="a-cluster", controller_id=2, topics=made
    )
    return bytes(response.encode())


@given(st.lists(LEADERS, max_size=3))
def test_every_leader_is_counted_once(topics: list[list[tuple[int, int]]]):
    counted = count_leaders(body(*topics))
    leaders = [leader for topic in topics for leader, _ in topic]
    assert counted == {leader: leaders.count(leader) for leader in leaders}


def test_a_topic_that_cannot_be_described_is_no_topic_without_leaders():
    with pytest.raises(ValueError, match="error 3"):
        count_leaders(body([(1, 1)], error=3))
