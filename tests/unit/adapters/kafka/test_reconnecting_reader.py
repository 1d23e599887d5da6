"""A reader whose credentials are renewed beneath it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bellwether.adapters.kafka import reconnecting_reader
from bellwether.adapters.kafka.reconnecting_reader import LOOK_SECONDS, RenewedReader
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient, Unauthenticated
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryReader, MemoryRoute
from bellwether.simulation.memory_world import ManualClock
from testkit.values.security_settings import PLAINTEXT

OLD, NEW = Connection(("old:1",), PLAINTEXT), Connection(("new:1",), PLAINTEXT)


class Bench:
    """A cluster that takes the old connection or the new one, and Secrets that say one or the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = MemoryCluster(cluster_id="cluster-a")
        self.clock = ManualClock()
        self.said: Connection | Exception = OLD
        self.taken = {OLD, NEW}
        self.asked: list[Connection] = []
        monkeypatch.setattr(reconnecting_reader, "BrokerPool", lambda connection, _limits: connection)
        monkeypatch.setattr(reconnecting_reader, "KafkaReader", self._reader)
        self.reader = RenewedReader(self._make, self.clock)

    def _make(self) -> Connection:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    def _reader(self, connection: Connection) -> Any:
        inner = MemoryReader(self.cluster, MemoryRoute(self.cluster))
        read: Callable[[], Any] = inner.read

        def checked() -> Any:
            self.asked.append(connection)
            if connection not in self.taken:
                raise Unauthenticated(f"{connection.bootstrap[0]} is refused")
            return read()

        inner.read = checked  # type: ignore[method-assign]
        return inner


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_what_has_changed_is_followed_within_half_a_minute(bench: Bench):
    bench.reader.read()
    bench.said = NEW
    bench.clock.advance(LOOK_SECONDS - 1)
    bench.reader.read()
    bench.clock.advance(1)
    bench.reader.read()
    assert bench.asked == [OLD, OLD, NEW]


def test_who_is_refused_looks_at_once(bench: Bench):
    bench.taken, bench.said = {NEW}, NEW
    with pytest.raises(Unauthenticated, match="old:1 is refused"):
        bench.reader.read()
    assert bench.reader.read().cluster_id == "cluster-a"
    assert bench.asked == [OLD, NEW]


@pytest.mark.parametrize("problem", [Transient("the API is away"), Unauthenticated("secret default/ca is gone")])
def test_secrets_that_cannot_be_read_stop_nothing_that_works(bench: Bench, problem: Exception):
    bench.said = problem
    bench.clock.advance(LOOK_SECONDS)
    assert bench.reader.read().cluster_id == "cluster-a"


def test_of_two_problems_the_missing_secret_is_reported(bench: Bench):
    bench.said, bench.taken = Unauthenticated("secret default/ca is gone"), set()
    bench.clock.advance(LOOK_SECONDS)
    with pytest.raises(Terminal, match="secret default/ca is gone"):
        bench.reader.read()
