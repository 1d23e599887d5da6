"""Read cluster metadata from a broker of our choice (``ports.kafka.ClusterReader``).

In: Metadata, DescribeCluster (fenced brokers, KIP-1073), ListPartitionReassignments (KIP-455) and, where replicas are
out of the ISR and the cluster keeps one, the ELR (KIP-966). Out: ``core.model.cluster`` values. Called by the cycle
and its executor.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse
from kafka.protocol.admin.topics import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import (
    INVALID_TOPIC_EXCEPTION,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_name,
    from_code,
)
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.model.cluster import Broker, Cluster, Partition, TopicPartition
from bellwether.ports.errors import Terminal, Transient, Unauthorized

_GONE = {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION}
_ELR_FEATURE = "eligible.leader.replicas.version"
_ELR_PAGE = 2000
# An internal topic. A user that may not describe it does not see all the others either, without any error.
_SENTINEL = "__consumer_offsets"

_Moves = Mapping[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]


class KafkaReader:
    """Metadata of one cluster. Every call is bounded by the limits of its ``BrokerPool``."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes

    def read(self) -> Cluster:
        """One snapshot of all brokers and partitions, from one broker. Raises Transient or Terminal."""
        cluster = self._nodes.read(self._snapshot)
        self._nodes.learn(cluster.brokers.values())
        return cluster

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        """Fresh partitions of these topics; a topic that is gone is absent. Raises Transient or Terminal."""
        wanted = sorted(set(topics))
        if not wanted:
            return ()
        return self._nodes.read(lambda dialogue, deadline: _partitions(dialogue, deadline, wanted)[1])

    def avoid(self, brokers: Collection[int]) -> None:
        """From now on ask these brokers only when no other answers."""
        self._nodes.avoid(brokers)

    def _snapshot(self, dialogue: BrokerConnection, deadline: Deadline) -> Cluster:
        metadata, partitions = _partitions(dialogue, deadline, None)
        if all(topic.name != _SENTINEL for topic in metadata.topics):
            for topic in _metadata(dialogue, deadline, [_SENTINEL]).topics:
                if topic.name == _SENTINEL and topic.error_code == TOPIC_AUTHORIZATION_FAILED:
                    _readable(topic, dialogue.address)
        brokers = {b.node_id: Broker(b.node_id, b.rack, b.host, b.port) for b in metadata.brokers}
        for fenced in _fenced(dialogue, deadline):
            brokers.setdefault(fenced.id, fenced)
        dialogue.check_brokers(len(brokers))
        elr_enabled = dialogue.features.get(_ELR_FEATURE, 0) >= 1
        return Cluster(metadata.cluster_id or "", dict(sorted(brokers.items())), partitions, elr_enabled)


def _partitions(
    dialogue: BrokerConnection, deadline: Deadline, topics: list[str] | None
) -> tuple[Any, tuple[Partition, ...]]:
    """Metadata's answer, and its partitions with reassignments and ELR; ``None`` asks for all topics."""
    # Listed before and after: what ends, and what begins, while metadata is read is seen by one of the two.
    moves = dict(_reassignments(dialogue, deadline))
    metadata = _metadata(dialogue, deadline, topics)
    moves.update(_reassignments(dialogue, deadline))
    with deadline.paused():
        partitions = tuple(
            _partition(topic, partition, moves)
            for topic in sorted(metadata.topics, key=lambda t: t.name or "")
            if _readable(topic, dialogue.address)
            for partition in sorted(topic.partitions, key=lambda p: p.partition_index)
        )
    return metadata, _with_elr(dialogue, deadline, partitions)


