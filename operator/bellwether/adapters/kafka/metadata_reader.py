"""Read cluster metadata from a broker of our choice (``ports.kafka.ClusterReader``).

In: Metadata, DescribeCluster (fenced brokers, KIP-1073), ListPartitionReassignments (KIP-455) and, where replicas are
out of the ISR and the cluster keeps one, the ELR (KIP-966). Out: ``core.model.cluster`` values. Called by the cycle
and its executor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from uuid import UUID

from kafka.protocol.admin.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ElectLeadersRequest,
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
)
from bellwether.adapters.kafka.connection.metadata_decoding import Metadata, TopicMetadata, decode_metadata, topic_id
from bellwether.adapters.kafka.connection.response_decoding import (
    MOST_BROKERS,
)
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.adapters.kafka.visible_topics import VisibleTopics
from bellwether.adapters.process_limits import OWN_INSTALLATION, ProcessSum, one_large
from bellwether.core.model.cluster import Broker, Cluster, Partition, PartitionKey, TopicPartition
from bellwether.ports.errors import Terminal, Transient, Unauthorized

_GONE = {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION}
_ELR_FEATURE = "eligible.leader.replicas.version"
_ELR_PAGE = 2000
_FOLLOWS_MILLISECONDS = 3000
"""Live brokers fetch the metadata log at least twice a second."""
_ALTER, _OPERATIONS_UNKNOWN = 7, 31
"""Bits of authorized operations (KIP-430)."""
_ANY_TOPIC = "__consumer_offsets"
"""Whether it exists or not, Kafka refuses it to a user that may describe some topics only: also before there are any
others."""
_BY_NAME = 1000
"""So many topics are asked for by name in one request."""
_MOVING = (
    ("AlterPartitionReassignments", AlterPartitionReassignmentsRequest, 0),
    ("ElectLeaders", ElectLeadersRequest, 1),
)
"""Requests without which no leader is moved, with the oldest version of use."""

BYTES_OF_A_PARTITION = 64
"""Of the limit of an answer: so many bytes allow for one partition or topic, which take 42 to 110."""
_CLUSTERS_OF_LIMIT = 2
"""All readers of a process hold as much as so many clusters of the limit; beyond it the largest is refused."""
_MOST_BROKERS_OF_PROCESS = 5 * MOST_BROKERS
"""Of all readers of a process: each broker has an object in the API and some 13 series."""
_partitions_held = ProcessSum(
    "partitions",
    f"raise --metadata-limit (metadataLimitMebibytes of the chart) and the memory, or {OWN_INSTALLATION}",
)
_brokers_held = ProcessSum("brokers")

_Replicas = tuple[tuple[int, ...], tuple[int, ...]]
_Moves = Mapping[TopicPartition, _Replicas]
"""Replicas being added and removed, by partition."""
_Elr = Mapping[PartitionKey, _Replicas]
"""Eligible leader replicas and the last known ones, by partition."""


class _Read(NamedTuple):
    """A cluster, and the answers that it was made of; ``others`` are all but Metadata's."""

    metadata: Metadata
    others: tuple[object, ...]
    cluster: Cluster
    missing: tuple[str, ...]
    """Requests without which no leader is moved, and which the service does not offer."""
    denied: bool
    """Whether Kafka says that this user has no right to move leaders."""
    absent: frozenset[int]
    """Brokers that replica lists name and metadata neither lists nor shows to serve."""


