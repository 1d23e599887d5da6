"""A producer that writes to given partitions without pause, acknowledged by their leaders alone.

Used by tests that need followers to have something to follow.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from types import TracebackType

from confluent_kafka import Producer

from waiting import limit

_SILENT = logging.getLogger("testkit.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class SteadyWriter:
    """A context: within it, every partition of a topic gets a record every ``seconds``."""

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int], seconds: float = 0.2) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 0}, logger=_SILENT)
        self._topic = topic
        self._partitions = partitions
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> SteadyWriter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(limit(10))
        self._producer.flush(5)

    def _write(self) -> None:
        while not self._stop.wait(self._seconds):
            for partition in self._partitions:
                self._producer.produce(self._topic, b"x" * 100, partition=partition)
            self._producer.poll(0)
