"""Records of one producer, open loop, and what became of each: when it was due, when it was acknowledged, or why not.

In: the brokers, a topic, records a second. Out: ``Sent`` values while it runs, and at the end which acknowledged
records cannot be read back. Called by ``stage``. A record is due when the clock says so, and waits from then, however
late the client is; each client has partitions of its own, so that one partition's wait is not another's.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from waiting import until

CLIENTS = 4
DELIVERY_SECONDS = 30
PAYLOAD_BYTES = 200


@dataclass(frozen=True, slots=True)
class Sent:
    """One record that is done. Times are monotonic seconds; ``error`` is empty once it was acknowledged."""

    partition: int
    key: bytes
    due: float
    done: float
    error: str = ""

    @property
    def seconds(self) -> float:
        """How long it took, or was waited for without success."""
        return self.done - self.due


class Traffic:
    """Produces from ``__enter__`` to ``finish``."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        per_second: float,
        *,
        acks: str = "all",
        payload: int = PAYLOAD_BYTES,
    ) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._per_second = per_second
        self._acks = acks
        self._payload = b"x" * payload
        self._stop = threading.Event()
        self._sent: list[Sent] = []
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(CLIENTS)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    @property
    def sent(self) -> list[Sent]:
        """What is done by now."""
        return list(self._sent)

    def acknowledged_since(self, moment: float) -> set[int]:
        """The partitions that took a record which was due after that."""
        return {s.partition for s in self.sent if s.due >= moment and not s.error}

    def finish(self, *, read_back: bool = True) -> list[bytes]:
        """Stop, wait for what is in flight, read everything back; the keys that were acknowledged and are gone."""
        self._stop.set()
        for thread in self._threads:
            thread.join(DELIVERY_SECONDS + 15)
        if not read_back:
            return []
        found = self._read_back()
        return [s.key for s in self._sent if not s.error and s.key not in found]

    def _run(self, number: int) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": f"bench-{number}",
                "acks": self._acks,
                "enable.idempotence": self._acks == "all",
                "message.timeout.ms": DELIVERY_SECONDS * 1000,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
            }
        )
        own = [p for p in range(self._partitions) if p % CLIENTS == number]
        self._introduce(producer, own)
        started, every = time.monotonic(), CLIENTS / self._per_second
        for count in itertools.count():
            due = started + count * every
            while (left := due - time.monotonic()) > 0 and not self._stop.is_set():
                producer.poll(min(left, 0.2))
            if self._stop.is_set():
                break
            self._send(producer, own[count % len(own)], f"{number}:{count}".encode(), due)
        producer.flush(DELIVERY_SECONDS + 5)

    def _introduce(self, producer: Any, partitions: Sequence[int]) -> None:
        """One acknowledged record in each partition, before there are several requests in flight.

        A leader takes any sequence number of a producer that it does not know, and librdkafka takes what the leader
        acknowledges for an acknowledgement of all before it: a first request that is refused, as a leader does that
        does not know its topic, is lost and acknowledged if the second one is taken (confluent-kafka-go issue 921).
        """
        for partition in partitions:
            producer.produce(self._topic, b"", b"first", partition)
        producer.flush(DELIVERY_SECONDS + 5)

    def _send(self, producer: Any, partition: int, key: bytes, due: float) -> None:
        def done(error: KafkaError | None, _: Message) -> None:
            self._sent.append(Sent(partition, key, due, time.monotonic(), "" if error is None else str(error.name())))

        try:
            producer.produce(self._topic, self._payload, key, partition, on_delivery=done)
        except BufferError:
            self._sent.append(Sent(partition, key, due, time.monotonic(), "_QUEUE_FULL"))

    def _read_back(self) -> set[bytes]:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "bench-reader",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        names = [TopicPartition(self._topic, p, 0) for p in range(self._partitions)]
        ends = {p: until(partial(_end, consumer, name), 60, "the log's end") - 1 for p, name in enumerate(names)}
        left = {p for p, end in ends.items() if end > 0}
        consumer.assign(names)
        found: set[bytes] = set()
        latest = time.monotonic() + 120
        while left and time.monotonic() < latest:
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    found.add(message.key() or b"")
                    if message.offset() + 1 >= ends[message.partition()]:
                        left.discard(message.partition())
        consumer.close()
        if left:
            raise RuntimeError(f"{len(left)} partitions could not be read to their ends: what is lost is not known")
        return found


def _end(consumer: Any, name: TopicPartition) -> int:
    """Where a partition ends, plus one; 0 while its new leader does not know how far the others have come (KIP-207)."""
    try:
        return int(consumer.get_watermark_offsets(name, timeout=30)[1]) + 1
    except KafkaException:
        return 0
