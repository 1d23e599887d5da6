"""Producers that keep to uneven, steady rates and consumers that read along, which count what they did.

In: topics with their workloads. Out: records by partition that brokers acknowledged and that consumers were given, so
that nothing of the product's own has to be believed. Called by the test of the way from traffic to a plan and back.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from waiting import limit

RECORD_BYTES = 4000
# Incompressible, and different for every record that is near another one.
BLOCKS = [hashlib.shake_256(str(n).encode()).digest(RECORD_BYTES) for n in range(256)]

Key = tuple[str, int]


@dataclass(frozen=True)
class Workload:
    """One topic: records a second by partition, the replicas of each, and how many consumers read all of it."""

    rates: Sequence[int]
    replicas: Sequence[Sequence[int]]
    consumers: int

    @property
    def partitions(self) -> int:
        """How many."""
        return len(self.rates)


def payload(partition: int, number: int) -> bytes:
    """The value of a partition's record of that offset."""
    return BLOCKS[(partition * 37 + number) % 256]


def rates(work: Mapping[str, Workload]) -> dict[Key, int]:
    """Records a second by partition."""
    return {(topic, index): rate for topic, one in work.items() for index, rate in enumerate(one.rates)}


class Traffic:
    """Producers that keep to their rates and consumers that read along, until they are ended.

    Counts records by partition: those that brokers have acknowledged, and those that consumers were given.
    """

    def __init__(self, bootstrap: str, work: Mapping[str, Workload]) -> None:
        settings = {"bootstrap.servers": bootstrap}
        self._producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 5})
        self._consumers = [_consumer(settings, topic, one) for topic, one in work.items() for _ in range(one.consumers)]
        self._rates = rates(work)
        self._over = threading.Event()
        reading = [threading.Thread(target=self._read, args=(one,), daemon=True) for one in self._consumers]
        self._threads = [threading.Thread(target=self._write, daemon=True), *reading]
        self.acknowledged: Counter[Key] = Counter()
        self.consumed: Counter[Key] = Counter()
        self._counting = threading.Lock()
        self.refused: list[str] = []

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(limit(60))
        assert self._producer.flush(60) == 0
        for consumer in self._consumers:
            consumer.close()

    def counted(self) -> Count:
        """So far."""
        with self._counting:
            return Count(time.monotonic(), Counter(self.acknowledged), Counter(self.consumed))

    def _write(self) -> None:
        began, sent = time.monotonic(), Counter[Key]()
        while not self._over.is_set():
            passed = time.monotonic() - began
            for (topic, partition), rate in self._rates.items():
                while (number := sent[topic, partition]) < rate * passed:
                    self._producer.produce(
                        topic,
                        payload(partition, number),
                        key=str(number),
                        partition=partition,
                        on_delivery=self._acknowledge,
                    )
                    sent[topic, partition] += 1
            self._producer.poll(0.02)

    def _acknowledge(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            with self._counting:
                self.acknowledged[message.topic(), message.partition()] += 1

    def _read(self, consumer: Consumer) -> None:
        while not self._over.is_set():
            for message in consumer.consume(200, 0.2):
                if message.error() is None:
                    with self._counting:
                        self.consumed[message.topic(), message.partition()] += 1


@dataclass(frozen=True)
class Count:
    """Records by partition until a moment of the monotonic clock."""

    at: float
    acknowledged: Counter[Key]
    consumed: Counter[Key]

    def since(self, before: Count) -> tuple[dict[Key, float], dict[Key, float]]:
        """Bytes/s that came in and went out, by partition."""
        each = RECORD_BYTES / (self.at - before.at)
        return (
            {key: (count - before.acknowledged[key]) * each for key, count in self.acknowledged.items()},
            {key: (self.consumed[key] - before.consumed[key]) * each for key in self.acknowledged},
        )


def _consumer(settings: Mapping[str, str], topic: str, work: Workload) -> Consumer:
    """It reads all that comes to a topic from now on."""
    consumer = Consumer({**settings, "group.id": f"reads-{uuid.uuid4().hex}", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, index, OFFSET_END) for index in range(work.partitions)])
    return consumer
