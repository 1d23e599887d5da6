"""The partitions of the brokers in ``manybrokers``: topics as Metadata describes them, reordered and led as requested.

Topics have 100 partitions each, on three brokers of three racks, and ``__consumer_offsets`` has 50. Only the topics
that a request changed are encoded again, and each answer names a random broker as the controller, as KRaft does.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kafka.protocol.admin.topics import AlterPartitionReassignmentsResponse, ElectLeadersResponse

TOPIC_SIZE = 100
OFFSETS = "__consumer_offsets"
METADATA_VERSION = 13


class ManyPartitions:
    """Brokers 1 to ``brokers``; ``partitions`` rounded up to whole topics. Every replica is always in the ISR."""

    def __init__(self, brokers: int, partitions: int) -> None:
        self._brokers = brokers
        self._orders: dict[str, list[list[int]]] = {}
        self._leaders: dict[str, list[int]] = {}
        self._ids: dict[str, UUID] = {}
        self._encoded: dict[str, bytes] = {}
        topics = [(f"topic-{n:05}", TOPIC_SIZE) for n in range(-(-partitions // TOPIC_SIZE))]
        at = 0
        for name, size in [(OFFSETS, 50), *topics]:
            self._orders[name] = [self._order(at + index) for index in range(size)]
            self._leaders[name] = [order[0] for order in self._orders[name]]
            self._ids[name] = UUID(int=len(self._ids) + 1)
            at += size + 1  # so that a topic's size and the number of brokers share no divisor

    def _order(self, number: int) -> list[int]:
        return [(number + step) % self._brokers + 1 for step in range(min(3, self._brokers))]

    def metadata(self, empty: bytes, topics: Iterable[str] | None) -> bytes:
        """The answer to Metadata; ``empty`` is one without topics, from its header on."""
        head, tail = empty[:-4], empty[-3:]  # an empty array, the error code, no tagged fields
        controller = struct.pack(">i", random.randrange(self._brokers) + 1)
        names = list(self._orders) if topics is None else [name for name in topics if name in self._orders]
        parts = [self._encoded.get(name) or self._encode(name) for name in names]
        return b"".join((head[:-4], controller, _varint(len(names) + 1), *parts, tail))

    def reorder(self, request: Any) -> Any:
        """The answer to AlterPartitionReassignments, which takes effect at once."""
        response = AlterPartitionReassignmentsResponse
        topic_kind = response.ReassignableTopicResponse
        answered = []
        for topic in request.topics:
            self._encoded.pop(topic.name, None)
            results = []
            for partition in topic.partitions:
                if partition.replicas is not None:
                    self._orders[topic.name][partition.partition_index] = list(partition.replicas)
                results.append(
                    topic_kind.ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=0, error_message=None
                    )
                )
            answered.append(topic_kind(name=topic.name, partitions=results))
        return response(
            throttle_time_ms=0,
            allow_replication_factor_change=False,
            error_code=0,
            error_message=None,
            responses=answered,
        )

    def elect(self, request: Any) -> Any:
        """The answer to ElectLeaders: the first of each order leads."""
        response = ElectLeadersResponse
        topic_kind = response.ReplicaElectionResult
        answered = []
        for topic in request.topic_partitions:
            self._encoded.pop(topic.topic, None)
            for index in topic.partitions:
                self._leaders[topic.topic][index] = self._orders[topic.topic][index][0]
            results = [
                topic_kind.PartitionResult(partition_id=index, error_code=0, error_message=None)
                for index in topic.partitions
            ]
            answered.append(topic_kind(topic=topic.topic, partition_result=results))
        return response(throttle_time_ms=0, error_code=0, replica_election_results=answered)

    def _encode(self, name: str) -> bytes:
        """One topic of a Metadata answer of version 10 or later."""
        orders, leaders, raw = self._orders[name], self._leaders[name], name.encode()
        parts = [struct.pack(">h", 0), _varint(len(raw) + 1), raw, self._ids[name].bytes]
        parts += [bytes([name == OFFSETS]), _varint(len(orders) + 1)]
        for index, (order, leader) in enumerate(zip(orders, leaders, strict=True)):
            replicas = _varint(len(order) + 1) + struct.pack(f">{len(order)}i", *order)
            in_sync = _varint(len(order) + 1) + struct.pack(f">{len(order)}i", *sorted(order))
            parts += [struct.pack(">hiii", 0, index, leader, 1), replicas, in_sync, b"\x01\x00"]
        parts.append(struct.pack(">i", -(1 << 31)) + b"\x00")
        found = self._encoded[name] = b"".join(parts)
        return found


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
