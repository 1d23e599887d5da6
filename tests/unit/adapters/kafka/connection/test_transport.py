"""No peer holds the caller past its deadline: each blocking call is given what is left of it, by a logical clock."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from bellwether.adapters.kafka.connection import transport
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError, Stage
from bellwether.adapters.kafka.connection.transport import Deadline, HiddenBytes, Transport
from bellwether.kafka_connection import Security
from bellwether.testing.memory_world import ManualClock
from waiting import limit, until


class Peer:
    """A socket on a logical clock: each call takes ``seconds`` and passes one byte, or times out."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self.given: list[float] = []

    def settimeout(self, seconds: float) -> None:
        self.given.append(seconds)

    def send(self, _frame: Any) -> int:
        self._take()
        return 1

    def recv(self, _most: int) -> bytes:
        self._take()
        return b"\0"

    def _take(self) -> None:
        self._clock.advance(min(self._seconds, self.given[-1]))
        if self._seconds > self.given[-1]:
            raise TimeoutError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    clock = ManualClock()
    monkeypatch.setattr(transport, "time", clock)
    return clock


def wired(peer: Peer) -> Transport:
    sock: Any = peer
    return Transport(sock, "broker:9092", Security())


def test_a_silent_peer_costs_one_deadline(clock: ManualClock) -> None:
    with pytest.raises(BrokerConnectionError, match="no answer in time"):
        wired(Peer(clock, 3600)).receive(Deadline(5), Stage.REQUEST, 100)
    assert clock.monotonic() == 5


def test_a_dripping_peer_costs_one_deadline(clock: ManualClock) -> None:
    peer = Peer(clock, 1)
    with pytest.raises(BrokerConnectionError, match="no answer in time"):
        wired(peer)._exactly(1000, Deadline(5), Stage.REQUEST)
    assert (peer.given, clock.monotonic()) == ([5, 4, 3, 2, 1], 5)


def test_a_peer_that_takes_in_slowly_costs_one_deadline(clock: ManualClock) -> None:
    peer = Peer(clock, 2)
    with pytest.raises(BrokerConnectionError, match="no answer in time"):
        wired(peer).send(HiddenBytes(bytes(1000)), Deadline(5), Stage.REQUEST)
    assert (peer.given, clock.monotonic()) == ([5, 3, 1], 5)


def test_a_deadline_within_another_ends_with_the_earlier_one(clock: ManualClock) -> None:
    whole = Deadline(5)
    assert whole.within(2).left == 2
    clock.advance(4)
    assert whole.within(2).left == 1


def test_a_pause_puts_the_deadline_off(clock: ManualClock) -> None:
    deadline = Deadline(5)
    with deadline.paused():
        clock.advance(3600)
    assert deadline.left == 5


def test_names_that_were_looked_up_in_vain_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(transport.socket, "getaddrinfo", lambda *_, **__: over.wait() and [])
    for number in range(100):
        with pytest.raises(BrokerConnectionError, match="was not resolved in time"):
            transport._resolve("a", f"broker-{number}.tenant-a.example", 9092, Deadline(0.0))
    over.set()
    until(lambda: not any(thread.name.startswith("resolve broker-") for thread in threading.enumerate()))
    transport._resolve("a", "another.example", 9092, Deadline(limit(20)))
    assert transport._lookups == {}
