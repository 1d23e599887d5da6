"""Metadata decodes as kafka-python decodes it; what has not changed is not decoded again; nonsense is refused."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataResponse

from bellwether.adapters.kafka.connection.metadata_decoding import Metadata, decode_metadata, topic_id
from bellwether.core.model.cluster import Broker, Partition

TOPIC = MetadataResponse.MetadataResponseTopic
UNREADABLE = (ValueError, IndexError, struct.error)
ARRAYS = ("replica_nodes", "isr_nodes", "offline_replicas")
NUMBERS = st.integers(0, 2**31 - 1)
LISTENER_NOT_FOUND = 72
LEADER_ERRORS = st.sampled_from([0, 0, 0, 5, 9, LISTENER_NOT_FOUND, -1])


def partition(
    index: int,
    replicas: Sequence[int] = (1, 2, 300),
    isr: Sequence[int] = (1,),
    leader: int = 1,
    offline: Sequence[int] = (300,),
    error: int = 0,
) -> Any:
    return TOPIC.MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=7,
        replica_nodes=list(replicas),
        isr_nodes=list(isr),
        offline_replicas=list(offline),
    )


def topic(name: str, *partitions: Any, error: int = 0, internal: bool = False) -> Any:
    identity = UUID(int=sum(name.encode()))
    return TOPIC(error_code=error, name=name, topic_id=identity, is_internal=internal, partitions=list(partitions))


def frame(*topics: Any, version: int = 13, controller: int = 1, throttle: int = 0, host: str = "a") -> bytearray:
    made = MetadataResponse(
        throttle_time_ms=throttle,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=1, host=host, port=9092, rack="r"),
            MetadataResponse.MetadataResponseBroker(node_id=300, host="b" * 200, port=9093, rack=None),
        ],
        cluster_id="the-cluster",
        controller_id=controller,
        topics=list(topics),
        error_code=0,
    )
    made.API_VERSION = version
    made.with_header(correlation_id=0)
    return bytearray(made.encode(header=True, framed=False))


def fields(p: Partition) -> tuple[Any, ...]:
    return p.index, p.replicas, p.isr, p.leader, p.leader_epoch, p.leader_unknown, p.offline


def as_the_library(p: Any) -> tuple[Any, ...]:
    """What ``fields`` gives for a partition that kafka-python has read."""
    noted = p.error_code in (0, 5, 9)
    return (
        p.partition_index,
        tuple(p.replica_nodes),
        tuple(p.isr_nodes),
        p.leader_id if p.leader_id >= 0 and noted else None,
        p.leader_epoch,
        not noted,
        tuple(p.offline_replicas),
    )


def of(found: Metadata, name: str) -> Any:
    return next(t for t in found.topics if t.name == name)


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_every_version_with_topic_ids_is_read(version: int) -> None:
    found = decode_metadata(frame(topic("b", partition(1), partition(0)), topic("a"), version=version), version)
    assert found.cluster_id == "the-cluster"
    assert found.brokers == (Broker(1, "r", "a", 9092), Broker(300, None, "b" * 200, 9093))
    assert [t.name for t in found.topics] == ["a", "b"]
    assert [p.index for p in of(found, "b").partitions] == [0, 1]
    assert found.short_topics == ("b",)


@given(
    st.lists(
        st.tuples(
            st.text("abc-_.", min_size=1, max_size=249),
            st.booleans(),
            st.sampled_from([0, 3, 29]),
            st.lists(st.tuples(st.lists(NUMBERS, max_size=32), st.integers(-1, 5), LEADER_ERRORS), max_size=5),
        ),
        max_size=5,
        unique_by=lambda t: t[0],
    )
)
def test_topics_are_read_as_the_library_reads_them(drawn: list[Any]) -> None:
    made = frame(
        *(
            topic(
                name,
                *(partition(n, r, r[:1], led, error=code) for n, (r, led, code) in enumerate(ps)),
                error=error,
                internal=internal,
            )
            for name, internal, error, ps in drawn
        )
    )
    ours = decode_metadata(made, 13)
    for theirs in MetadataResponse.decode(made, version=13, header=True).topics:
        mine = of(ours, theirs.name)
        assert mine.error_code == theirs.error_code
        assert [(p.topic_id, p.internal, *fields(p)) for p in mine.partitions] == [
            (topic_id(theirs.topic_id.bytes), theirs.is_internal, *as_the_library(p)) for p in theirs.partitions
        ]


@given(
    st.integers(1, 6),
    st.integers(0, 6),
    st.integers(2, 5),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(ARRAYS)), max_size=2),
    st.integers(0, 2**31 - 1),
    st.lists(LEADER_ERRORS, min_size=5, max_size=5),
)
def test_topics_with_similar_partitions_are_read_as_by_library(
    replicas: int, in_sync: int, count: int, others: list[tuple[int, str]], first: int, errors: list[int]
) -> None:
    made = [
        partition(n, [(first + k + n) % 2**31 for k in range(replicas)], [first] * in_sync, led, (), code)
        for n, led, code in zip(range(count), (-1, 1, first, 300, 0), errors, strict=False)
    ]
    for at, array in others:
        getattr(made[at % count], array).append(0x01000001)
    answer = frame(topic("a", *made), topic("b", *made))
    theirs = MetadataResponse.decode(answer, version=13, header=True).topics[0].partitions
    for name in ("a", "b"):
        ours = of(decode_metadata(answer, 13), name)
        assert list(map(fields, ours.partitions)) == list(map(as_the_library, theirs))
        assert ours.short == any(len(p.isr_nodes) < len(p.replica_nodes) for p in theirs)


@pytest.mark.parametrize(
    ("error", "leader", "unknown"),
    [
        pytest.param(0, -1, False, id="no leader"),
        pytest.param(5, -1, False, id="LEADER_NOT_AVAILABLE"),
        pytest.param(LISTENER_NOT_FOUND, -1, True, id="LISTENER_NOT_FOUND"),
        pytest.param(999, 1, True, id="a code that is not known"),
    ],
)
@pytest.mark.parametrize("offline", [(), (300,)], ids=["alike", "not alike"])
def test_a_leader_that_is_not_named_is_unknown_not_absent(error: int, leader: int, unknown: bool, offline: Any) -> None:
    seen = [partition(n, (1, 2), (1, 2), leader, offline, error) for n in range(3)]
    for found in of(decode_metadata(frame(topic("a", *seen)), 13), "a").partitions:
        assert (found.leader, found.leader_unknown, found.leaderless) == (None, unknown, not unknown)
        assert found.offline == offline


def test_an_answer_in_another_order_is_the_same_answer() -> None:
    a, b = topic("a", partition(0)), topic("b", partition(0), partition(1))
    first = decode_metadata(frame(a, b), 13)
    assert decode_metadata(frame(b, a), 13, first) is first
    assert decode_metadata(frame(b), 13, first) is not first
    assert decode_metadata(frame(b, a, topic("c")), 13, first) is not first


def test_a_frame_that_was_compared_is_as_it_came() -> None:
    first, other = decode_metadata(frame(topic("a", partition(0))), 13), frame(topic("b", partition(0)), throttle=9)
    kept = bytes(other)
    assert decode_metadata(other, 13, first) is not first
    assert other == kept


def test_an_answer_that_names_another_controller_is_the_same_answer() -> None:
    first = decode_metadata(frame(topic("a", partition(0))), 13)
    assert decode_metadata(frame(topic("a", partition(0)), controller=300, throttle=5), 13, first) is first


@pytest.mark.parametrize(
    "other", [frame(topic("a", partition(0)), host="c"), frame(topic("a", partition(0, leader=2)))], ids=["host", "led"]
)
def test_an_answer_that_differs_elsewhere_is_another_one(other: bytes) -> None:
    first = decode_metadata(frame(topic("a", partition(0))), 13)
    assert len(other) == len(frame(topic("a", partition(0))))
    found = decode_metadata(other, 13, first)
    fresh = decode_metadata(other, 13)
    assert (found.brokers, found.topics) == (fresh.brokers, fresh.topics) != (first.brokers, first.topics)


def test_only_topics_that_changed_are_decoded_again() -> None:
    before = decode_metadata(frame(topic("a", partition(0)), topic("b", partition(0)), topic("gone")), 13)
    later = frame(topic("new", partition(0)), topic("b", partition(0)), topic("a", partition(0, isr=(1, 2))))
    after = decode_metadata(later, 13, before)
    assert after.topics == decode_metadata(later, 13).topics
    assert of(after, "b") is of(before, "b")
    assert of(after, "a") is not of(before, "a")


def test_a_topic_that_was_made_again_is_another_topic() -> None:
    again = topic("a", partition(0))
    again.topic_id = UUID(int=99)
    before = decode_metadata(frame(topic("a", partition(0))), 13)
    assert of(decode_metadata(frame(again), 13, before), "a").partitions[0].topic_id == topic_id(UUID(int=99).bytes)


def test_an_answer_that_ends_anywhere_is_refused() -> None:
    whole = frame(topic("a", partition(0), partition(1)), topic("b", error=3))
    for end in range(len(whole)):
        with pytest.raises(UNREADABLE):
            decode_metadata(whole[:end], 13)


HEAD = bytes(4) + b"\0" + bytes(4) + b"\1\0" + bytes(4)
"""An answer without brokers, up to its topics."""
ONE_TOPIC = b"\2" + bytes(2) + b"\2a" + bytes(16) + b"\0"


@pytest.mark.parametrize(
    "rest",
    [
        b"\xff\xff\xff\xff\x0f",
        b"\xff" * 64_000,
        ONE_TOPIC + b"\xff\xff\xff\xff\x0f" + bytes(1000),
        ONE_TOPIC + b"\2" + bytes(14) + b"\0\0\0",
        ONE_TOPIC + b"\2" + bytes(14) + b"\xff\xff\xff\xff\x0f",
        ONE_TOPIC + b"\2" + bytes(14) + b"\1\1\1" + b"\xff\xff\xff\xff\x0f",
        ONE_TOPIC + b"\xff\xff\xff\xff\x0f" + (bytes(14) + b"\1\1\1\0") * 9,
        ONE_TOPIC + b"\3" + bytes(14) + b"\x7f" + bytes(40),
    ],
    ids=[
        "topics",
        "an endless length",
        "partitions",
        "null replicas",
        "replicas",
        "tagged fields",
        "alike partitions",
        "alike replicas",
    ],
)
def test_lengths_that_are_not_backed_by_bytes_are_refused(rest: bytes) -> None:
    with pytest.raises(UNREADABLE):
        decode_metadata(HEAD + rest, 13)


def test_unknown_tagged_fields_are_skipped() -> None:
    tag = bytes([1, 77, 2, 9, 9])
    one = struct.pack(">hiii", 0, 0, 1, 1) + b"\1\1\1" + tag
    found = decode_metadata(HEAD + ONE_TOPIC + b"\2" + one + bytes(4) + tag + bytes(2) + tag, 13)
    assert len(of(found, "a").partitions) == 1


def test_partition_with_many_replicas_is_refused() -> None:
    assert decode_metadata(frame(topic("a", partition(0, range(32), range(32), 0, ()))), 13).topics
    for wide in (partition(0, range(33)), partition(0, isr=range(33)), partition(0, offline=range(20_000))):
        with pytest.raises(ValueError, match="replicas; at most 32 are read"):
            decode_metadata(frame(topic("a", wide)), 13)


def test_more_topics_and_partitions_than_allowed_are_refused() -> None:
    made = frame(topic("a", partition(0), partition(1)), topic("b"))
    assert len(decode_metadata(made, 13, most=4).topics) == 2
    with pytest.raises(ValueError, match=r"more than 3 topics and partitions: .* raise --metadata-limit"):
        decode_metadata(made, 13, most=3)


def test_topic_that_comes_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="topic a twice"):
        decode_metadata(frame(topic("a", partition(0)), topic("a", partition(1))), 13)