class KafkaReader:
    """Metadata of one cluster. Every call is bounded by the limits of its ``BrokerPool``.

    While nothing changes, ``read`` returns the same cluster, with all that was derived from it, and asks another broker
    each time. One whose metadata is behind what was read before is not believed.
    """

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes
        self._last: _Read | None = None
        self._offset = -1
        self._settled = False
        self._visible = VisibleTopics(nodes)
        self._unproven: frozenset[str] = frozenset()
        """Topics that metadata does not show, until Kafka has said that they are gone."""

    def read(self) -> Cluster:
        """One snapshot of all brokers and partitions, from one broker. Raises Transient or Terminal.

        Unauthorized where Kafka hides topics from this user: such a view moves nothing, and is not reported either.
        """
        last = self._last
        answer = self._nodes.read_next(self._not_behind) if self._settled else None
        found, offset = answer or self._nodes.read(self._snapshot)
        if found is last:
            offset = max(offset, self._offset)
        else:
            self._nodes.learn(found.cluster.brokers.values())
        whole = self._whole(found)
        self._hold(whole.cluster)
        self._offset = offset
        self._last, self._settled = whole, found is last
        return whole.cluster

    def _whole(self, found: _Read) -> _Read:
        """The same read with what is proven of it. Raises Unauthorized for topics that are hidden from this user."""
        suspects, before = self._visible.held(found.cluster.live) | self._unproven, self._last
        if before is None:
            suspects |= {_ANY_TOPIC}
        elif before.metadata is not found.metadata:
            suspects |= {t.name for t in before.metadata.topics}  # one that is gone may have been hidden
        self._unproven = suspects.difference([t.name for t in found.metadata.topics] if suspects else ())
        names = sorted(self._unproven)
        for start in range(0, len(names), _BY_NAME):
            # Asked by name, Kafka distinguishes a hidden topic from one that is gone or was just created.
            asked = names[start : start + _BY_NAME]
            named = self._nodes.read(partial(_metadata, topics=asked))
            if hidden := sorted(t.name for t in named.topics if t.error_code == TOPIC_AUTHORIZATION_FAILED):
                raise Unauthorized(
                    f"Kafka does not let this user see {len(hidden)} topics ({', '.join(hidden[:3])}), so nothing is"
                    " moved or called safe: grant the ACL Describe on Topic *"
                )
            self._unproven = self._unproven.difference(asked)
        problem = f"this Kafka service does not offer {' and '.join(found.missing)}" if found.missing else ""
        if not problem and found.denied:
            problem = "Kafka refuses every order and election of this user. Grant this user the ACL Alter on Cluster"
        proving = not problem and self._visible.pending(found.cluster.live)
        problem = problem or self._visible.problem(found.cluster.live)
        if (found.cluster.immovable, found.cluster.proving) == (problem, proving):
            return found
        return found._replace(cluster=replace(found.cluster, immovable=problem, proving=proving))

    def _hold(self, cluster: Cluster) -> None:
        """Raises Terminal, and forgets the cluster, if it is the largest of those that are together too many."""
        partitions = _CLUSTERS_OF_LIMIT * self._nodes.limits.metadata_bytes // BYTES_OF_A_PARTITION
        try:
            _partitions_held.hold(self, len(cluster.partitions), partitions)
            _brokers_held.hold(self, len(cluster.brokers), _MOST_BROKERS_OF_PROCESS)
        except Terminal:
            self._last, self._settled = None, False
            raise

    def partitions(self, topics: Collection[str]) -> tuple[Partition, ...]:
        """Fresh partitions of these topics; a topic that is gone is absent. Raises Transient or Terminal."""
        wanted = sorted(set(topics))
        if not wanted:
            return ()
        self._settled = False  # a broker that is behind this answer must not be the next one to be believed
        last = self._last.metadata if self._last is not None else None
        return self._nodes.read(lambda dialogue, deadline: _some_partitions(dialogue, deadline, wanted, last))

    def avoid(self, brokers: Collection[int]) -> None:
        """From now on ask these brokers only when no other answers."""
        self._nodes.avoid(brokers)

    def _not_behind(self, dialogue: BrokerConnection, deadline: Deadline) -> tuple[_Read, int] | None:
        """What this broker shows; None if its metadata is older than the last answer, or may be."""
        known = dialogue.metadata_offset
        found, offset = self._snapshot(dialogue, deadline)
        current = known >= self._offset if found is self._last else known > self._offset
        return (found, offset) if current else None

    def _snapshot(self, dialogue: BrokerConnection, deadline: Deadline) -> tuple[_Read, int]:
        """What this broker shows, and an offset of the metadata log that is not below that state."""
        found = self._read(dialogue, deadline)
        if found is not self._last:
            dialogue.refresh(deadline)
        return found, dialogue.metadata_offset

    def _read(self, dialogue: BrokerConnection, deadline: Deadline) -> _Read:
        last = self._last
        metadata, moves, elr = _described(dialogue, deadline, None, last.metadata if last is not None else None)
        fenced, denied = _described_brokers(dialogue, deadline)
        elr_enabled = dialogue.features.get(_ELR_FEATURE, 0) >= 1
        missing = tuple(name for name, request, least in _MOVING if not dialogue.offers(request, least))
        others = (fenced, moves, elr, elr_enabled, missing, denied)
        same = last if last is not None and last.metadata is metadata and last.others == others else None
        if same:
            known = same.cluster.serving, same.cluster.removed
            if not same.absent or known == _told_apart(dialogue, deadline, same.absent, fenced):
                return same
        brokers = {b.id: b for b in metadata.brokers}
        for one in fenced or ():
            brokers.setdefault(one.id, one)
        dialogue.check_brokers(len(brokers))
        with deadline.paused():
            partitions = _partitions(metadata, moves, elr, dialogue.address)
            cluster = Cluster(metadata.cluster_id, dict(sorted(brokers.items())), partitions, elr_enabled)
            absent = cluster.named.difference(brokers, cluster.unlisted)
        if absent:
            serving, removed = _told_apart(dialogue, deadline, absent, fenced)
            cluster = replace(cluster, serving=serving, removed=removed)
        return _Read(metadata, others, cluster, missing, denied, absent)


