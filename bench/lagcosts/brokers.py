"""Brokers that tell the ends of very many logs, in one process, each at a port of its own.

In: how many brokers, partitions and replicas, and what share of the followers is stuck. Out: their ports, on
standard output. Answers are made when first asked for and then sent again, so that what is measured is the prober.
"""

from __future__ import annotations

import asyncio
import random
import struct
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse
from kafka.protocol.admin.topics import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse

from testkit.kafka.scripted_broker import versions

PER_TOPIC = 20
END = 1_000_000


class Brokers:
    """What all of them say."""

    def __init__(self, brokers: int, partitions: int, replicas: int, still: float) -> None:
        self._count, self._partitions, self._replicas, self._still = brokers, partitions, replicas, still
        self._random = random.Random(7)
        self._frames: dict[bytes, bytearray] = {}
        self._ports: list[int] = []
        self._makers: dict[int, tuple[Any, Callable[[Any], Any]]] = {
            ApiVersionsRequest.API_KEY: (ApiVersionsRequest, versions()),
            MetadataRequest.API_KEY: (MetadataRequest, lambda _: self._metadata()),
            DescribeClusterRequest.API_KEY: (DescribeClusterRequest, lambda _: self._cluster()),
            ListPartitionReassignmentsRequest.API_KEY: (
                ListPartitionReassignmentsRequest,
                lambda _: ListPartitionReassignmentsResponse(
                    throttle_time_ms=0, error_code=0, error_message=None, topics=[]
                ),
            ),
            ListOffsetsRequest.API_KEY: (ListOffsetsRequest, self._ends),
        }

    async def serve(self) -> None:
        """Listen, say where, and answer until the process is ended."""
        servers = [await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=256) for _ in range(self._count)]
        self._ports = [server.sockets[0].getsockname()[1] for server in servers]
        print(*self._ports, flush=True)
        await asyncio.gather(*(server.serve_forever() for server in servers))

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                writer.write(self._answer(await reader.readexactly(size)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, frame: bytes) -> bytes:
        """The framed answer; a question differs from an earlier one by its correlation id (bytes 4 to 8) alone."""
        asked = frame[:4] + frame[8:]
        if asked not in self._frames:
            key, version = struct.unpack_from(">hh", frame)
            request, make = self._makers[key]
            answer = make(request.decode(frame, version=version, header=True))
            answer.API_VERSION = version
            answer.with_header(correlation_id=0)
            self._frames[asked] = bytearray(answer.encode(header=True, framed=True))
        known = self._frames[asked]
        known[4:8] = frame[4:8]
        return bytes(known)

    def _ends(self, request: Any) -> Any:
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        return ListOffsetsResponse(
            throttle_time_ms=0,
            topics=[
                topic(
                    name=asked.name,
                    partitions=[
                        topic.ListOffsetsPartitionResponse(
                            partition_index=p.partition_index,
                            error_code=0,
                            timestamp=-1,
                            offset=END - (p.current_leader_epoch < 0 and self._random.random() < self._still),
                            leader_epoch=3,
                        )
                        for p in asked.partitions
                    ],
                )
                for asked in request.topics
            ],
        )

    def _cluster(self) -> Any:
        return DescribeClusterResponse(
            throttle_time_ms=0, error_code=0, error_message=None, endpoint_type=1, cluster_id="c", brokers=[]
        )

    def _metadata(self) -> Any:
        topic = MetadataResponse.MetadataResponseTopic
        return MetadataResponse(
            throttle_time_ms=0,
            error_code=0,
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=n, host="127.0.0.1", port=port, rack=None)
                for n, port in enumerate(self._ports)
            ],
            cluster_id="c",
            controller_id=0,
            topics=[
                topic(
                    error_code=0,
                    name=f"a-topic-with-an-ordinary-name-{number}",
                    topic_id=UUID(int=number + 1),
                    is_internal=False,
                    partitions=[
                        topic.MetadataResponsePartition(
                            error_code=0,
                            partition_index=index,
                            leader_id=held[0],
                            leader_epoch=3,
                            replica_nodes=held,
                            isr_nodes=held,
                            offline_replicas=[],
                        )
                        for index in range(PER_TOPIC)
                        for held in [self._held(number * PER_TOPIC + index)]
                    ],
                )
                for number in range(self._partitions // PER_TOPIC)
            ],
        )

    def _held(self, partition: int) -> list[int]:
        return [(partition + step * (1 + partition // self._count % 3)) % self._count for step in range(self._replicas)]


if __name__ == "__main__":
    count, partitions, replicas = (int(text) for text in sys.argv[1:4])
    asyncio.run(Brokers(count, partitions, replicas, float(sys.argv[4])).serve())
