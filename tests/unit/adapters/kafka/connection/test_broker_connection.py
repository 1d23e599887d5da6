"""What a decoder must accept: damaged answers, and answers of a newer Kafka with fields and errors unknown to us."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError, error_name
from bellwether.adapters.kafka.connection.response_decoding import SMALL_LIMIT
from bellwether.adapters.kafka.connection.transport import Deadline
from bellwether.kafka_connection import Connection
from testkit.kafka.scripted_broker import ScriptedBroker, versions
from testkit.values.security_settings import PLAINTEXT

UNKNOWN_TAG = bytes([1, 77, 3, 1, 2, 3])
"""One tagged field, number 77, of three bytes (KIP-482)."""


def frame_of(response: Any, version: int) -> bytearray:
    """A response as a broker sends it, without its length; the correlation id is to be filled in."""
    response.API_VERSION = version
    response.with_header(correlation_id=0)
    return bytearray(response.encode(header=True, framed=False))


def saying(make: Callable[[], bytes]) -> Callable[[socket.socket], None]:
    """A peer that answers every request with what ``make`` gives."""

    def serve(sock: socket.socket) -> None:
        while head := sock.recv(65536):
            frame = bytearray(make())
            frame[:4] = head[8:12]
            sock.sendall(struct.pack(">i", len(frame)) + frame)

    return serve


def opened(broker: ScriptedBroker) -> BrokerConnection:
    return BrokerConnection.open(broker.address, Connection((broker.address,), PLAINTEXT), Deadline(20))


def test_a_damaged_answer_breaks_the_connection_and_nothing_else() -> None:
    chance, whole = random.Random(5), frame_of(versions(features={"metadata.version": 25})(None), 3)

    def damaged() -> bytes:
        frame = bytearray(whole)
        for _ in range(2):
            # The last bytes are tagged fields, the most intricate part.
            frame[chance.randrange(chance.choice((4, len(frame) - 40)), len(frame))] = chance.randrange(256)
        return bytes(frame[: chance.choice((len(frame), chance.randrange(4, len(frame))))])

    unreadable = 0
    with ScriptedBroker(raw=saying(damaged)) as broker:
        for _ in range(200):
            try:
                opened(broker).close()
            except BrokerConnectionError:
                unreadable += 1
    assert unreadable > 50


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07"])
def test_a_list_that_claims_to_be_huge_costs_nothing(size: bytes) -> None:
    frame = bytes(4) + struct.pack(">h", 0) + size + bytes(12)
    with (
        ScriptedBroker(raw=saying(lambda: frame)) as broker,
        pytest.raises(BrokerConnectionError, match="cannot be read"),
    ):
        opened(broker)


def test_fields_and_errors_of_newer_kafka_hide_nothing_else() -> None:
    topic = MetadataResponse.MetadataResponseTopic
    metadata = frame_of(
        MetadataResponse(
            throttle_time_ms=0,
            brokers=[],
            cluster_id="c",
            controller_id=1,
            topics=[topic(error_code=999, name="new", partitions=[]), topic(error_code=0, name="old", partitions=[])],
        ),
        12,
    )
    assert metadata[-1] == 0, "no tagged field yet"
    with ScriptedBroker({ApiVersionsRequest: versions()}) as broker, opened(broker) as dialogue:
        dialogue.exchange = lambda *_: bytes(metadata[:-1] + UNKNOWN_TAG)  # type: ignore[method-assign]
        request = MetadataRequest(version=12, topics=None)
        answer = dialogue.ask(request, MetadataResponse, Deadline(20))
    assert [(t.name, error_name(t.error_code)) for t in answer.topics] == [("new", "ERROR_999"), ("old", "NONE")]


def test_a_response_larger_than_any_request_needs_is_refused_unread() -> None:
    def serve(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(struct.pack(">i", SMALL_LIMIT + 1))
        sock.recv(65536)  # until it hangs up

    with (
        ScriptedBroker(raw=serve) as broker,
        pytest.raises(BrokerConnectionError, match=f"{SMALL_LIMIT + 1} bytes; at most {SMALL_LIMIT} are read"),
    ):
        opened(broker)


@pytest.mark.parametrize(
    ("offered", "said"),
    [
        pytest.param(versions(controller=True), "is a KRaft controller's listener: use that of a broker", id="KRaft"),
        pytest.param(versions(without=[MetadataRequest]), "does not offer Metadata", id="a service without it"),
        pytest.param(versions({MetadataRequest: (0, 9)}), "offers Metadata 0 to 9, needed is 10 to 13", id="too old"),
    ],
)
def test_a_request_that_is_missing_has_its_cause(offered: Any, said: str) -> None:
    with (
        ScriptedBroker({ApiVersionsRequest: offered}) as broker,
        opened(broker) as dialogue,
        pytest.raises(BrokerConnectionError, match=said) as found,
    ):
        dialogue.require(MetadataRequest, 13, 10)
    assert found.value.lasting


def test_silence_after_throttled_answer_is_quotas_not_brokers() -> None:
    never = {ApiVersionsRequest: versions(throttle_ms=1500), MetadataRequest: lambda _: None}
    with (
        ScriptedBroker(never) as broker,
        opened(broker) as dialogue,
        pytest.raises(
            BrokerConnectionError, match=r"delays this user's requests by 1\.5 s, as it is over a quota"
        ) as found,
    ):
        dialogue.ask(MetadataRequest(version=12, topics=None), MetadataResponse, Deadline(0.1))
    assert found.value.no_evidence
