"""BrokerLogEnds of logs as real brokers tell them: leaders and followers alike."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from bellwether.adapters.kafka.brokers.log_ends import LogEnds
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.kafka import BrokerLogEnds
from realparts.kafka import KafkaCluster
from waiting import limit, until

pytestmark = pytest.mark.kafka

RECORDS = 25


def write(brokers: KafkaCluster, topic: str, partition: int, acks: str = "all", records: int = RECORDS) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": acks})
    for _ in range(records):
        producer.produce(topic, b"x", partition=partition)
    assert producer.flush(30) == 0


def led_by(reader: KafkaReader, topic: str, broker: int) -> Partition:
    return next(p for p in reader.partitions([topic]) if p.leader == broker)


def test_leader_and_followers_tell_the_end_of_their_own_copy(
    brokers: KafkaCluster, connection: Connection, reader: KafkaReader, fresh_topic: str
) -> None:
    led = led_by(reader, fresh_topic, 1)
    write(brokers, fresh_topic, led.index)
    asker = LogEnds(connection)
    for number in (1, 2, 3):
        questions = {led.name: led.leader_epoch if number == 1 else -1}

        def noted(number: int = number, questions: dict[TopicPartition, int] = questions) -> BrokerLogEnds:
            return asker.ask(brokers.broker(number).internal, questions, 5, 10)

        until(lambda noted=noted: noted().ends == {led.name: RECORDS})  # type: ignore[misc]
        assert (noted().problem, noted().moved) == ("", 0)


def test_a_frozen_follower_costs_its_own_timeout_and_then_tells_how_far_it_is(
    brokers: KafkaCluster, connection: Connection, reader: KafkaReader, fresh_topic: str
) -> None:
    led, asker, frozen = led_by(reader, fresh_topic, 1), LogEnds(connection), brokers.broker(3)
    write(brokers, fresh_topic, led.index)
    until(lambda: asker.ask(frozen.internal, {led.name: -1}, 5, 10).ends == {led.name: RECORDS})
    frozen.pause()
    try:
        write(brokers, fresh_topic, led.index, acks="1")
        assert asker.ask(brokers.broker(1).internal, {led.name: led.leader_epoch}, 5, 10).ends == {
            led.name: 2 * RECORDS
        }

        found = asker.ask(frozen.internal, {led.name: -1}, limit(0.7), limit(5))
        assert (found.ends, found.problem) == ({}, f"{frozen.internal}: connected, but no answer in time (Request)")
    finally:
        brokers.mend()
    until(lambda: asker.ask(frozen.internal, {led.name: -1}, 5, 10).ends == {led.name: 2 * RECORDS})


def test_a_broker_that_does_not_lead_in_that_epoch_or_does_not_hold_the_partition_says_that_it_moved(
    brokers: KafkaCluster, connection: Connection, reader: KafkaReader, topic: str
) -> None:
    led, asker = led_by(reader, topic, 1), LogEnds(connection)
    questions = {led.name: led.leader_epoch + 7, TopicPartition("never-made", 0): -1}
    answer = asker.ask(brokers.broker(1).internal, questions, 5, 10)
    assert (answer.ends, answer.moved, answer.problem) == ({}, 2, "")
