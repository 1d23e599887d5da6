"""``python -m detectioncosts.manybrokers``: the brokers of one or more clusters in one process, all well.

Each broker has an address of its own, 127.1.x.y, with the same two ports as all others. It answers what a prober and an
operator ask, mostly with frames made once; anything else closes the connection. A third port says what was asked of
whom until now (``Traffic``). Called by benchmarks as a process, and by their tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

_HEAD = struct.Struct(">hhi")


def cluster_id(number: int = 0) -> str:
    """Id of a cluster; 22 characters, as Kafka's are."""
    return f"detection-costs-{number:06}"


def address(number: int) -> str:
    """The address of a broker; those of all clusters are numbered from 1."""
    return f"127.1.{number // 250}.{number % 250 + 1}"


def number_at(host: str) -> int:
    """The number of the broker at an address."""
    _, _, high, low = host.split(".")
    return int(high) * 250 + int(low) - 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """What brokers were asked: requests, and bytes of the answers by broker."""

    requests: int
    sent: Mapping[int, int]

    @classmethod
    def at(cls, port: int) -> Traffic:
        """As of now."""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            text = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        found = json.loads(text)
        return cls(found["requests"], {int(broker): size for broker, size in found["sent"].items()})

    def until(self, later: Traffic, seconds: float) -> dict[str, float]:
        """Figures of the traffic from this moment until a later one."""
        sent = {broker: size - self.sent.get(broker, 0) for broker, size in later.sent.items()}
        asked = {broker: size for broker, size in sent.items() if size}
        total = sum(asked.values())
        return {
            "requests_per_minute": round((later.requests - self.requests) / seconds * 60, 1),
            "megabytes_per_minute": round(total / seconds * 60 / 1e6, 2),
            "brokers_asked": len(asked),
            "largest_share": round(max(asked.values()) / total, 3) if total else 0.0,
        }


class ManyBrokers:
    """What the brokers of one cluster say. Broker ids are 1 to ``count``, their addresses begin after ``first``."""

    def __init__(self, number: int, count: int, partitions: int, internal_port: int, external_port: int) -> None:
        self.number = number
        self.first = number * count
        self.count = count
        self.partitions = ManyPartitions(count, partitions)
        self.internal_port = internal_port
        self.external_port = external_port
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
        if key in self._changers:
            kind, change = self._changers[key]
            changed = _encoded(change(kind.decode(frame, version=version, header=True)), version)
            struct.pack_into(">i", changed, 4, correlation)
            return bytes(changed)
        of_broker = broker if key == DescribeConfigsRequest.API_KEY else 0
        kept = (key, version, of_broker, port)
        made = self._frames.get(kept) if key != ApiVersionsRequest.API_KEY else None
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

    def _host(self, broker: int) -> str:
        return address(self.first + broker)

    def _versions(self, _version: int, _broker: int, _port: int) -> Any:
        return versions(offset=lambda: int(2 * time.monotonic()))(None)  # KRaft writes a record twice a second

    def _configs(self, _version: int, broker: int, _port: int) -> Any:
        result = DescribeConfigsResponse.DescribeConfigsResult
        host = self._host(broker)
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
            cluster_id=cluster_id(self.number),
            controller_id=1,
            brokers=[
                kind(broker_id=b, host=self._host(b), port=port, rack=f"rack-{b % 3}", is_fenced=False)
                for b in range(1, self.count + 1)
            ],
        )

    def _metadata(self, version: int, _broker: int, port: int) -> Any:
        assert version == METADATA_VERSION, f"Metadata of version {version} has another end"
        kind = MetadataResponse.MetadataResponseBroker
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[
                kind(node_id=b, host=self._host(b), port=port, rack=f"rack-{b % 3}") for b in range(1, self.count + 1)
            ],
            cluster_id=cluster_id(self.number),
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


class _Site:
    """All clusters, and what they were asked."""

    def __init__(self, clusters: list[ManyBrokers]) -> None:
        self._clusters = clusters
        self._requests = 0
        self._sent: Counter[int] = Counter()

    def answer(self, frame: bytes, number: int, port: int) -> bytes | None:
        """The whole response frame of a broker; None where none is known."""
        cluster, broker = divmod(number - 1, self._clusters[0].count)
        answer = self._clusters[cluster].answer(frame, broker + 1, port)
        self._requests += 1
        self._sent[number] += len(answer or b"")
        return answer

    async def tell(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Write the traffic until now."""
        writer.write(json.dumps({"requests": self._requests, "sent": self._sent}).encode())
        writer.close()


class _Conversation(asyncio.Protocol):
    def __init__(self, site: _Site) -> None:
        self._site = site
        self._got = b""
        self._transport: asyncio.Transport | None = None
        self._number = self._port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, self._port = transport.get_extra_info("sockname")[:2]
        self._number = number_at(host)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._got += data
        while len(self._got) >= 4:
            (size,) = struct.unpack_from(">i", self._got)
            if len(self._got) < 4 + size:
                return
            frame, self._got = self._got[4 : 4 + size], self._got[4 + size :]
            answer = self._site.answer(frame, self._number, self._port)
            if answer is None:
                print(f"broker {self._number} was asked for {_HEAD.unpack_from(frame)}", file=sys.stderr, flush=True)
                self._transport.close()
                return
            self._transport.write(answer)


async def serve(site: _Site, ports: tuple[int, int], traffic_port: int) -> None:
    """Serve for ever: the brokers on both ports, the traffic on a third one."""
    loop = asyncio.get_running_loop()
    await asyncio.start_server(site.tell, "127.0.0.1", traffic_port)
    for port in ports:
        await loop.create_server(lambda: _Conversation(site), "0.0.0.0", port, backlog=4096)  # noqa: S104
    await asyncio.Event().wait()


def main() -> None:
    """Read the command line and serve until killed."""
    parser = argparse.ArgumentParser()
    for name in ("count", "partitions", "internal-port", "external-port", "traffic-port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--clusters", type=int, default=1)
    asked = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ports = asked.internal_port, asked.external_port
    site = _Site([ManyBrokers(number, asked.count, asked.partitions, *ports) for number in range(asked.clusters)])
    asyncio.run(serve(site, ports, asked.traffic_port))


if __name__ == "__main__":
    main()