def _some_partitions(
    dialogue: BrokerConnection, deadline: Deadline, topics: list[str], last: Metadata | None
) -> tuple[Partition, ...]:
    metadata, moves, elr = _described(dialogue, deadline, topics, last)
    return _partitions(metadata, moves, elr, dialogue.address)


def _described(
    dialogue: BrokerConnection, deadline: Deadline, topics: list[str] | None, last: Metadata | None
) -> tuple[Metadata, _Moves, _Elr]:
    """Metadata's answer, with reassignments and ELR; ``None`` asks for all topics."""
    dialogue.require(MetadataRequest, 13, 10)  # first: a controller's listener lacks this one
    # Listed before and after: what ends, and what begins, while metadata is read is seen by one of the two.
    moves = dict(_reassignments(dialogue, deadline))
    metadata = _metadata(dialogue, deadline, topics, last)
    moves.update(_reassignments(dialogue, deadline))
    return metadata, moves, _elr(dialogue, deadline, metadata)


def _partitions(metadata: Metadata, moves: _Moves, elr: _Elr, address: str) -> tuple[Partition, ...]:
    """The partitions of all topics that exist, with reassignments and eligible leader replicas."""
    moving = {name.topic for name in moves}
    found: list[Partition] = []
    for topic in metadata.topics:
        if not _readable(topic, address):
            continue
        if topic.name in moving or (elr and topic.short):
            found += [_with_others(p, moves.get(p.name), elr.get(p.key)) for p in topic.partitions]
        else:
            found += topic.partitions
    return tuple(found)


def _with_others(partition: Partition, moves: _Replicas | None, elr: _Replicas | None) -> Partition:
    if moves is not None:
        partition = replace(partition, adding=moves[0], removing=moves[1])
    return partition if elr is None else replace(partition, elr=elr[0], last_known_elr=elr[1])


