"""A response decodes as kafka-python decodes it; what would cost more than linear time is refused."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin.topics import ListPartitionReassignmentsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from bellwether.adapters.kafka.connection import response_decoding
from bellwether.adapters.kafka.connection.response_decoding import decode

UNKNOWN_TAG = bytes([1, 77, 0])
"""One tagged field, number 77, of no bytes (KIP-482)."""


def frame_of(response: Any, version: int) -> bytes:
    response.API_VERSION = version
    response.with_header(correlation_id=7)
    return bytes(response.encode(header=True, framed=False))


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def metadata_with(partitions: int, tags: bytes) -> bytes:
    """Metadata version 12 of one topic, whose partitions all end in these tagged fields."""
    head = bytes(4) + b"\0" + bytes(4) + b"\1" + b"\0" + bytes(4) + b"\2" + bytes(2) + b"\2a" + bytes(16) + b"\0"
    one = struct.pack(">hiii", 0, 1, 1, 1) + b"\1\1\1" + tags
    return head + varint(partitions + 1) + one * partitions + bytes(4) + b"\0" + b"\0"


@pytest.mark.parametrize("version", [8, 9, 12, 13])
def test_a_response_reads_as_the_library_reads_it(version: int) -> None:
    topic = MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition
    made = MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="a", port=9092, rack="r")],
        cluster_id="c",
        controller_id=1,
        topics=[
            topic(
                error_code=0,
                name="t",
                topic_id=UUID(int=5),
                partitions=[partition(partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1])],
            )
        ],
    )
    frame = frame_of(made, version)
    assert decode(MetadataResponse, version, frame) == MetadataResponse.decode(frame, version=version, header=True)


def test_api_versions_error_is_read_in_universal_form() -> None:
    frame = struct.pack(">ihi", 0, 35, 0)
    assert decode(ApiVersionsResponse, 3, frame).error_code == 35


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (bytes(4) + bytes(2) + b"\0" + b"\0" + b"\0", "topics"),
        (bytes(4) + bytes(2) + b"\0" + b"\2" + b"\2a" + b"\0" + b"\0" + b"\0", "partitions"),
    ],
    ids=["outer", "inner"],
)
def test_list_that_is_null_is_refused(body: bytes, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is null"):
        decode(ListPartitionReassignmentsResponse, 0, struct.pack(">i", 7) + b"\0" + body)


def test_unknown_tagged_fields_are_skipped() -> None:
    found = decode(MetadataResponse, 12, metadata_with(3, UNKNOWN_TAG))
    assert len(found.topics[0].partitions) == 3


def test_tagged_fields_that_copy_frame_again_and_again_are_refused() -> None:
    # 32,000 partitions in 640 kB would copy 10 GB, and ten times as many a hundred times as much.
    with pytest.raises(ValueError, match="tagged fields"):
        decode(MetadataResponse, 12, metadata_with(32_000, UNKNOWN_TAG))


def test_endless_length_is_refused_before_reading() -> None:
    with pytest.raises(ValueError, match="length of more than"):
        decode(MetadataResponse, 12, bytes(9) + b"\xff" * 64_000 + b"\1")


def test_metadata_of_200_000_partitions_fits_with_topic_for_each() -> None:
    name, partition = 40, 2 + 3 * 4 + 2 * (1 + 3 * 4) + 1 + 1
    topic = 2 + 1 + name + 16 + 1 + 1 + 4 + 1
    assert 200_000 * (topic + partition) < response_decoding.LARGE_LIMIT
