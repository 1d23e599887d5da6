"""The independent observer: polls cluster metadata with a client of its own and feeds ``observations``.

It asks through the internal listener, which no fault of the demo touches, four times a second. It asks a broker that is
not broken: one with a slow disk learns late what the controller has decided, as it applies each change to its own log
directory first. When that broker itself knows is watched, too: until then it goes on acknowledging acks=1.

Used by ``scenario`` to know when a broker leads nothing, by ``table`` to show leaders, by ``report`` to judge.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo.observations import Name, Observations, Seen

POLL_SECONDS = 0.25
BROKEN_POLL_SECONDS = 1.0
UNNAMED = -1  # what the client calls a bootstrap server before it has learnt its id

Answer = TypeVar("Answer")


class Watch:
    """A thread that polls until it is stopped; results are read through ``ask``."""

    def __init__(self, addresses: Mapping[int, str]) -> None:
        self._addresses = dict(addresses)
        self._admins = {broker: _admin(address) for broker, address in addresses.items()}
        self._broken: int | None = None
        self._noticed_at: float | None = None
        self._lock = threading.Lock()
        self._seen = Observations()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._look_on, self._look_at_broken)]
        self.problem = ""

    def __enter__(self) -> Watch:
        self.look()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)

    def broken(self, broker: int | None) -> None:
        """From now on this broker is broken, and others are asked; ``None`` when all is back in place."""
        self._noticed_at = None
        self._broken = broker

    @property
    def noticed_at(self) -> float | None:
        """When the broken broker's own metadata first showed that it leads nothing."""
        return self._noticed_at

    def look(self) -> None:
        """Poll once. Raises KafkaException when no broker answers."""
        broken = self._broken
        asked = next(broker for broker in self._admins if broker != broken)
        try:
            metadata = self._admins[asked].list_topics(timeout=3 if broken is None else 1)
        except KafkaException:
            # It may have chosen the broken one, which answers nothing while it is frozen.
            self._admins[asked] = _admin(self._addresses[asked])
            metadata = self._admins[asked].list_topics(timeout=3)
        if metadata.orig_broker_id == broken:
            # A client that has learnt of all brokers chooses for itself, and stays with its choice; a new one asks whom
            # it is given.
            self._admins[asked] = _admin(self._addresses[asked])
            metadata = self._admins[asked].list_topics(timeout=3)
        now = time.monotonic()
        if metadata.orig_broker_id == broken:
            return
        view: dict[Name, Seen] = {
            (name, index): Seen(None if p.leader < 0 else p.leader, tuple(p.replicas), tuple(p.isrs))
            for name, topic in metadata.topics.items()
            for index, p in topic.partitions.items()
            if len(p.replicas) > 1  # a canary's partitions have one: no leader of theirs can move
        }
        with self._lock:
            self._seen.add(now, view)

    def ask(self, question: Callable[[Observations], Answer]) -> Answer:
        """The answer of what has been seen, while nothing is added to it."""
        with self._lock:
            return question(self._seen)

    def _look_on(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self.look()
                self.problem = ""
            except KafkaException as problem:
                self.problem = str(problem)

    def _look_at_broken(self) -> None:
        while not self._stop.wait(BROKEN_POLL_SECONDS):
            broken = self._broken
            if broken is None or self._noticed_at is not None:
                continue
            try:
                metadata = _admin(self._addresses[broken]).list_topics(timeout=3)  # a new client asks whom it is given
            except KafkaException:
                continue  # it does not answer: it cannot tell what it knows
            led = any(
                p.leader == broken and len(p.replicas) > 1
                for topic in metadata.topics.values()
                for p in topic.partitions.values()
            )
            asked = metadata.orig_broker_id in (broken, UNNAMED)
            if asked and not led and broken == self._broken:
                self._noticed_at = time.monotonic()


def _admin(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address, "client.id": "demo-watch", "log_level": 0})
