"""The webhook over real sockets on loopback: what it takes, and what it refuses."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import admission_server
from bellwether.adapters.kubernetes.admission_server import (
    BODY_LIMIT,
    HEADER_SECONDS,
    MOST_STRANGERS,
    ServerFiles,
    Webhook,
)
from bellwether.ports.errors import Terminal
from realparts.tls import Authority
from waiting import limit, until

HALF_HEADERS = b"POST /pods HTTP/1.1\r\nX: "
HALF_HELLO = b"\x16\x03\x01\x40\x00\x01"
"""A TLS record of 16 KiB begins."""


class Hook:
    """A webhook and what it took. ``trouble`` is raised instead of taking."""

    def __init__(self, *, host: str = "127.0.0.1", authority: Authority | None = None) -> None:
        self.took: list[bytes] = []
        self.trouble: Exception | None = None
        self.receive = self.take
        self.authority = authority
        files = ServerFiles(*authority.issue("webhook")) if authority else None
        self.server = Webhook(host, 0, "/pods", self.received, files, SystemClock())
        self.server.start()

    def received(self, body: bytes) -> bytes:
        self.receive(body)
        return b"{}"

    def take(self, body: bytes) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.took.append(body)

    def ask(
        self,
        method: str = "POST",
        path: str = "/pods",
        body: Any = b"{}",
        **headers: str,
    ) -> tuple[int, bytes]:
        if self.authority:
            context = ssl.create_default_context(cafile=str(self.authority.path))
            client: http.client.HTTPConnection = http.client.HTTPSConnection(
                "127.0.0.1", self.server.port, timeout=limit(20), context=context
            )
        else:
            client = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=limit(20))
        try:
            client.request(method, path, body, headers, encode_chunked=not isinstance(body, bytes))
            answer = client.getresponse()
            assert answer.getheader("Connection") == "close"
            return answer.status, answer.read()
        finally:
            client.close()

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=limit(20))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of a slow machine are no strangers."""
    for name in ("HEADER_SECONDS", "ANSWER_SECONDS", "CONNECTION_SECONDS"):
        monkeypatch.setattr(admission_server, name, limit(10))


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.server.stop()


