"""A trickle of records, so that disks are written to and replicas have something to fetch. Nothing is measured by it.

In: the internal listeners and topics. Out: some records a second with acks=all, until the end. What fails is not tried
again: brokers are being broken. Called by ``stage``.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence

from confluent_kafka import Producer

PER_SECOND = 20
PAYLOAD = b"x" * 200

_SILENT = logging.getLogger("faults.trickle")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class Trickle:
    """Produces from ``__enter__`` to ``__exit__``, on a thread of its own."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "message.timeout.ms": 5000,
            "queue.buffering.max.messages": 2000,
        }
        self._producer = Producer(settings, logger=_SILENT)
        self._topics = tuple(topics)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def __enter__(self) -> Trickle:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)
        self._producer.purge()
        self._producer.flush(2)

    def _produce(self) -> None:
        sent = 0
        while not self._stop.wait(1 / PER_SECOND):
            sent += 1
            with contextlib.suppress(BufferError):  # as much as may be waits already
                self._producer.produce(self._topics[sent % len(self._topics)], PAYLOAD, key=str(sent))
            self._producer.poll(0)
