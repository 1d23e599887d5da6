"""An independent client that looks at the leaders every 20 ms, in a process of its own.

``python -m evacuation.observer ADDRESS TOPIC...`` asks the broker at that address over one connection, and prints a
line for each change: the monotonic clock of this machine when the answer had arrived, and leaders by broker.
``Observer`` starts it and waits for what it sees.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Thread
from types import TracebackType
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest

from bellwether.adapters.kafka.connection.broker_connection import BrokerConnection
from bellwether.adapters.kafka.connection.connection_errors import Stage
from bellwether.adapters.kafka.connection.response_decoding import LARGE_LIMIT
from bellwether.adapters.kafka.connection.transport import Deadline, HiddenBytes
from bellwether.kafka_connection import Connection
from evacuation.leader_counts import VERSION, count_leaders
from testkit.values.security_settings import PLAINTEXT
from waiting import TooLate, limit

EVERY_SECONDS = 0.02
_HEADER = 5  # correlation id, no tagged fields

Leaders = Mapping[int, int]


def observe(address: str, topics: Sequence[str]) -> None:
    """Look until the process is ended; see the module for what is printed."""
    request = MetadataRequest(
        version=VERSION,
        topics=[MetadataRequest.MetadataRequestTopic(topic_id=UUID(int=0), name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    request.with_header(correlation_id=0, client_id="observer")
    framed = HiddenBytes(request.encode(framed=True, header=True))
    # Brokers name a random controller, so that equal leaders come in as many frames as there are brokers.
    known: dict[bytes, dict[int, int]] = {}
    shown: dict[int, int] | None = None
    with BrokerConnection.open(address, Connection((address,), PLAINTEXT), Deadline(limit(30))) as connection:
        while True:
            began = time.monotonic()
            frame = bytes(connection.exchange(framed, Deadline(limit(30)), Stage.REQUEST, LARGE_LIMIT))
            at = time.monotonic()
            if frame not in known:
                if len(known) > 50:
                    known.clear()
                known[frame] = dict(sorted(count_leaders(frame[_HEADER:]).items()))
            if known[frame] != shown:
                shown = known[frame]
                print(json.dumps({"at": at, "leaders": shown}), flush=True)
            time.sleep(max(0.0, began + EVERY_SECONDS - time.monotonic()))


class Observer:
    """The process, started on entry and ended on exit. Times are of the monotonic clock, in seconds."""

    def __init__(self, address: str, topics: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", "evacuation.observer", address, *topics]
        self._changes: list[tuple[float, Leaders]] = []
        self._news = Condition()

    def __enter__(self) -> Observer:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self._reader = Thread(target=self._read, name="observer")
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def wait(self, holds: Callable[[Leaders], bool], since: float, seconds: float, what: str) -> float:
        """When ``holds`` was first seen to be true of the leaders after ``since``; TooLate if it is not in time."""
        until = time.monotonic() + limit(seconds)
        looked = 0
        with self._news:
            while True:
                for at, leaders in self._changes[looked:]:
                    if at >= since and holds(leaders):
                        return at
                looked = len(self._changes)
                left = until - time.monotonic()
                if self._process.poll() is not None or left <= 0:
                    raise TooLate(f"not seen within {seconds:.0f} s: {what}; last: {self._changes[-1:]}")
                self._news.wait(min(left, 1.0))

    def now(self, seconds: float = 30) -> Leaders:
        """The last change that was seen; TooLate without one."""
        self.wait(lambda _: True, 0.0, seconds, "any leader")
        with self._news:
            return self._changes[-1][1]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            seen = json.loads(line)
            with self._news:
                self._changes.append((seen["at"], {int(b): n for b, n in seen["leaders"].items()}))
                self._news.notify_all()


if __name__ == "__main__":
    observe(sys.argv[1], sys.argv[2:])
