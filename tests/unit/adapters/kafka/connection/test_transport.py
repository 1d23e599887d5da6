"""No peer holds the caller past its deadline: each blocking call is given what is left of it, by a logical clock."""

from __future__ import annotations

import errno
import os
import socket
import threading
from typing import Any

import pytest

from bellwether.adapters.kafka.connection import transport
from bellwether.adapters.kafka.connection.connection_errors import BrokerConnectionError, Stage
from bellwether.adapters.kafka.connection.transport import READ_RATE, Deadline, HiddenBytes, Transport
from bellwether.core.signals import UnreachableCause
from bellwether.ports.errors import Transient
from bellwether.simulation.memory_world import ManualClock
from testkit.values.security_settings import PLAINTEXT
from waiting import limit, until


class Peer:
    """A socket on a logical clock: each call takes ``seconds`` and passes ``size`` bytes, or times out."""

    def __init__(self, clock: ManualClock, seconds: float, size: int = 1) -> None:
        self._clock, self._seconds, self._size, self._left = clock, seconds, size, 0
        self.given: list[float] = []

    def settimeout(self, seconds: float) -> None:
        self.given.append(seconds)

    def send(self, _frame: Any) -> int:
        self._take()
        return 1

    def recv(self, most: int) -> bytes:
        if not self._left:
            self._take()
            self._left = self._size
        passed = min(most, self._left)
        self._left -= passed
        return bytes(passed)

    def _take(self) -> None:
        self._clock.advance(min(self._seconds, self.given[-1]))
        if self._seconds > self.given[-1]:
            raise TimeoutError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    clock = ManualClock()
    monkeypatch.setattr(transport, "_monotonic", clock.monotonic)
    return clock


def wired(peer: Peer) -> Transport:
    sock: Any = peer
    return Transport(sock, "broker:9092", PLAINTEXT)


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


def growing(seconds: float) -> Deadline:
    return Deadline(seconds, grows=True)


def test_deadline_of_read_grows_with_bytes_that_arrive(clock: ManualClock) -> None:
    read, change = growing(2).within(2), Deadline(2).within(2)
    for deadline in (read, change):
        deadline.arrived(4 * READ_RATE)
        deadline.expect(4 * READ_RATE)
    assert (read.left, change.left) == (10, 2)


def test_bytes_that_were_expected_do_not_count_twice(clock: ManualClock) -> None:
    deadline = growing(2)
    deadline.expect(3 * READ_RATE)
    assert deadline.left == 5
    for _ in range(4):
        deadline.arrived(READ_RATE)
    assert deadline.left == 6


def test_a_large_answer_has_the_time_that_it_takes(clock: ManualClock) -> None:
    steps = 20
    with pytest.raises(BrokerConnectionError, match="no answer in time"):
        wired(Peer(clock, 1, READ_RATE))._exactly(steps * READ_RATE, Deadline(2), Stage.REQUEST)
    began = clock.monotonic()
    whole = wired(Peer(clock, 1, READ_RATE))._exactly(steps * READ_RATE, growing(2), Stage.REQUEST)
    assert (len(whole), clock.monotonic() - began) == (steps * READ_RATE, steps)


def test_a_dripping_peer_is_given_up_however_long_it_drips(clock: ManualClock) -> None:
    with pytest.raises(BrokerConnectionError, match="no answer in time"):
        wired(Peer(clock, 1))._exactly(1 << 20, growing(5), Stage.REQUEST)
    assert clock.monotonic() < 5.01


V4, V6 = socket.AF_INET, socket.AF_INET6
REFUSED = (V4, errno.ECONNREFUSED)


def connects(monkeypatch: pytest.MonkeyPatch, *failures: tuple[int, int]) -> None:
    """Connect to a host with an address for each of these families and errors."""

    class Refusing(Peer):
        def __init__(self, family: int, _kind: int) -> None:
            super().__init__(ManualClock(), 0)
            self._error = dict(failures)[family]

        def connect(self, _target: object) -> None:
            raise OSError(self._error, os.strerror(self._error))

        def close(self) -> None: ...

    monkeypatch.setattr(transport, "_resolve", lambda *_: [(family, ("host", 9092)) for family, _ in failures])
    monkeypatch.setattr(transport.socket, "socket", Refusing)
    Transport.open("host:9092", PLAINTEXT, Deadline(2))


@pytest.mark.parametrize("nowhere", [errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
@pytest.mark.parametrize("first", [True, False])
def test_address_family_without_path_from_here_hides_no_refusal(
    monkeypatch: pytest.MonkeyPatch, nowhere: int, first: bool
) -> None:
    with pytest.raises(BrokerConnectionError) as found:
        connects(monkeypatch, *([(V6, nowhere), REFUSED] if first else [REFUSED, (V6, nowhere)]))
    assert found.value.cause is UnreachableCause.REFUSED


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param([(V4, errno.EMFILE), (V6, errno.ENETUNREACH)], id="no descriptor"),
        pytest.param([(V4, errno.EADDRNOTAVAIL), (V6, errno.ECONNREFUSED)], id="no port"),
        pytest.param([(V6, errno.EADDRNOTAVAIL)], id="no address of the only family"),
    ],
)
def test_what_this_process_lacks_is_never_evidence(
    monkeypatch: pytest.MonkeyPatch, failures: list[tuple[int, int]]
) -> None:
    with pytest.raises(Transient, match="this process cannot open a connection"):
        connects(monkeypatch, *failures)


def test_names_whose_lookup_timed_out_leave_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(transport.socket, "getaddrinfo", lambda *_, **__: over.wait() and [])
    for number in range(100):
        with pytest.raises(BrokerConnectionError, match="was not resolved in time"):
            transport._resolve("a", f"broker-{number}.tenant-a.example", 9092, Deadline(0.0))
    over.set()
    until(lambda: not any(thread.name.startswith("resolve broker-") for thread in threading.enumerate()))
    transport._resolve("a", "another.example", 9092, Deadline(limit(20)))
    assert transport._lookups == {}