def _metadata(dialogue: BrokerConnection, deadline: Deadline, topics: list[str] | None) -> Any:
    version = dialogue.version(MetadataRequest, 13)
    if version is None or version < 10:
        raise Terminal(f"{dialogue.address} knows no topic ids: Kafka 2.8 is the oldest that is supported")
    request = MetadataRequest(
        version=version,
        topics=None
        if topics is None
        else [MetadataRequest.MetadataRequestTopic(topic_id=UUID(int=0), name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    answer = dialogue.ask(request, MetadataResponse, deadline, large=True)
    if version >= 13 and answer.error_code:
        raise from_code(answer.error_code, None, dialogue.address, "Metadata", "Describe on Cluster")
    return answer


def _readable(topic: Any, address: str) -> bool:
    """Whether metadata describes this topic; False when it is gone."""
    if topic.error_code in _GONE:
        return False
    if topic.error_code == TOPIC_AUTHORIZATION_FAILED:
        raise Unauthorized(
            f"{address} does not let this user see topic {topic.name}: grant the ACL Describe on Topic *"
        )
    if topic.error_code != NONE:
        raise Transient(f"{address} cannot describe topic {topic.name} now: {error_name(topic.error_code)}")
    return True


def _partition(topic: Any, found: Any, moves: _Moves) -> Partition:
    adding, removing = moves.get(TopicPartition(topic.name, found.partition_index), ((), ()))
    return Partition(
        topic=topic.name,
        topic_id=topic_id(topic.topic_id),
        index=found.partition_index,
        replicas=tuple(found.replica_nodes),
        isr=tuple(found.isr_nodes),
        leader=found.leader_id if found.leader_id >= 0 else None,
        leader_epoch=found.leader_epoch,
        adding=adding,
        removing=removing,
        internal=topic.is_internal,
    )


def topic_id(value: UUID) -> str:
    """A topic id as Kafka's own tools print it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def _reassignments(dialogue: BrokerConnection, deadline: Deadline) -> _Moves:
    """Replicas being added and removed, by partition; all topics, as few ever are."""
    version = dialogue.version(ListPartitionReassignmentsRequest, 0)
    request = ListPartitionReassignmentsRequest(
        version=version or 0, timeout_ms=max(1, int(deadline.left * 1000)), topics=None
    )
    answer = dialogue.ask(request, ListPartitionReassignmentsResponse, deadline)
    if answer.error_code:
        what = "ListPartitionReassignments"
        raise from_code(answer.error_code, answer.error_message, dialogue.address, what, "Describe on Cluster")
    return {
        TopicPartition(topic.name, p.partition_index): (tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
    }


def _fenced(dialogue: BrokerConnection, deadline: Deadline) -> list[Broker]:
    """Brokers that are registered and fenced, where the cluster lists them (KIP-1073); metadata omits them."""
    if dialogue.version(DescribeClusterRequest, 2) != 2:
        return []
    request = DescribeClusterRequest(version=2, endpoint_type=1, include_fenced_brokers=True)
    answer = dialogue.ask(request, DescribeClusterResponse, deadline)
    if answer.error_code:
        return []
    return [Broker(b.broker_id, b.rack, b.host, b.port, fenced=True) for b in answer.brokers if b.is_fenced]


def _with_elr(
    dialogue: BrokerConnection, deadline: Deadline, partitions: tuple[Partition, ...]
) -> tuple[Partition, ...]:
    """The partitions with their eligible leader replicas (KIP-966), asked for only where there can be any."""
    # A member of the ELR is a replica out of the ISR, and only a cluster that switched the feature on has one.
    topics = sorted({p.topic for p in partitions if len(p.isr) < len(p.replicas)})
    if not topics or dialogue.features.get(_ELR_FEATURE, 0) < 1:
        return partitions
    if dialogue.version(DescribeTopicPartitionsRequest, 0) is None:
        return partitions
    found: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = {}
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(
            version=0,
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in topics],
            response_partition_limit=_ELR_PAGE,
            cursor=cursor,
        )
        answer = dialogue.ask(request, DescribeTopicPartitionsResponse, deadline)
        for topic in answer.topics:
            for p in topic.partitions:
                replicas = tuple(p.eligible_leader_replicas or ()), tuple(p.last_known_elr or ())
                if any(replicas):
                    found[topic_id(topic.topic_id), p.partition_index] = replicas
        following = answer.next_cursor
        if following is None:
            break
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )
        topics = [name for name in topics if name >= following.topic_name]
    nothing: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    with_elr = ((p, *found.get(p.key, nothing)) for p in partitions)
    return tuple(replace(p, elr=elr, last_known_elr=last) if elr or last else p for p, elr, last in with_elr)
