"""The independent observer: polls cluster metadata with a client of its own and feeds ``observations``.

It asks through the internal listener, which no fault of the demo touches, four times a second. Used by ``scenario`` to
know when a broker leads nothing, by ``table`` to show leaders, by ``report`` for the invariants.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo.observations import Name, Observations, Seen

POLL_SECONDS = 0.25

Answer = TypeVar("Answer")


class Watch:
    """A thread that looks until it is told to stop; all reading of what it saw goes through ``ask``."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "demo-watch", "log_level": 0})
        self._lock = threading.Lock()
        self._seen = Observations()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self.problem = ""

    def __enter__(self) -> Watch:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def look(self) -> None:
        """Poll once. Raises KafkaException when no broker answers."""
        metadata = self._admin.list_topics(timeout=3)
        now = time.monotonic()
        view: dict[Name, Seen] = {
            (name, index): Seen(None if p.leader < 0 else p.leader, tuple(p.replicas), tuple(p.isrs))
            for name, topic in metadata.topics.items()
            for index, p in topic.partitions.items()
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
