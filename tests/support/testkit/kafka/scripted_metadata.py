"""Answers of a scripted broker about a cluster: metadata, reassignments and fenced brokers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.admin.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from kafka.protocol.admin.topics import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse

from bellwether.adapters.kafka.connection.metadata_decoding import topic_id
from testkit.kafka.scripted_broker import versions

ID = UUID("e42f1285-8d55-4f11-9d4f-494cd7c59edc")
KEPT = topic_id(ID.bytes)
ELR = {"eligible.leader.replicas.version": 1}
Answers = dict[Any, Callable[[Any], Any]]


def partition(index: int, *, isr: Sequence[int] = (1, 2, 3), leader: int = 1) -> Any:
    return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        error_code=0,
        partition_index=index,
        leader_id=leader,
        leader_epoch=5,
        replica_nodes=[1, 2, 3],
        isr_nodes=list(isr),
        offline_replicas=[],
    )


def topic(name: str, *partitions: Any, error: int = 0, internal: bool = False) -> Any:
    return MetadataResponse.MetadataResponseTopic(
        error_code=error, name=name, topic_id=ID, is_internal=internal, partitions=list(partitions)
    )


def metadata(*topics: Any, brokers: Sequence[int] = (1, 2), error: int = 0) -> Callable[[Any], Any]:
    return lambda _: MetadataResponse(
        throttle_time_ms=0,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=n, host="127.0.0.1", port=n, rack=f"r{n}") for n in brokers
        ],
        cluster_id="the-cluster",
        controller_id=1,
        topics=list(topics),
        error_code=error,
    )


def moves(
    *found: Mapping[tuple[str, int], tuple[Sequence[int], Sequence[int]]], error: int = 0
) -> Callable[[Any], Any]:
    """Each call answers with the next of ``found``, the last one for the rest."""
    left = list(found) or [{}]
    kind = ListPartitionReassignmentsResponse.OngoingTopicReassignment

    def answer(_: Any) -> Any:
        now = left.pop(0) if len(left) > 1 else left[0]
        return ListPartitionReassignmentsResponse(
            throttle_time_ms=0,
            error_code=error,
            error_message=None,
            topics=[
                kind(
                    name=name,
                    partitions=[
                        kind.OngoingPartitionReassignment(
                            partition_index=index,
                            replicas=[1, 2, 3],
                            adding_replicas=list(adding),
                            removing_replicas=list(removing),
                        )
                    ],
                )
                for (name, index), (adding, removing) in now.items()
            ],
        )

    return answer


def described(*fenced: int, error: int = 0, allowed: Collection[int] = ()) -> Callable[[Any], Any]:
    return lambda _: DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=error,
        endpoint_type=1,
        cluster_id="the-cluster",
        controller_id=1,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=n, host="127.0.0.1", port=n, rack=None, is_fenced=n in fenced
            )
            for n in (1, 2, *fenced)
        ],
        authorized_operations=set(allowed),
    )


def quorum(observers: Mapping[int, int], error: int = 0, partition_error: int = 0) -> Callable[[Any], Any]:
    """DescribeQuorum: observers of the metadata log, and when each fetched last, in milliseconds."""
    topic = DescribeQuorumResponse.TopicData
    state = topic.PartitionData.ReplicaState

    def answer(_: Any) -> Any:
        nodes = [
            state(replica_id=n, log_end_offset=1, last_fetch_timestamp=at, last_caught_up_timestamp=at)
            for n, at in observers.items()
        ]
        one = topic.PartitionData(
            partition_index=0,
            error_code=partition_error,
            leader_id=101,
            leader_epoch=1,
            high_watermark=1,
            current_voters=[],
            observers=nodes,
        )
        return DescribeQuorumResponse(
            error_code=error, topics=[topic(topic_name="__cluster_metadata", partitions=[one])]
        )

    return answer


def held(*topics: str) -> Callable[[Any], Any]:
    """DescribeLogDirs of a broker with a partition of each of these topics."""
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    kind = result.DescribeLogDirsTopic
    return lambda _: DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=0,
        results=[
            result(
                error_code=0,
                log_dir="/data",
                topics=[
                    kind(
                        name=name,
                        partitions=[
                            kind.DescribeLogDirsPartition(
                                partition_index=0, partition_size=1, offset_lag=0, is_future_key=False
                            )
                        ],
                    )
                    for name in topics
                ],
                total_bytes=1,
                usable_bytes=1,
            )
        ],
    )


def answers(*topics: Any, features: Mapping[str, int] | None = None, **others: Callable[[Any], Any]) -> Answers:
    return {
        ApiVersionsRequest: others.get("versions", versions(features=features)),
        MetadataRequest: others.get("metadata", metadata(*topics)),
        ListPartitionReassignmentsRequest: others.get("moves", moves()),
        DescribeClusterRequest: others.get("described", described()),
        DescribeLogDirsRequest: others.get("held", held()),
        DescribeQuorumRequest: others.get("quorum", quorum({})),
    }