class Strangers:
    """Clients that connect, send half of their headers and wait; each connects again as soon as it is closed."""

    def __init__(self, hook: Hook, count: int) -> None:
        self._hook = hook
        self._stop = threading.Event()
        self._open: set[socket.socket] = set()
        self._pool = ThreadPoolExecutor(count)
        self._count = count

    def __enter__(self) -> Strangers:
        for _ in range(self._count):
            self._pool.submit(self._idle)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._pool.shutdown()

    @property
    def connected(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    def wait_until_all_are_connected(self) -> None:
        """Each has connected once."""
        until(lambda: self.connected >= self._count, 20, "all strangers are connected")

    def _idle(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(OSError), self._hook.open() as one:
                one.settimeout(None)
                self._open.add(one)
                if self._stop.is_set():
                    return  # after those that ``__exit__`` shuts down: nothing else would close it
                one.sendall(HALF_HELLO if self._hook.authority else HALF_HEADERS)
                until_closed(one)
                self._open.discard(one)


def until_closed(one: socket.socket) -> None:
    """Raises TimeoutError when it stays open."""
    with contextlib.suppress(ConnectionError):
        while one.recv(4096):
            pass


def test_a_body_is_taken_and_answered(hook: Hook) -> None:
    assert hook.ask(body=b'{"kind": "AdmissionReview"}') == (200, b"{}")
    assert hook.took == [b'{"kind": "AdmissionReview"}']


@pytest.mark.parametrize(("trouble", "status"), [(ValueError("bad"), 400), (RuntimeError("bug"), 500)])
def test_what_cannot_be_taken_is_answered_without_details(hook: Hook, trouble: Exception, status: int) -> None:
    hook.trouble = trouble
    assert hook.ask() == (status, b"")
    hook.trouble = None
    assert hook.ask()[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/pods", 405), ("POST", "/", 404), ("PUT", "/x", 404), ("GET", "/healthz", 404)],
)
def test_there_is_nothing_else(hook: Hook, method: str, path: str, status: int) -> None:
    assert hook.ask(method, path) == (status, b"")


def test_body_at_limit_is_taken_and_larger_is_not(hook: Hook) -> None:
    assert hook.ask(body=b"x" * BODY_LIMIT)[0] == 200
    try:
        status = hook.ask(body=b"x" * (8 * BODY_LIMIT))[0]
    except ConnectionError:
        status = 413  # it hung up while we still sent
    assert status == 413
    assert [len(b) for b in hook.took] == [BODY_LIMIT]


def test_body_in_pieces_without_length_is_bounded_as_well(hook: Hook) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 64 * BODY_LIMIT:
            sent += 65536
            yield b"x" * 65536

    with contextlib.suppress(ConnectionError):  # it may hang up while we still send
        assert hook.ask(body=endless(), **{"Transfer-Encoding": "chunked"})[0] == 413
    assert sent < 64 * BODY_LIMIT
    assert hook.took == []


def test_a_compressed_body_is_not_blown_up(hook: Hook) -> None:
    small = gzip.compress(b"0" * 10_000_000)
    assert hook.ask(body=small, **{"Content-Encoding": "gzip"})[0] == 200
    assert hook.took == [small]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"POST /pods HTTP/1.1\r\nHost: x\r\n",
        b"POST /pods HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_a_connection_that_dawdles_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    for name in ("CONNECTION_SECONDS", "HEADER_SECONDS"):
        monkeypatch.setattr(admission_server, name, 0.5)
    hook = Hook()
    with hook.open() as slow:
        slow.sendall(said)
        until_closed(slow)
    for name in ("CONNECTION_SECONDS", "HEADER_SECONDS"):
        monkeypatch.setattr(admission_server, name, 60)
    assert hook.ask()[0] == 200
    hook.server.stop()


def test_headers_are_complete_within_a_second_of_the_connection() -> None:
    assert HEADER_SECONDS == 1.0


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_connection_that_drips_its_headers_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setattr(admission_server, "HEADER_SECONDS", 0.5)
    hook = Hook(authority=Authority(tmp_path / "tls") if tls else None)
    with hook.open() as slow, contextlib.suppress(ConnectionError):
        slow.sendall(HALF_HELLO if tls else HALF_HEADERS)
        while True:
            slow.sendall(b"x")
            if select.select([slow], [], [], 0.05)[0] and not slow.recv(4096):
                break
    monkeypatch.setattr(admission_server, "HEADER_SECONDS", 60)
    assert hook.ask()[0] == 200
    hook.server.stop()


def test_a_process_without_cpu_cuts_off_no_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patience, stopped, goes_on = limit(0.5), threading.Event(), threading.Event()
    monkeypatch.setattr(admission_server, "HEADER_SECONDS", patience)
    hook = Hook()

    def without_cpu(_body: bytes) -> None:
        stopped.set()
        goes_on.wait(limit(20))

    with ThreadPoolExecutor(1) as another, hook.open() as sender:
        sender.sendall(b"POST /pods HTTP/1.1\r\nHost: x\r\n")
        hook.receive = without_cpu
        first = another.submit(hook.ask)
        assert stopped.wait(limit(20))
        hook.receive = hook.take
        sender.sendall(b"Content-Length: 2\r\n\r\n{}")
        time.sleep(2 * patience)  # the sender's time is over before its headers are read
        goes_on.set()
        assert b" 200 " in sender.recv(4096)
        assert first.result()[0] == 200
    hook.server.stop()


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_a_request_is_answered_while_strangers_hold_their_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setattr(admission_server, "HEADER_SECONDS", 600)
    hook = Hook(authority=Authority(tmp_path / "tls") if tls else None)
    with Strangers(hook, 3 * MOST_STRANGERS) as strangers:
        strangers.wait_until_all_are_connected()
        assert hook.ask(body=b"{}")[0] == 200
        assert strangers.connected >= 64
    assert hook.took == [b"{}"]
    hook.server.stop()


def test_a_sender_is_not_sent_away_while_strangers_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_server, "CONNECTION_SECONDS", 600)
    monkeypatch.setattr(admission_server, "PATIENCE_SECONDS", 0.0)
    hook = Hook()
    with hook.open() as slow:
        head = b"POST /pods HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
        slow.sendall(head + b"Expect: 100-continue\r\n\r\n")
        assert b"100 Continue" in slow.recv(4096)
        idle = [hook.open() for _ in range(3 * MOST_STRANGERS)]
        for one in idle[: 2 * MOST_STRANGERS]:
            until_closed(one)
        slow.sendall(b"{}")
        assert b" 200 " in slow.recv(4096)
    for one in idle:
        one.close()
    hook.server.stop()


def test_senders_without_place_are_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_server, "MOST_SENDERS", 0)
    hook = Hook()
    assert hook.ask()[0] == 503
    hook.server.stop()


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00",
        b"\x00" * 5000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /pods HTTP/1.1\r\n" + b"A: b\r\n" * 500,
        b"POST /pods HTTP/1.1\r\nX: " + b"y" * 200_000,
        b"POST /pods HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=["tls", "zeros", "version", "headers", "header", "length"],
)
def test_noise_is_no_trouble_and_fills_no_log(hook: Hook, noise: bytes, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        with hook.open() as one:
            try:
                one.sendall(noise)
                one.shutdown(socket.SHUT_WR)
            except OSError:  # closed already: a reset, or no connection any more
                continue
            until_closed(one)
    assert hook.ask()[0] == 200
    assert len(caplog.records) <= 1
    assert hook.took == [b"{}"]


def test_flood_is_answered_by_one_thread_to_last_sender(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_server, "PATIENCE_SECONDS", limit(10))
    monkeypatch.setattr(admission_server, "MOST_SENDERS", 100)
    with ThreadPoolExecutor(100) as senders:
        statuses = list(senders.map(lambda n: hook.ask(body=b"x" * n)[0], range(500)))
    assert statuses == [200] * 500
    assert sorted(map(len, hook.took)) == list(range(500))
    assert sum(t.name == "webhook" for t in threading.enumerate()) == 1


def test_over_tls_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    hook = Hook(authority=authority)

    def shown() -> int:
        context = ssl.create_default_context(cafile=str(authority.path))
        with hook.open() as plain, context.wrap_socket(plain, server_hostname="localhost") as encrypted:
            certificate = encrypted.getpeercert()
            assert certificate
            return int(str(certificate["serialNumber"]), 16)

    first = shown()
    assert hook.ask()[0] == 200
    authority.issue("webhook")
    assert shown() != first
    (tmp_path / "tls" / "webhook.pem").write_text("half a certificate")
    assert hook.ask()[0] == 200  # an exchange that is under way changes nothing
    with hook.open() as plain:
        plain.sendall(b"POST /pods HTTP/1.1\r\n\r\n")
        until_closed(plain)
    assert hook.ask()[0] == 200
    hook.server.stop()


def test_it_listens_on_every_address_when_no_host_is_given(tmp_path: Path) -> None:
    hook = Hook(host="")
    assert hook.ask()[0] == 200
    hook.server.stop()


def test_an_address_that_is_taken_is_named(hook: Hook) -> None:
    second = Webhook("127.0.0.1", hook.server.port, "/pods", hook.received, None, SystemClock())
    with pytest.raises(Terminal, match=r"--listen 127.0.0.1:\d+: .*choose a free address"):
        second.start()


def test_when_stopped_it_neither_serves_nor_listens(hook: Hook) -> None:
    port = hook.server.port
    assert hook.server.alive()
    with hook.open() as idle:
        hook.server.stop()
        until_closed(idle)
    assert not hook.server.alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=2)


def test_files_that_hold_no_certificate_are_named(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("server")
    key.write_text("no key")
    with pytest.raises(Terminal, match=r"--tls-cert .*server\.pem, --tls-key .*server-key\.pem"):
        ServerFiles(certificate, key).context()
    with pytest.raises(Terminal, match="No such file"):
        ServerFiles(tmp_path / "absent", key).context()
