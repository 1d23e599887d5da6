"""Read log end offsets from one broker by ListOffsets, for the replication probe.

In: an address, and the partitions that the broker holds, as leader or as follower. Out: log-end offsets, or why not. A
plain ListOffsets is answered by leaders alone, and with the high watermark. Replica id -2, the protocol's debugging
consumer, is answered by any replica, and with the end of its own log. DescribeLogDirs' ``offset_lag`` is no substitute:
it is measured against the high watermark, which waits for the very follower that lags, and reads 0.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection, PreparedRequest
from bellwether.adapters.kafka.connection.connection_errors import (
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerConnectionError,
    error_name,
)
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import BrokerLogEnds

# A request and its answer stay below 100 KB, and no broker works long at one of them.
MOST_PARTITIONS = 2000
_MOST_ADDRESSES = 4000

_DEBUGGING_CONSUMER = -2
_LATEST = -1
_NOT_LEADER_OR_FOLLOWER = 6
_REPLICA_NOT_AVAILABLE = 9
_FENCED_LEADER_EPOCH = 74
_UNKNOWN_LEADER_EPOCH = 75
# The partition differs from the metadata that the request was built from.
_MOVED = {
    UNKNOWN_TOPIC_OR_PARTITION,
    _NOT_LEADER_OR_FOLLOWER,
    _REPLICA_NOT_AVAILABLE,
    _FENCED_LEADER_EPOCH,
    _UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
}


@dataclass(frozen=True, slots=True)
class _Prepared:
    replicas: Mapping[TopicPartition, int]
    version: int
    requests: tuple[PreparedRequest, ...]


class LogEnds:
    """Asks brokers, each time on a fresh connection to exactly the address given.

    Safe to share between threads that ask at different addresses.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._prepared: dict[str, _Prepared] = {}

    def ask(
        self, address: str, replicas: Mapping[TopicPartition, int], timeout_seconds: float, longest_seconds: float
    ) -> BrokerLogEnds:
        """The ends of these partitions, whose values are leader epochs (-1 where the broker follows); of none, only
        whether it answers: a request that it lacks, or denies us, is no silence.

        The very same mapping, asked again, is not encoded again: do not change it in between.
        A broker that stops answering costs ``timeout_seconds``, a slow one ``longest_seconds``. What was received until
        then counts. Raises Terminal or Transient for failures that are no evidence about the broker (unusable local
        certificate files, no free file descriptor), ValueError for an address that is not host:port.
        """
        ends: dict[TopicPartition, int] = {}
        errors: Counter[int] = Counter()
        sent = received = time.monotonic()
        over = Deadline(longest_seconds)
        problem = ""
        try:
            # The first answer shares its time with opening the conversation: silence costs one timeout, not two.
            deadline = over.within(timeout_seconds)
            with BrokerConnection.open(address, self._connection, deadline) as dialogue:
                with deadline.paused(), over.paused():  # our own load is no evidence about the broker
                    requests = self._requests(dialogue, replicas) if replicas else ()
                sent = received = time.monotonic()
                for request in requests:
                    _take(dialogue.ask_again(request, deadline), ends, errors)
                    received = time.monotonic()
                    deadline = over.within(timeout_seconds)
        except BrokerConnectionError as broken:
            problem = str(broken)
        return BrokerLogEnds(
            ends, sent, received, sum(errors[code] for code in _MOVED), problem or _refusal(address, errors)
        )

    def _requests(
        self, dialogue: BrokerConnection, replicas: Mapping[TopicPartition, int]
    ) -> tuple[PreparedRequest, ...]:
        version = dialogue.require(ListOffsetsRequest, 7, 4)  # with leader epochs
        known = self._prepared.get(dialogue.address)
        if known is None or known.replicas is not replicas or known.version != version:
            if len(self._prepared) >= _MOST_ADDRESSES:
                self._prepared = {}  # brokers have come and gone under ever new addresses
            requests = tuple(_encoded(replicas, version, self._connection.client_id))
            known = self._prepared[dialogue.address] = _Prepared(replicas, version, requests)
        return known.requests


def _encoded(replicas: Mapping[TopicPartition, int], version: int, client_id: str) -> Iterator[PreparedRequest]:
    wanted = sorted(replicas.items())
    for start in range(0, len(wanted), MOST_PARTITIONS):
        request = ListOffsetsRequest(
            version=version,
            replica_id=_DEBUGGING_CONSUMER,
            isolation_level=0,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                            partition_index=name.partition, current_leader_epoch=epoch, timestamp=_LATEST
                        )
                        for name, epoch in members
                    ],
                )
                for topic, members in groupby(wanted[start : start + MOST_PARTITIONS], lambda item: item[0].topic)
            ],
        )
        # Where nothing is written the same answer comes again.
        yield PreparedRequest(request, ListOffsetsResponse, client_id, answers=1)


def _take(answer: ListOffsetsResponse, ends: dict[TopicPartition, int], errors: Counter[int]) -> None:
    for topic in answer.topics:
        for found in topic.partitions:
            if found.error_code == NONE and found.offset >= 0:
                ends[TopicPartition(topic.name, found.partition_index)] = found.offset
            else:
                errors[found.error_code] += 1


def _refusal(address: str, errors: Counter[int]) -> str:
    """The commonest error but for partitions that have moved, which is no trouble; empty when there is none."""
    said = [(count, code) for code, count in errors.items() if code not in _MOVED and code != NONE]
    if not said:
        return ""
    count, code = max(said)
    if code == TOPIC_AUTHORIZATION_FAILED:
        return f"{address}: denies this user the log ends of {count} partitions: grant the ACL Describe on Topic *"
    return f"{address}: answered ListOffsets for {count} partitions with {error_name(code)}"
