"""Both tables against the kernel itself: a listener and clients of our own on loopback."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bellwether.probes.connections import socket_table
from bellwether.probes.connections.connection_activity import ConnectionSample
from bellwether.probes.connections.sock_diag import Ignored
from bellwether.probes.connections.socket_table import NetlinkTable, ProcTable, SocketTable, open_table
from realparts.ports import HeldPorts
from testkit.messages import assert_wording
from waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tables are the Linux kernel's")

WAYS = {
    "ipv4": (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
    "ipv6": (socket.AF_INET6, "::1", "::1"),
    "ipv4 at a dual-stack listener": (socket.AF_INET6, "::", "127.0.0.1"),
}


class Listener:
    """A server on loopback and the clients that talk to it."""

    def __init__(self, family: int, bind: str, at: str) -> None:
        # The kernel may give a port that only IPv6 holds to another IPv4 connection, which the table then counts.
        self._ports = HeldPorts()
        self.port = self._ports.take()
        self.server = socket.create_server((bind, self.port), family=family, dualstack_ipv6=bind == "::")
        self._at = at
        self._open = contextlib.ExitStack()

    def client(self, says: bytes = b"") -> socket.socket:
        """A client that stays; what it says has arrived."""
        client = self._open.enter_context(socket.create_connection((self._at, self.port)))
        accepted = self._open.enter_context(self.server.accept()[0])
        if says:
            client.sendall(says)
            assert accepted.recv(len(says)) == says
        return client

    def visit(self, says: bytes = b"") -> None:
        """A client that comes, says that much, and is gone on both sides."""
        with socket.create_connection((self._at, self.port)) as client:
            accepted = self.server.accept()[0]
            if says:
                client.sendall(says)
                assert accepted.recv(len(says)) == says
        assert accepted.recv(1) == b""
        accepted.close()

    def close(self) -> None:
        self._open.close()
        self.server.close()
        self._ports.release()


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def listener(request: pytest.FixtureRequest) -> Iterator[Listener]:
    one = Listener(*request.param)
    yield one
    one.close()


@contextlib.contextmanager
def netlink(port: int, *ignored: str, buffer_bytes: int = 1 << 20) -> Iterator[SocketTable]:
    table = NetlinkTable(port, Ignored(ignored), buffer_bytes=buffer_bytes)
    try:
        yield table
    finally:
        table.close()


def test_a_connected_client_is_seen_whenever_it_sends(listener: Listener) -> None:
    with netlink(listener.port) as table:
        client = listener.client(b"hello")
        table.listen(0.3)
        first = table.sample()
        assert (first.listening, first.connections, first.blind, first.problem) == (True, 1, "", "")
        assert first.last_received_seconds is not None
        assert first.last_received_seconds >= 0.29

        def heard_again(sample: ConnectionSample) -> bool:
            client.sendall(b"still here")  # for the next look, should this one come too late
            return (sample.last_received_seconds or 0.0) < (first.last_received_seconds or 0.0)

        client.sendall(b"still here")
        time.sleep(0.02)
        assert awaited(table, heard_again).last_received_seconds is not None


def awaited(table: SocketTable, wanted: Callable[[ConnectionSample], bool]) -> ConnectionSample:
    """The first look that is as wanted, of as many as a few seconds hold."""
    return until(table.sample, so=wanted)


def test_a_connected_silent_client_has_sent_nothing(listener: Listener) -> None:
    with netlink(listener.port) as table:
        listener.client()
        sample = table.sample()
    assert (sample.connections, sample.last_received_seconds) == (1, None)


def test_short_visit_with_data_is_seen_and_silent_is_not(listener: Listener) -> None:
    with netlink(listener.port) as table:
        listener.visit()
        table.listen(0.05)
        assert table.sample().last_received_seconds is None
        listener.visit(b"hello")
        table.listen(1.0)
        # Its last packets may still be under way, and the kernel tells of its end a little later.
        sample = awaited(table, lambda sample: sample.connections == 0 and sample.last_received_seconds is not None)
        assert (sample.last_received_seconds or 0.0) >= 0.5


def test_a_visit_to_another_port_does_not_count(listener: Listener) -> None:
    other = Listener(*WAYS["ipv4"])
    try:
        with netlink(listener.port) as table:
            other.client(b"hello")
            other.visit(b"hello")
            table.listen(0.05)
            sample = table.sample()
        assert (sample.connections, sample.last_received_seconds) == (0, None)
    finally:
        other.close()


def test_who_comes_from_an_ignored_network_does_not_count(listener: Listener) -> None:
    with netlink(listener.port, "127.0.0.0/8", "::1") as table:
        listener.client(b"hello")
        listener.visit(b"hello")
        table.listen(0.05)
        sample = table.sample()
    assert (sample.listening, sample.connections, sample.last_received_seconds) == (True, 0, None)


def test_a_port_without_listener_is_not_listening(listener: Listener) -> None:
    listener.close()
    with netlink(listener.port) as table:
        assert not table.sample().listening
    assert not ProcTable(listener.port, Ignored()).sample().listening


def test_news_faster_than_reading_blinds_table_for_one_look() -> None:
    listener = Listener(*WAYS["ipv4"])
    with netlink(listener.port, buffer_bytes=1) as table:
        for _ in range(100):
            listener.visit(b"hello")
        awaited(table, lambda sample: bool(sample.blind))  # the kernel tells of them a little later
        awaited(table, lambda sample: not sample.blind)
    listener.close()


UNPRIVILEGED = """
import os, sys
from bellwether.probes.connections.sock_diag import Ignored
from bellwether.probes.connections.socket_table import NetlinkTable
os.setgroups([]), os.setgid(65534), os.setuid(65534)
table = NetlinkTable(int(sys.argv[1]), Ignored())
print("open", flush=True)
for _ in sys.stdin:
    sample = table.sample()
    print("heard" if sample.listening and sample.last_received_seconds is not None else "not yet", flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="runs without privileges anyway")
