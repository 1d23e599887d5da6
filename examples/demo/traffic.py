"""Live traffic, seen from the demo: starts the ``generator`` process, gathers its samples, reads all back at the end.

The generator is a process of its own, so that the demo's threads do not disturb its clock. Called by ``scenario``.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from confluent_kafka import Consumer, TopicPartition

from demo.generator import rates
from demo.samples import Sample, late

READY_SECONDS = 180.0
DRAIN_SECONDS = 90.0
READ_BACK_SECONDS = 180.0


class TrafficFailed(RuntimeError):
    """The traffic process ended, or did not start; the message holds what it said."""


class Traffic:
    """Producers and consumers, at work from ``__enter__`` to ``finish``; ``__exit__`` ends them at once."""

    def __init__(self, bootstrap: str, topics: Sequence[str], partitions: int, per_second: float, log: Path) -> None:
        self._command = [sys.executable, "-m", "demo.generator"]
        self._command += [bootstrap, ",".join(topics), str(partitions), str(per_second)]
        self._rates = rates(per_second)
        self._log = log
        self._samples: list[Sample] = []
        self._ready = threading.Event()
        self._ended = threading.Event()

    def __enter__(self) -> Traffic:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._gather, args=(self._process.stdout,), daemon=True).start()
        try:
            self._wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.alive:
            self._process.kill()
        self._process.wait()

    @property
    def alive(self) -> bool:
        """Whether the traffic process runs."""
        return self._process.poll() is None

    def check(self) -> None:
        """Raise TrafficFailed when the traffic process has ended."""
        if not self.alive:
            raise TrafficFailed(f"the traffic has ended by itself: {self._log.read_text().strip()}")

    def samples(self) -> tuple[Sample, ...]:
        """Every record that is finished by now, in order of being finished."""
        return tuple(self._samples)

    def late(self, now: float) -> list[Sample]:
        """The records that were due more than a second ago and are not finished, as if they were finished now."""
        return [record for kind, rate in self._rates.items() for record in late(self._samples, kind, rate, now)]

    def finish(self) -> tuple[Sample, ...]:
        """Stop sending, wait until every record in flight is acknowledged or given up, and return all samples."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not self._ended.wait(DRAIN_SECONDS):
            raise TrafficFailed(f"the traffic did not end in {DRAIN_SECONDS:g} s: {self._log.read_text().strip()}")
        self._process.wait()
        return self.samples()

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not self._ready.wait(0.2):
            if not self.alive or time.monotonic() > deadline:
                raise TrafficFailed(f"the traffic did not start: {self._log.read_text().strip() or 'it said nothing'}")

    def _gather(self, lines: IO[str]) -> None:
        for line in lines:
            word = line.strip()
            if word == "ready":
                self._ready.set()
            elif word == "end":
                self._ended.set()
            else:
                self._samples.append(Sample.from_line(word))


def read_back(bootstrap: str, topics: Sequence[str]) -> set[bytes]:
    """The keys of all records in the topics, read from beginning to end through ``bootstrap``.

    Raises TrafficFailed when not everything could be read in time: then nothing can be said about losses.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo-read-back",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        metadata = consumer.list_topics(timeout=10).topics
        left = {(topic, partition) for topic in topics for partition in metadata[topic].partitions}
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in left])
        keys: set[bytes] = set()
        deadline = time.monotonic() + READ_BACK_SECONDS
        while left:
            if time.monotonic() > deadline:
                raise TrafficFailed(f"{len(left)} partitions were not read to their end in {READ_BACK_SECONDS:g} s")
            for message in consumer.consume(num_messages=1000, timeout=1.0):
                if message.error() is None:
                    keys.add(message.key() or b"")
                elif message.error().name() == "_PARTITION_EOF":
                    left.discard((message.topic(), message.partition()))
        return keys
    finally:
        consumer.close()
