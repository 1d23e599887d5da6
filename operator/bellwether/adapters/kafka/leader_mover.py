"""Reorder replicas and elect leaders, each request sent once to a broker of our choice (``ports.kafka.LeaderMover``).

In: partitions and orders that the executor has just checked. Out: Kafka's result for each partition. The time limit in
a request does not bound when it takes effect: the controller counts it from when it handles the request, after a broker
has held it for as long as that was frozen, and forwarded it for up to 60 s. ``core.execution.arrivals`` covers that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.connection.connection_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    NONE,
    BrokerConnectionError,
    error_name,
    from_code,
)
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.errors import NotSent, Terminal, Transient
from bellwether.ports.kafka import Outcome, Reorder

# The controller takes at most 10,000 records in one operation, and fails the whole request above that.
MOST_PARTITIONS = 9000

_ALTER_ACL = "Alter on Cluster"

_Wanted = tuple[TopicPartition, tuple[int, ...] | None]


class KafkaMover:
    """Sends reorders and elections; every call ends within ``request_timeout_seconds``, finding a broker included.

    Raises ValueError for more than 9,000 partitions or for one named twice, Transient when the answer did not come (the
    request may have been carried out) and its subclass NotSent when nothing was sent, Terminal when a person must act.
    """

    def __init__(self, nodes: BrokerPool) -> None:
        self._nodes = nodes
        self.request_timeout_seconds = nodes.limits.mutation_seconds
        self._deadline: Deadline | None = None

    def start_deadline(self) -> None:
        """The next request is sent within ``request_timeout_seconds`` from now, also after a pause, or NotSent."""
        self._deadline = Deadline(self.request_timeout_seconds)

    def choose(self) -> int:
        """The first choice among the brokers whose addresses are known; NotSent without one."""
        chosen = self._nodes.first_choice()
        if chosen is None:
            raise NotSent("no broker's address is known: no metadata read has returned one yet")
        return chosen[0]

    def reorder(self, orders: Sequence[Reorder], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """AlterPartitionReassignments; a changed replication factor is refused where the cluster can (KIP-860)."""
        return self._alter([(order.name, order.order) for order in orders], broker)

    def cancel(self, names: Sequence[TopicPartition], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        """AlterPartitionReassignments with null replicas: cancel what is under way (KIP-455)."""
        return self._alter([(name, None) for name in names], broker)

    def forwards(self, broker: int) -> bool:
        """Whether this broker answers ListPartitionReassignments, which it forwards to the controller as a reorder."""

        def ask(dialogue: BrokerConnection, deadline: Deadline) -> bool:
            request = ListPartitionReassignmentsRequest(
                version=dialogue.version(ListPartitionReassignmentsRequest, 0) or 0,
                timeout_ms=deadline.milliseconds,
                topics=[],
            )
            return bool(dialogue.ask(request, ListPartitionReassignmentsResponse, deadline).error_code == NONE)

        try:
            return self._nodes.read_from(broker, ask, Deadline(self._nodes.limits.request_seconds, grows=True))
        except (Transient, Terminal):
            return False

    def elect(self, names: Sequence[TopicPartition]) -> Mapping[TopicPartition, Outcome]:
        """ElectLeaders, preferred, of exactly these partitions (KIP-460)."""
        _check(names)
        # The protocol's "no partitions" is null, which means all: never send it.
        ask = partial(elect, ElectionType.PREFERRED, names)
        return self._nodes.send_once(ask, self._started()) if names else {}

    def _alter(self, wanted: Sequence[_Wanted], broker: int | None = None) -> Mapping[TopicPartition, Outcome]:
        names = [name for name, _ in wanted]
        _check(names)
        if not names:
            return {}

        def ask(dialogue: BrokerConnection, deadline: Deadline) -> Mapping[TopicPartition, Outcome]:
            version = _required(dialogue, AlterPartitionReassignmentsRequest, 1)
            request = AlterPartitionReassignmentsRequest(
                version=version,
                timeout_ms=deadline.milliseconds,
                allow_replication_factor_change=version < 1,
                topics=[
                    AlterPartitionReassignmentsRequest.ReassignableTopic(
                        name=topic,
                        partitions=[
                            AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition(
                                partition_index=name.partition, replicas=None if order is None else list(order)
                            )
                            for name, order in members
                        ],
                    )
                    for topic, members in _by_topic(wanted).items()
                ],
            )
            answer = dialogue.ask(request, AlterPartitionReassignmentsResponse, deadline)
            dialogue.check(answer, _ALTER_ACL)
            said = {
                TopicPartition(topic.name, p.partition_index): p.error_code
                for topic in answer.responses
                for p in topic.partitions
            }
            return _outcomes(names, said, dialogue.address, "AlterPartitionReassignments")

        started = self._started()
        return self._nodes.send_once(ask, started) if broker is None else self._nodes.send_to(broker, ask, started)

    def _started(self) -> Deadline | None:
        """The deadline of this request, if it was started before; the next has its own."""
        started, self._deadline = self._deadline, None
        return started


def elect(
    election: ElectionType, names: Sequence[TopicPartition], dialogue: BrokerConnection, deadline: Deadline
) -> Mapping[TopicPartition, Outcome]:
    """ElectLeaders of exactly these partitions (KIP-460)."""
    request = ElectLeadersRequest(
        version=_required(dialogue, ElectLeadersRequest, 2, 1),
        election_type=int(election),
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[name.partition for name, _ in members])
            for topic, members in _by_topic((name, None) for name in names).items()
        ],
        timeout_ms=deadline.milliseconds,
    )
    answer = dialogue.ask(request, ElectLeadersResponse, deadline)
    dialogue.check(answer, _ALTER_ACL)
    said = {
        TopicPartition(result.topic, p.partition_id): p.error_code
        for result in answer.replica_election_results
        for p in result.partition_result
    }
    return _outcomes(names, said, dialogue.address, "ElectLeaders")


def _check(names: Sequence[TopicPartition]) -> None:
    if len(names) > MOST_PARTITIONS:
        raise ValueError(f"{len(names)} partitions in one request: at most {MOST_PARTITIONS}, send smaller batches")
    if len(set(names)) < len(names):
        raise ValueError("a partition is named twice in one request")


def _by_topic(wanted: Iterable[_Wanted]) -> dict[str, list[_Wanted]]:
    grouped: dict[str, list[_Wanted]] = {}
    for name, order in wanted:
        grouped.setdefault(name.topic, []).append((name, order))
    return grouped


def _outcomes(
    names: Sequence[TopicPartition], said: Mapping[TopicPartition, int], address: str, what: str
) -> Mapping[TopicPartition, Outcome]:
    """Kafka's result for every requested partition; a missing one is an error."""
    if said and all(code == CLUSTER_AUTHORIZATION_FAILED for code in said.values()):
        raise from_code(CLUSTER_AUTHORIZATION_FAILED, address, what, _ALTER_ACL)
    silent = Outcome(error_name(-1), f"{address}'s answer to {what} does not mention this partition")
    return {name: Outcome(error_name(said[name])) if name in said else silent for name in names}


def _required(dialogue: BrokerConnection, request: Any, wanted: int, least: int = 0) -> int:
    """The version of a request that changes something. Raises Terminal: nothing was sent, and no repetition helps."""
    try:
        return dialogue.require(request, wanted, least)
    except BrokerConnectionError as lacking:
        raise Terminal(str(lacking)) from None
