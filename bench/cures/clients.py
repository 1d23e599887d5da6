"""Clients of each kind that a cure may help or harm, and what each of their requests took: ``Sent`` values.

In: the brokers, topics, records a second. Out: for each kind the requests that are done. Producers are open loop: a
record is due when the clock says so, and waits from then. A fetch from the tail is due when its record was
acknowledged. Called by ``stage``.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Collection
from enum import StrEnum

from confluent_kafka import Consumer, Producer, TopicPartition

from cures.traffic import PAYLOAD_BYTES, Sent, Traffic

PER_SECOND = {"old": 4.0, "new": 2.0}
"""Fetches of old records, and new clients, a second."""
PATIENCE_SECONDS = 5.0


class Kind(StrEnum):
    """Kinds of clients; they are distinguished by whether the sick broker led their partition."""

    ALL = "acks=all"
    ONE = "acks=1"
    TAIL = "fetches from the tail"
    COLD = "fetches of old records"
    NEW = "new clients"


class Clients:
    """Everything that is a client of one cluster, from ``__enter__`` on."""

    def __init__(
        self,
        bootstrap: str,
        topics: tuple[str, str],
        partitions: int,
        per_second: float,
        *,
        payload: int = PAYLOAD_BYTES,
    ) -> None:
        """``topics`` take acks=all and acks=1, each of ``partitions`` and ``per_second`` records."""
        self._settings = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 1000, "log_level": 0}
        self._topics, self._partitions = topics, partitions
        self._producers = {
            Kind.ALL: Traffic(bootstrap, topics[0], partitions, per_second, payload=payload),
            Kind.ONE: Traffic(bootstrap, topics[1], partitions, per_second, acks="1", payload=payload),
        }
        self._received: dict[tuple[int, bytes], float] = {}
        self._polled: dict[Kind, list[Sent]] = {Kind.COLD: [], Kind.NEW: []}
        self._led: tuple[int, ...] = ()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, daemon=True),
            threading.Thread(target=self._paced, args=(Kind.NEW, PER_SECOND["new"], self._begin_anew), daemon=True),
            threading.Thread(target=self._read_old, daemon=True),
        ]

    def __enter__(self) -> Clients:
        for traffic in self._producers.values():
            traffic.__enter__()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for traffic in self._producers.values():
            traffic.__exit__()

    def read_old_of(self, partitions: Collection[int]) -> None:
        """From now on old records are read of these partitions of the second topic."""
        self._led = tuple(sorted(partitions))

    def finish(self) -> list[Sent]:
        """Stop, and read everything back: the acknowledged acks=all records that are gone."""
        keys = set(self._producers[Kind.ALL].finish())
        lost = [one for one in self.sent(Kind.ALL) if one.key in keys]
        self._producers[Kind.ONE].finish(read_back=False)
        time.sleep(PATIENCE_SECONDS)
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS + 10)
        return lost

    def sent(self, kind: Kind) -> list[Sent]:
        """The requests of one kind that are done; of the tail, what was acknowledged, received or not."""
        if kind in self._producers:
            return self._producers[kind].sent
        if kind is Kind.TAIL:
            acknowledged = [one for one in self._producers[Kind.ONE].sent if not one.error]
            never = math.inf
            return [
                Sent(one.partition, one.key, one.done, self._received.get((one.partition, one.key), never))
                for one in acknowledged
            ]
        return list(self._polled[kind])

    def _follow(self) -> None:
        consumer = Consumer({**self._settings, "group.id": "bench-tail", "fetch.wait.max.ms": 100})
        consumer.assign([TopicPartition(self._topics[1], p, 0) for p in range(self._partitions)])
        while not self._stop.is_set():
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    self._received[message.partition() or 0, message.key() or b""] = time.monotonic()
        consumer.close()

    def _read_old(self) -> None:
        consumer = Consumer({**self._settings, "group.id": "bench-old", "max.partition.fetch.bytes": 4096})

        def read(number: int) -> bool:
            consumer.assign([TopicPartition(self._topics[1], self._led[number % len(self._led)], 0)])
            message = consumer.poll(PATIENCE_SECONDS)
            return message is not None and message.error() is None

        self._paced(Kind.COLD, PER_SECOND["old"], read)
        consumer.close()

    def _begin_anew(self, number: int) -> bool:
        """A client that knows none of the brokers sends one record, with acks=1, to a partition that was led there."""
        producer, errors = Producer({**self._settings, "acks": "1"}), list[object]()
        partition = self._led[number % len(self._led)]
        producer.produce(self._topics[1], b"first", b"", partition, on_delivery=lambda error, _: errors.append(error))
        producer.flush(PATIENCE_SECONDS)
        return errors == [None]

    def _paced(self, kind: Kind, per_second: float, request: Callable[[int], bool]) -> None:
        for number in itertools.count():
            if self._stop.wait(1 / per_second):
                return
            if self._led:
                due = time.monotonic()
                good = request(number)
                partition = self._led[number % len(self._led)]
                self._polled[kind].append(Sent(partition, b"", due, time.monotonic(), "" if good else "failed"))
