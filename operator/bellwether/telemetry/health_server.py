"""Health server: ``/healthz`` and ``/readyz`` for the kubelet, next to ``/metrics`` on one port.

In: checks, each of which returns a problem as text, or None. Out: 200, or 503 with the reasons, one a line. A check
must not wait for anything that a stuck thread may hold: it is what finds the stuck thread. The port is open to all:
a request has a time limit, and the oldest is closed for a new one when there are too many.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

MOST_CLIENTS = 16
"""Connections at a time: the kubelet and Prometheus need two."""

REQUEST_SECONDS = 10.0
"""How long a connection may last, its answer included."""

LONGEST_AGE = 3
"""The text of a scrape is served again for so many times as long as it took: they take a quarter of a core at most."""

Check = Callable[[], Iterable[str]]
"""Problems as text for a person; empty if there are none."""


class Health:
    """What a process says of its own state. Alive and ready until a check says otherwise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alive: list[Check] = []
        self._ready: list[Check] = []

    def watch(self, check: Check) -> None:
        """Problems of this check are fixed by a restart only."""
        with self._lock:
            self._alive.append(check)

    def require(self, check: Check) -> None:
        """While this check has problems the process cannot work, and a restart would not help."""
        with self._lock:
            self._ready.append(check)

    def dead(self) -> list[str]:
        """Why the process must be restarted; empty while it is alive."""
        return self._all(self._alive)

    def unready(self) -> list[str]:
        """Why it cannot do its work now; empty while it can."""
        return self._all(self._ready)

    def _all(self, checks: list[Check]) -> list[str]:
        with self._lock:
            standing = list(checks)
        found: list[str] = []
        for check in standing:
            try:
                found += check()
            except Exception as error:
                found.append(f"a check of its own failed: {type(error).__name__}: {error}")
        return found


class _Bounded(ThreadingHTTPServer):
    """A thread for each of ``MOST_CLIENTS`` connections at most, each closed after ``REQUEST_SECONDS``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:
        self._lock = threading.RLock()
        self._open: dict[socket.socket, float] = {}  # with the time when each ends; the oldest first
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own; too many others, the oldest first, are ended before."""
        with self._lock:
            if len(self._open) >= 2 * MOST_CLIENTS:  # those that were ended have not noticed yet
                self.shutdown_request(request)
                return
            for one in list(self._open)[: max(0, len(self._open) + 1 - MOST_CLIENTS)]:
                _end(one)
            self._open[request] = time.monotonic() + REQUEST_SECONDS
        threading.Thread(
            target=self.process_request_thread, args=(request, client_address), name="health-client", daemon=True
        ).start()

    def service_actions(self) -> None:
        """End connections that have taken too long; called by the serving thread at least twice a second."""
        with self._lock:
            for one in [one for one, end in self._open.items() if end < time.monotonic()]:
                _end(one)

    def shutdown_request(self, request: Any) -> None:
        """A connection has ended."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, unless the client has disconnected."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _end(connection: socket.socket) -> None:
    """Its thread notices and closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _DualStack(_Bounded):
    """Takes IPv4 and IPv6: the kubelet asks at whatever address the pod has."""

    address_family = socket.AF_INET6

    def server_bind(self) -> None:
        """Bind without keeping IPv4 out."""
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class HealthServer:
    """Serves one port until it is closed, in threads of its own. ``registry`` is served as ``/metrics``.

    Raises OSError when the port cannot be had.
    """

    def __init__(self, health: Health, port: int, registry: CollectorRegistry | None = None) -> None:
        server = _DualStack if socket.has_dualstack_ipv6() else _Bounded
        self._server = server(("", port), _handler(health, registry))
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    @property
    def port(self) -> int:
        """The port; another than was asked for where that was 0."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


class _Scrapes:
    """The text of a registry, made by one thread at a time, for all that ask meanwhile."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._text, self._until = b"", 0.0

    def text(self) -> bytes:
        """As of now, or of at most ``LONGEST_AGE`` times the time that it took."""
        asked = time.monotonic()
        with self._lock:
            if self._until <= asked:
                began = time.monotonic()
                self._text = generate_latest(self._registry)
                ended = time.monotonic()
                self._until = ended + LONGEST_AGE * (ended - began)
            return self._text


def _handler(health: Health, registry: CollectorRegistry | None) -> type[BaseHTTPRequestHandler]:
    scrapes = None if registry is None else _Scrapes(registry)

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        timeout = 5.0
        server_version, sys_version = "bellwether", ""

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].rstrip("/")
            if path in ("/healthz", "/readyz"):
                problems = health.dead() if path == "/healthz" else [*health.dead(), *health.unready()]
                text = "".join(f"{line}\n" for line in problems) or "ok\n"
                self._answer(503 if problems else 200, "text/plain; charset=utf-8", text.encode())
            elif path == "/metrics" and scrapes is not None:
                self._answer(200, CONTENT_TYPE_LATEST, scrapes.text())
            else:
                self._answer(404, "text/plain; charset=utf-8", b"ask for /healthz or /readyz\n")

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: the kubelet asks every few seconds."""

    return Handler