def _metadata(
    dialogue: BrokerConnection, deadline: Deadline, topics: list[str] | None, last: Metadata | None = None
) -> Metadata:
    version = dialogue.require(MetadataRequest, 13, 10)  # with topic ids
    request = MetadataRequest(
        version=version,
        topics=None
        if topics is None
        else [MetadataRequest.MetadataRequestTopic(topic_id=UUID(int=0), name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    if topics is None:
        # A broker sends nothing before it has put the whole answer together.
        deadline.expect(dialogue.large_limit if last is None else last.size)
    read = partial(_decoded, version=version, last=last, most=dialogue.large_limit // BYTES_OF_A_PARTITION)
    answer: Metadata = dialogue.ask(request, MetadataResponse, deadline, large=True, read=read)
    dialogue.check(answer)
    return answer


def _decoded(frame: bytearray, version: int, last: Metadata | None, most: int) -> Metadata:
    with one_large(len(frame)):
        return decode_metadata(frame, version, last, most)


def _readable(topic: TopicMetadata, address: str) -> bool:
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


def _reassignments(dialogue: BrokerConnection, deadline: Deadline) -> _Moves:
    """Replicas being added and removed, by partition; all topics, as few ever are."""
    version = dialogue.require(ListPartitionReassignmentsRequest, 0)
    request = ListPartitionReassignmentsRequest(version=version, timeout_ms=deadline.milliseconds, topics=None)
    answer = dialogue.ask(request, ListPartitionReassignmentsResponse, deadline)
    dialogue.check(answer)
    return {
        TopicPartition(topic.name, p.partition_index): (tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
    }


def _described_brokers(dialogue: BrokerConnection, deadline: Deadline) -> tuple[list[Broker] | None, bool]:
    """Brokers that are registered and fenced (KIP-1073), which metadata omits; None where they are not listed. And
    whether this user's operations on the cluster (KIP-430) lack Alter, as far as they are known.
    """
    if dialogue.version(DescribeClusterRequest, 2) != 2:
        return None, False
    request = DescribeClusterRequest(
        version=2, endpoint_type=1, include_fenced_brokers=True, include_cluster_authorized_operations=True
    )
    answer = dialogue.ask(request, DescribeClusterResponse, deadline)
    if answer.error_code:
        return None, False
    allowed = set(answer.authorized_operations or ())
    denied = bool(allowed) and allowed.isdisjoint((_ALTER, _OPERATIONS_UNKNOWN))
    return [Broker(b.broker_id, b.rack, b.host, b.port, fenced=True) for b in answer.brokers if b.is_fenced], denied


def _told_apart(
    dialogue: BrokerConnection, deadline: Deadline, absent: frozenset[int], fenced: list[Broker] | None
) -> tuple[frozenset[int], frozenset[int]]:
    """Of brokers that are listed nowhere: those that serve, and those that are not registered.

    Every live broker follows the metadata log, whatever listeners it has (KIP-595), and so does a fenced one that
    starts or stops. Where fenced ones are not listed, or the quorum gives no answer, nothing is known of any.
    """
    if fenced is None or not dialogue.offers(DescribeQuorumRequest, 1):
        return frozenset(), frozenset()
    topic = DescribeQuorumRequest.TopicData
    asked = [topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])]
    answer = dialogue.ask(DescribeQuorumRequest(version=1, topics=asked), DescribeQuorumResponse, deadline)
    partitions = [p for of in answer.topics for p in of.partitions]
    if answer.error_code or not partitions or any(p.error_code for p in partitions):
        return frozenset(), frozenset()
    found = [one for p in partitions for one in (*p.current_voters, *p.observers)]
    newest = max((one.last_fetch_timestamp for one in found), default=0)
    serving = absent & {n.replica_id for n in found if newest - n.last_fetch_timestamp <= _FOLLOWS_MILLISECONDS}
    return serving, absent - serving


def _elr(dialogue: BrokerConnection, deadline: Deadline, metadata: Metadata) -> _Elr:
    """Eligible leader replicas (KIP-966), asked for only where there can be any.

    A member of the ELR is a replica out of the ISR, and only a cluster that switched the feature on has one.
    """
    topics: Collection[str] = metadata.short_topics
    if not topics or dialogue.features.get(_ELR_FEATURE, 0) < 1:
        return {}
    if dialogue.version(DescribeTopicPartitionsRequest, 0) is None:
        return {}
    found: dict[PartitionKey, _Replicas] = {}
    left = sum(len(topic.partitions) for topic in metadata.topics if topic.short)
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
                    found[PartitionKey(topic_id(topic.topic_id.bytes), p.partition_index)] = replicas
        following = answer.next_cursor
        if following is None:
            return found
        page = sum(len(topic.partitions) for topic in answer.topics)
        left -= page
        if page == 0 or left < 0:
            raise Transient(f"{dialogue.address} describes other partitions than its metadata names: it is read again")
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )
        topics = [name for name in topics if name >= following.topic_name]