def test_no_privilege_is_needed() -> None:
    """In a process of its own, which gives root away before it opens the table."""
    listener = Listener(*WAYS["ipv4 at a dual-stack listener"])
    command = [sys.executable, "-c", UNPRIVILEGED, str(listener.port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stdin and child.stdout  # noqa: PT018 - for the type checker
        assert child.stdout.readline() == "open\n"
        listener.visit(b"hello")

        def looked() -> str:
            child.stdin.write("look\n")
            return child.stdout.readline()

        until(looked, so=lambda answer: answer == "heard\n")
        child.stdin.close()
    assert child.returncode == 0
    listener.close()


def test_without_netlink_new_connections_show_and_silence_does_not(listener: Listener) -> None:
    table = ProcTable(listener.port, Ignored())
    listener.client(b"before the first look")
    first = table.sample()
    assert (first.listening, first.connections, first.last_received_seconds) == (True, 1, None)
    listener.client()
    assert table.sample().last_received_seconds == 0.0
    again = table.sample()
    assert (again.connections, again.last_received_seconds) == (2, None)
    assert_wording(again.blind)


def test_a_socket_that_the_kernel_lists_twice_is_one(tmp_path: Path) -> None:
    line = "   0: 0100007F:2386 0200007F:D431 01 0\n"
    (tmp_path / "tcp").write_text(line * 2)
    assert ProcTable(9094, Ignored(), tmp_path).sample().connections == 1


def test_kernel_refusing_netlink_is_read_through_proc_with_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> socket.socket:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(socket_table.socket, "socket", refuse)
    table, refusal = open_table(9094, Ignored())
    assert (table.kind, refusal) == ("/proc/net/tcp", "Operation not permitted")


def test_machine_without_ipv6_has_one_table_file(tmp_path: Path) -> None:
    table = ProcTable(9094, Ignored(), tmp_path)
    assert "cannot be read" in table.sample().problem
    (tmp_path / "tcp").write_text("   0: 0100007F:2386 00000000:0000 0A 0\n")
    assert table.sample().listening
