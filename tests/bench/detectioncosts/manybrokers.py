"""``python -m detectioncosts.manybrokers``: so many brokers in one process, all well, each at an address of its own.

Broker n listens at 127.1.x.y on the same two ports as all others. It answers what a prober and an operator ask, mostly
with frames made once; anything else closes the connection. Called by benchmarks as a process, and by their tests.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import struct
import sys
from collections.abc import Callable
from typing import Any

from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse
from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse

from detectioncosts.manypartitions import METADATA_VERSION, ManyPartitions
from testkit.kafka.scripted_broker import versions

CLUSTER_ID = "detection-costs-bench0"
_HEAD = struct.Struct(">hhi")


def address(broker: int) -> str:
    """Where broker n lives."""
    return f"127.1.{broker // 250}.{broker % 250 + 1}"


def broker_at(host: str) -> int:
    """Who lives there."""
    _, _, high, low = host.split(".")
    return int(high) * 250 + int(low) - 1


class ManyBrokers:
    """What each of them says. Broker ids are 1 to ``count``; ``asked`` and ``changes`` count requests."""

    def __init__(self, count: int, partitions: int, internal_port: int, external_port: int) -> None:
        self.count = count
        self.partitions = ManyPartitions(count, partitions)
        self.internal_port = internal_port
        self.external_port = external_port
        self.asked = self.changes = 0
        self._frames: dict[tuple[int, int, int, int], bytearray] = {}
        self._makers: dict[int, Callable[[int, int, int], Any]] = {
            ApiVersionsRequest.API_KEY: self._versions,
            DescribeConfigsRequest.API_KEY: self._configs,
            DescribeClusterRequest.API_KEY: self._cluster,
            MetadataRequest.API_KEY: self._metadata,
            ListPartitionReassignmentsRequest.API_KEY: self._reassignments,
        }
        self._changers: dict[int, tuple[Any, Callable[[Any], Any]]] = {
            AlterPartitionReassignmentsRequest.API_KEY: (AlterPartitionReassignmentsRequest, self.partitions.reorder),
            ElectLeadersRequest.API_KEY: (ElectLeadersRequest, self.partitions.elect),
        }

    def answer(self, frame: bytes, broker: int, port: int) -> bytes | None:
        """The whole response frame to a request frame; None where none is known."""
        key, version, correlation = _HEAD.unpack_from(frame)
        self.asked += 1
        if key in self._changers:
            self.changes += 1
            kind, change = self._changers[key]
            changed = _encoded(change(kind.decode(frame, version=version, header=True)), version)
            struct.pack_into(">i", changed, 4, correlation)
            return bytes(changed)
        of_broker = broker if key == DescribeConfigsRequest.API_KEY else 0
        kept = (key, version, of_broker, port)
        made = self._frames.get(kept)
        if made is None:
            maker = self._makers.get(key)
            if maker is None:
                return None
            response = maker(version, broker, port)
            made = self._frames[kept] = _encoded(response, version)
        struct.pack_into(">i", made, 4, correlation)
        if key == MetadataRequest.API_KEY:
            return self._with_topics(frame, version, made)
        return bytes(made)

    def _with_topics(self, frame: bytes, version: int, empty: bytearray) -> bytes:
        wanted = MetadataRequest.decode(frame, version=version, header=True).topics
        names = None if wanted is None else [topic.name for topic in wanted]
        answer = self.partitions.metadata(bytes(empty[4:]), names)
        return struct.pack(">i", len(answer)) + answer

    def _versions(self, _version: int, _broker: int, _port: int) -> Any:
        return versions()(None)

    def _configs(self, _version: int, broker: int, _port: int) -> Any:
        result = DescribeConfigsResponse.DescribeConfigsResult
        host = address(broker)
        listeners = f"INTERNAL://{host}:{self.internal_port},EXTERNAL://{host}:{self.external_port}"
        configs = [
            result.DescribeConfigsResourceResult(
                name=name, value=listeners, read_only=True, config_source=4, is_sensitive=False
            )
            for name in ("advertised.listeners", "listeners")
        ]
        return DescribeConfigsResponse(
            throttle_time_ms=0,
            results=[
                result(error_code=0, error_message=None, resource_type=4, resource_name=str(broker), configs=configs)
            ],
        )

    def _cluster(self, _version: int, _broker: int, port: int) -> Any:
        kind = DescribeClusterResponse.DescribeClusterBroker
        return DescribeClusterResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            endpoint_type=1,
            cluster_id=CLUSTER_ID,
            controller_id=1,
            brokers=[
                kind(broker_id=b, host=address(b), port=port, rack=f"rack-{b % 3}", is_fenced=False)
                for b in range(1, self.count + 1)
            ],
        )

    def _metadata(self, version: int, _broker: int, port: int) -> Any:
        assert version == METADATA_VERSION, f"Metadata of version {version} has another end"
        kind = MetadataResponse.MetadataResponseBroker
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[
                kind(node_id=b, host=address(b), port=port, rack=f"rack-{b % 3}") for b in range(1, self.count + 1)
            ],
            cluster_id=CLUSTER_ID,
            controller_id=1,
            topics=[],
            error_code=0,
        )

    def _reassignments(self, _version: int, _broker: int, _port: int) -> Any:
        return ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=0, error_message=None, topics=[])


def _encoded(response: Any, version: int) -> bytearray:
    response.API_VERSION = version
    response.with_header(correlation_id=0)
    return bytearray(response.encode(header=True, framed=True))


class _Conversation(asyncio.Protocol):
    def __init__(self, brokers: ManyBrokers) -> None:
        self._brokers = brokers
        self._got = b""
        self._transport: asyncio.Transport | None = None
        self._broker = self._port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, self._port = transport.get_extra_info("sockname")[:2]
        self._broker = broker_at(host)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._got += data
        while len(self._got) >= 4:
            (size,) = struct.unpack_from(">i", self._got)
            if len(self._got) < 4 + size:
                return
            frame, self._got = self._got[4 : 4 + size], self._got[4 + size :]
            answer = self._brokers.answer(frame, self._broker, self._port)
            if answer is None:
                print(f"broker {self._broker} was asked for {_HEAD.unpack_from(frame)}", file=sys.stderr, flush=True)
                self._transport.close()
                return
            self._transport.write(answer)


async def serve(brokers: ManyBrokers) -> None:
    """Serve for ever on both ports."""
    loop = asyncio.get_running_loop()
    for port in (brokers.internal_port, brokers.external_port):
        await loop.create_server(lambda: _Conversation(brokers), "0.0.0.0", port, backlog=4096)  # noqa: S104
    await asyncio.Event().wait()


def main() -> None:
    """Read the command line and serve until killed."""
    parser = argparse.ArgumentParser()
    for name in ("count", "partitions", "internal-port", "external-port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(ManyBrokers(asked.count, asked.partitions, asked.internal_port, asked.external_port)))


if __name__ == "__main__":
    main()
