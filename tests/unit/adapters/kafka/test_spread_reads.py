"""Reads of metadata that go round the brokers, and the time and size that they may have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.connection.transport import READ_RATE
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Cluster
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient
from testkit.kafka.scripted_broker import ScriptedBroker, versions
from testkit.kafka.scripted_metadata import (
    Answers,
    answers,
    metadata,
    partition,
    topic,
)
from testkit.values.security_settings import PLAINTEXT


class Peers:
    """Brokers that show the same topics by default; ``offsets`` is how far each one's metadata goes."""

    def __init__(self, stack: contextlib.ExitStack, count: int = 3) -> None:
        self.offsets = [10] * count
        self.topics: list[Any] = [topic("a", partition(0))] * count
        self.brokers = [stack.enter_context(ScriptedBroker(self._answers(at))) for at in range(count)]
        limits = Limits(opening_seconds=300, request_seconds=300, read_seconds=900, next_seconds=300)
        self.reader = KafkaReader(BrokerPool(Connection((self.brokers[0].address,), PLAINTEXT), limits))

    def _answers(self, at: int) -> Answers:
        def described_now(request: Any) -> Any:
            found = metadata(self.topics[at])(request)
            ports = [(n, one.port) for n, one in enumerate(self.brokers, 1)]
            kind = MetadataResponse.MetadataResponseBroker
            found.brokers = [kind(node_id=n, host="127.0.0.1", port=port, rack=None) for n, port in ports]
            return found

        offset = versions(offset=lambda: self.offsets[at])
        return answers(metadata=described_now, versions=offset)

    def read(self) -> tuple[Cluster, list[int]]:
        """What is read, and which brokers were asked for it."""
        before = [len(one.asked(MetadataRequest)) for one in self.brokers]
        found = self.reader.read()
        asked = [n for n, one in enumerate(self.brokers) if len(one.asked(MetadataRequest)) > before[n]]
        return found, asked

    def settle(self) -> Cluster:
        """Read until the same was read twice, from the first broker."""
        first, _ = self.read()
        again, asked = self.read()
        assert again is first
        assert asked == [0]
        return first


@pytest.fixture
def peers() -> Iterator[Peers]:
    with contextlib.ExitStack() as stack:
        yield Peers(stack)


def test_while_nothing_changes_every_broker_is_read_in_turn(peers: Peers) -> None:
    cluster = peers.settle()
    read = [peers.read() for _ in range(4)]
    assert [asked for _, asked in read] == [[1], [2], [0], [1]]
    assert all(found is cluster for found, _ in read)


def test_change_is_believed_from_broker_that_is_not_behind(peers: Peers) -> None:
    before = peers.settle()
    peers.offsets[1], peers.topics[1] = 11, topic("a", partition(0, leader=2))
    after, asked = peers.read()
    assert asked == [1]
    assert (before.partitions[0].leader, after.partitions[0].leader) == (1, 2)


@pytest.mark.parametrize("offset", [-1, 9, 10], ids=["unknown", "behind", "level"])
def test_stale_broker_does_not_bring_back_what_was(peers: Peers, offset: int) -> None:
    before = peers.settle()
    peers.offsets[1], peers.topics[1] = offset, topic("a", partition(0, leader=2))
    found, asked = peers.read()
    assert found is before
    assert asked == [0, 1], "the broker that was believed is asked again"


def test_a_broker_with_old_metadata_does_not_hide_a_change(peers: Peers) -> None:
    peers.settle()
    peers.offsets[0] = peers.offsets[2] = 20
    peers.topics[0] = peers.topics[2] = topic("a", partition(0, leader=2))
    peers.read()  # the second broker is behind, and still shows what was
    found, asked = peers.read()
    assert asked == [2]
    assert found.partitions[0].leader == 2


def test_after_change_same_broker_is_asked_until_nothing_changes(peers: Peers) -> None:
    peers.settle()
    peers.offsets[0], peers.topics[0] = 30, topic("a", partition(0, leader=2))
    peers.offsets[1], peers.topics[1] = 30, topic("a", partition(0, leader=2))
    assert [peers.read()[1] for _ in range(3)] == [[1], [1], [1, 2]]


def test_no_broker_behind_read_back_partitions_is_believed(peers: Peers) -> None:
    peers.settle()
    peers.offsets[0], peers.topics[0] = 30, topic("a", partition(0, leader=2))
    assert [p.leader for p in peers.reader.partitions(["a"])] == [2]
    peers.offsets[1], peers.topics[1] = 20, topic("a", partition(0, leader=3))  # newer than the last full read
    found, asked = peers.read()
    assert (found.partitions[0].leader, asked) == (2, [0])


def test_a_larger_answer_than_allowed_is_refused_with_the_remedy() -> None:
    many = [topic(f"topic-{n:05}", partition(0)) for n in range(200)]
    with ScriptedBroker(answers(*many)) as broker:
        for limit, refused in ((1 << 12, True), (1 << 20, False)):
            limits = Limits(opening_seconds=300, request_seconds=300, read_seconds=900, metadata_bytes=limit)
            found = KafkaReader(BrokerPool(Connection((broker.address,), PLAINTEXT), limits))
            if refused:
                with pytest.raises(Terminal, match=r"at most 4096 are read: .* raise --metadata-limit"):
                    found.read()
            else:
                assert len(found.read().partitions) == 200


def test_first_answer_may_take_as_long_as_largest(leap: Callable[[float], None]) -> None:
    def late(seconds: float) -> Callable[[Any], Any]:
        def answer(request: Any) -> Any:
            if request.topics is None:
                leap(seconds)
            return metadata(topic("a", partition(0)))(request)

        return answer

    limits = Limits(opening_seconds=200, request_seconds=200, read_seconds=1000, metadata_bytes=400 * READ_RATE)
    for seconds, heard in ((500, True), (700, False)):
        with ScriptedBroker(answers(metadata=late(seconds))) as broker:
            found = KafkaReader(BrokerPool(Connection((broker.address,), PLAINTEXT), limits))
            if heard:
                assert len(found.read().partitions) == 1
            else:
                with pytest.raises(Transient, match="no answer in time"):
                    found.read()
