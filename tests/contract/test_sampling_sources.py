"""The contract of what a round asks: brokers in memory, or real ones, tell where logs end and how large they are."""

from __future__ import annotations

import uuid
from typing import Any, Protocol

import pytest

from bellwether.adapters.kafka.brokers.log_dirs import LogDirs
from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import BrokerLogEnds
from bellwether_load.sampling.rounds import Sources
from testkit.kafka.kafka_site import PATIENT
from testkit.kafka.sampled_cluster import Site, partition
from testkit.values.security_settings import PLAINTEXT
from waiting import until

RECORD = 1000


class Sampled(Protocol):
    """One partition, led by broker 1."""

    sources: Sources
    name: TopicPartition

    def write(self, records: int) -> None:
        """Let so many records of ``RECORD`` bytes come."""

    def address(self, broker: int) -> str:
        """Where to ask."""


class MemorySampled:
    def __init__(self) -> None:
        self.name = TopicPartition("t", 0)
        self._site = Site((partition("t", 0, 1),), ends={self.name: 0}, sizes={self.name: 0})
        self._site.epochs = {self.name: 4}
        self.sources = self._site.sources()

    def write(self, records: int) -> None:
        self._site.ends[self.name] += records
        self._site.sizes[self.name] += records * (RECORD + 10)

    def address(self, broker: int) -> str:
        return f"h:{broker}"


class KafkaSampled:
    def __init__(self, kafka: Any) -> None:
        from confluent_kafka import Producer

        from realparts.kafka import create_topics

        self._kafka = kafka
        self.name = TopicPartition(f"contract-{uuid.uuid4().hex[:8]}", 0)
        create_topics(kafka.bootstrap, {self.name.topic: 1}, assignments={self.name.topic: [[1, 2, 3]]})
        made = Connection(tuple(kafka.bootstrap.split(",")), PLAINTEXT)
        self.sources = Sources(KafkaReader(BrokerPool(made, PATIENT)), LogEnds(made), LogDirs(made))
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all", "linger.ms": 50})

    def write(self, records: int) -> None:
        for _ in range(records):
            self._producer.produce(self.name.topic, b"x" * RECORD, partition=self.name.partition)
        assert self._producer.flush(30) == 0

    def address(self, broker: int) -> str:
        return str(self._kafka.broker(broker).internal)


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def sampled(request: pytest.FixtureRequest) -> Sampled:
    if request.param == "memory":
        return MemorySampled()
    return KafkaSampled(request.getfixturevalue("four"))


def epoch(sampled: Sampled) -> int:
    return next(p.leader_epoch for p in sampled.sources.maps.read().partitions if p.name == sampled.name)


def ends(sampled: Sampled, broker: int, epoch: int) -> BrokerLogEnds:
    return sampled.sources.ends.ask(sampled.address(broker), {sampled.name: epoch}, 5, 10)


def size(sampled: Sampled, broker: int) -> int:
    return dict(sampled.sources.sizes.ask(sampled.address(broker), [sampled.name], 5, 10).sizes)[sampled.name]


def test_a_leader_tells_its_end_and_its_size(sampled: Sampled) -> None:
    sampled.write(20)
    noted = ends(sampled, 1, epoch(sampled))
    assert (noted.ends, noted.moved, noted.problem) == ({sampled.name: 20}, 0, "")
    assert 20 * RECORD <= size(sampled, 1) <= 20 * RECORD * 1.1


def test_what_comes_between_two_questions_is_their_difference(sampled: Sampled) -> None:
    sampled.write(5)
    before = size(sampled, 1)
    sampled.write(100)
    assert ends(sampled, 1, epoch(sampled)).ends == {sampled.name: 105}
    assert size(sampled, 1) - before == pytest.approx(100 * RECORD, rel=0.1)


def test_another_epoch_than_present_one_says_that_partition_moved(sampled: Sampled) -> None:
    noted = ends(sampled, 1, epoch(sampled) + 7)
    assert (noted.ends, noted.moved, noted.problem) == ({}, 1, "")


def test_a_copy_has_its_size_under_any_leader(sampled: Sampled) -> None:
    sampled.write(30)
    until(lambda: size(sampled, 2) >= 30 * RECORD)


def test_a_partition_that_was_never_created_is_in_no_answer(sampled: Sampled) -> None:
    unknown = TopicPartition("never-made", 3)
    noted = sampled.sources.ends.ask(sampled.address(1), {unknown: 0}, 5, 10)
    assert (dict(noted.ends), noted.problem) == ({}, "")
    assert sampled.sources.sizes.ask(sampled.address(1), [unknown], 5, 10).sizes == {}
