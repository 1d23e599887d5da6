"""Read the fault tolerance of a cluster: ``ports.kafka.FaultToleranceReader`` over brokers and active controller.

In: topics and brokers. Out: min.insync.replicas of each topic (remembered for a moment), the voters of the KRaft quorum
and which of them keep up (DescribeQuorum, KIP-595), which brokers do not answer now, and whose logs trail their
leaders' (ListOffsets, as the replication probe). Read at each reconcile while a disk is slow or a broker is held.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from typing import Any

from kafka.protocol.admin.cluster import DescribeQuorumRequest, DescribeQuorumResponse

from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import NONE, from_code
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.fault_tolerance import FaultTolerance, Quorum
from bellwether.ports.errors import Terminal, Transient

REMEMBERED_SECONDS = 10.0
"""How old a topic's min.insync.replicas may be."""

BEHIND_MILLISECONDS = 5000
"""A voter that was caught up longer ago than this, compared with the best, does not keep up."""

MOST_PEERS = 64
"""So many peers are asked whether they answer; all the others are seen once Kafka has fenced them."""

TRAILING_SECONDS = 0.2
"""A follower that takes longer to come to where its leaders were delays acks=all; one append takes less."""
ROUNDS = 5
LOOK_SECONDS = 0.05
"""How often its ends are compared meanwhile."""
TRAILED_SECONDS = 60.0
"""One that trailed keeps up after so long without it: near its limit, and while it recovers, it does both."""

_METADATA = "__cluster_metadata"


class KafkaFaultTolerance:
    """The margins of one cluster. Peers are found by the addresses that the reader of the same ``Nodes`` has learnt."""

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes
        self._configs = KafkaConfigs(nodes)
        self._known: dict[str, tuple[int, float]] = {}
        self._trailed: dict[int, float] = {}

    def margins(
        self, topics: Collection[str], peers: Collection[int], followed: Mapping[int, Mapping[TopicPartition, int]]
    ) -> FaultTolerance:
        """The fault tolerance; ``problem`` names what cannot be read."""
        trails = {broker: self._trails(broker, names) for broker, names in followed.items()}
        trailing = frozenset(broker for broker, known in trails.items() if known is True)
        keeping_up = frozenset(broker for broker, known in trails.items() if known is False)
        try:
            least = self._minimum_isr(topics)
            quorum = self._nodes.read(_quorum)
        except (Transient, Terminal) as error:
            lasting = isinstance(error, Terminal)
            return FaultTolerance(trailing=trailing, keeping_up=keeping_up, problem=str(error), lasting=lasting)
        return FaultTolerance(least, quorum, self._silent(peers), trailing, keeping_up)

    def _minimum_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        now = time.monotonic()
        self._known = {t: known for t, known in self._known.items() if now - known[1] < REMEMBERED_SECONDS}
        missing = [topic for topic in topics if topic not in self._known]
        for topic, values in self._configs.topic_configs(missing, [MIN_ISR]).items():
            if values.get(MIN_ISR, "").isdigit():
                self._known[topic] = int(values[MIN_ISR]), now
        return {topic: self._known[topic][0] for topic in topics if topic in self._known}

    def _silent(self, peers: Collection[int]) -> frozenset[int]:
        """Who does not answer, asked twice: one lost packet is no lost broker."""
        silent = set()
        deadline = Deadline(self._nodes.limits.read_seconds, grows=True)
        for broker in sorted(peers)[:MOST_PEERS]:
            if not any(self._answers(broker, deadline) for _ in range(2)):
                silent.add(broker)
        return frozenset(silent)

    def _trails(self, broker: int, followed: Mapping[TopicPartition, int]) -> bool | None:
        """Whether a follower, given TRAILING_SECONDS, does not come to where its leaders were; None if unknown.

        Once is enough; that it keeps up takes ROUNDS of it, as one may fall where little was written, and
        TRAILED_SECONDS without it.
        """
        deadline = Deadline(self._nodes.limits.read_seconds, grows=True)
        for _ in range(ROUNDS):
            if (trails := self._trails_now(broker, followed, deadline)) is not False:
                break
        if trails:
            self._trailed[broker] = time.monotonic()
        lately = time.monotonic() - self._trailed.get(broker, -math.inf) < TRAILED_SECONDS
        return True if trails is False and lately else trails

    def _trails_now(self, broker: int, followed: Mapping[TopicPartition, int], deadline: Deadline) -> bool | None:
        leaders = dict[TopicPartition, int]()
        for leader in sorted(set(followed.values())):
            leaders |= self._ends(leader, [name for name, of in followed.items() if of == leader], deadline)
        complete, until = leaders.keys() == followed.keys(), time.monotonic() + TRAILING_SECONDS
        while leaders:
            own = self._ends(broker, list(leaders), deadline)
            if own.keys() != leaders.keys() or deadline.left <= 0:
                return None
            leaders = {name: end for name, end in leaders.items() if own[name] < end}
            if leaders and time.monotonic() >= until:
                return True
            if leaders:
                time.sleep(min(LOOK_SECONDS, deadline.left))
        return False if complete and followed else None

    def _ends(self, broker: int, names: Collection[TopicPartition], deadline: Deadline) -> Mapping[TopicPartition, int]:
        """A broker's log ends now; empty without an answer."""
        address = self._nodes.address_of(broker)
        if address is None or deadline.left <= 0:
            return {}
        limit = min(self._nodes.limits.request_seconds, deadline.left)
        try:
            return LogEnds(self._nodes.connection).ask(address, dict.fromkeys(names, -1), limit, limit).ends
        except (Transient, Terminal):
            return {}

    def _answers(self, broker: int, deadline: Deadline) -> bool:
        try:
            return self._nodes.read_from(broker, lambda _dialogue, _deadline: True, deadline)
        except Transient:
            return False


def _quorum(dialogue: BrokerConnection, deadline: Deadline) -> Quorum:
    version = dialogue.version(DescribeQuorumRequest, 1)
    if version is None or version < 1:
        raise Terminal(f"{dialogue.address} does not report the controller quorum: it needs Kafka 3.3 in KRaft mode")
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        version=version,
        topics=[topic(topic_name=_METADATA, partitions=[topic.PartitionData(partition_index=0)])],
    )
    answer = dialogue.ask(request, DescribeQuorumResponse, deadline)
    dialogue.check(answer)
    if not answer.topics or not answer.topics[0].partitions:
        raise Transient(f"{dialogue.address} answered DescribeQuorum without a quorum")
    found = answer.topics[0].partitions[0]
    if found.error_code != NONE:
        raise from_code(found.error_code, dialogue.address, "DescribeQuorum", "Describe on Cluster")
    return quorum_of(found)


def quorum_of(found: Any) -> Quorum:
    """The quorum in an answer's partition. The leader counts as caught up."""
    times = {voter.replica_id: voter.last_caught_up_timestamp for voter in found.current_voters}
    best = max(times.values(), default=-1)
    current = {v for v, at in times.items() if v == found.leader_id or (at > 0 and best - at <= BEHIND_MILLISECONDS)}
    if found.leader_id < 0:
        return Quorum(frozenset(times), frozenset())
    return Quorum(frozenset(times), frozenset(current), found.leader_id)
