"""Server of an admission webhook: a small HTTP server for requests from one sender, bounded in cost.

In: where to listen, and a function that takes a body. Out: bodies, one at a time, each bounded; answers without
details of an error. Called by ``bellwether sidecar-webhook``. The server runs on its own thread. A connection serves
one request and lives for a few seconds at most. One whose headers are not complete after a second is closed, or after
half a second if others wait for its place: idle clients cannot keep a sender out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web

from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal

BODY_LIMIT = 1024 * 1024
CONNECTION_SECONDS = 10.0
HEADER_SECONDS = 1.0
"""How long a connection may take from its acceptance to complete headers, TLS handshake included. Time in which this
process had no CPU does not count: what a sender has sent is not read then."""

ANSWER_SECONDS = 5.0
"""How long a connection with complete headers and a wrong path may take to read its answer."""

PATIENCE_SECONDS = 0.5
"""How long a connection without complete headers keeps its place while others wait for one."""

MOST_STRANGERS = 32
MOST_SENDERS = 32
"""Connections whose request is read; further ones are to come again."""

_LATE_SECONDS = 0.1
"""A timer that fires so much too late shows that this process had no CPU."""

_BACKLOG = 128
_ALIVE_SECONDS = 5.0

# Each malformed request would be a traceback: the metrics count them.
_SILENT = logging.getLogger("bellwether.webhook")
_SILENT.disabled = True

Stamp = tuple[int, int, int]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServerFiles:
    """A server's certificate and key, PEM, read again when they change."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._stamp: tuple[Stamp, Stamp] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The TLS context of the files as they are now. Terminal at first when they cannot be used.

        Files that cannot be used later, as while they are being exchanged, change nothing.
        """
        try:
            stamp = (_stamp(self._certificate), _stamp(self._key))
            if self._context is None or stamp != self._stamp:
                made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                made.load_cert_chain(self._certificate, self._key)
                self._context, self._stamp = made, stamp
        except (OSError, ssl.SSLError) as error:
            if self._context is None:
                why = error.strerror or type(error).__name__
                raise Terminal(
                    f"--tls-cert {self._certificate}, --tls-key {self._key}: {why}: name a PEM certificate and its key"
                ) from None
        return self._context


class Webhook:
    """The server. ``receive`` gets a body that was posted to ``path`` and returns the JSON to answer with. It raises
    ValueError for a body that is not understood. Port 0 takes a free one.
    """

    def __init__(
        self,
        host: str,
        port: int,
        path: str,
        receive: Callable[[bytes], bytes],
        files: ServerFiles | None,
        clock: Clock,
    ) -> None:
        self._address = (host, port)
        self._receive = receive
        self._files = files
        self._clock = clock
        self._path = path
        self._log = structlog.get_logger(__name__)
        self._said: set[str] = set()
        self._sockets: list[socket.socket] = []
        self._beat = clock.monotonic()
        self._places = _Places()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._serving = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="webhook", daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._sockets[0].getsockname()[1])

    def start(self) -> None:
        """Listen, and begin to serve. Terminal when that address cannot be listened at."""
        host, port = self._address
        try:
            if host:
                family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
                listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
            else:
                both = socket.has_dualstack_ipv6()
                family = socket.AF_INET6 if both else socket.AF_INET
                listening = socket.create_server(("", port), family=family, dualstack_ipv6=both, backlog=_BACKLOG)
        except OSError as error:
            raise Terminal(f"--listen {host}:{port}: {error.strerror or error}: choose a free address") from error
        listening.setblocking(False)
        self._sockets = [listening]
        self._thread.start()
        self._serving.wait(_ALIVE_SECONDS)

    def alive(self) -> bool:
        """Whether it is serving."""
        return self._thread.is_alive() and self._clock.monotonic() - self._beat < _ALIVE_SECONDS

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """End; what is under way is cut off."""
        loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(stopping.set)
            self._thread.join(timeout_seconds)
        for listening in self._sockets:
            listening.close()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda _loop, facts: self._warn("connection_failed", facts.get("exception")))
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[self._guarded])
        app.router.add_post(self._path, self._take)
        runner = web.AppRunner(
            app, access_log=None, logger=_SILENT, auto_decompress=False, lingering_time=0, shutdown_timeout=0.5
        )
        await runner.setup()
        accepting = asyncio.create_task(self._accept(runner))
        self._serving.set()
        pulse = asyncio.create_task(self._pulse())
        await asyncio.wait(
            [accepting, pulse, asyncio.create_task(self._stopping.wait())], return_when=asyncio.FIRST_COMPLETED
        )
        for task in (accepting, pulse):
            task.cancel()
            if task.done() and not task.cancelled() and task.exception() is not None:
                self._log.error("webhook_stopped", error=str(task.exception()))
        await runner.cleanup()

    async def _pulse(self) -> None:
        while True:
            self._beat = self._clock.monotonic()
            await asyncio.sleep(0.5)

    async def _accept(self, runner: web.AppRunner) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._places.free()
            try:
                accepted, _ = await loop.sock_accept(self._sockets[0])
            except OSError as error:
                self._warn("connection_not_accepted", error)
                await asyncio.sleep(0.5)
                continue
            server = runner.server
            assert server is not None  # noqa: S101 - the runner was set up
            connection = _Connection(server(), self._places, loop)
            connection.opening = asyncio.create_task(self._open(connection, accepted))

    async def _open(self, connection: _Connection, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        encryption: dict[str, Any] = {}
        try:
            if self._files is not None:
                encryption = {"ssl": self._files.context()}
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted, **encryption)
        except (OSError, asyncio.CancelledError, Terminal) as error:  # a handshake that failed is an OSError
            accepted.close()
            connection.ended()
            if isinstance(error, Terminal):
                self._warn("server_certificate_unusable", error)

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Convert every outcome to an answer without details. Called once the headers are complete."""
        self._places.heard(request.protocol)
        try:
            answer = await handler(request)
        except web.HTTPException as refusal:
            answer = web.Response(status=refusal.status)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._log.exception("webhook_request_failed_unexpectedly", error=str(error)[:200])
            answer = web.Response(status=500)
        answer.force_close()
        return answer

    async def _take(self, request: web.Request) -> web.StreamResponse:
        if not self._places.admit(request.protocol):
            return web.Response(status=503, headers={"Retry-After": "5"})
        body = await request.read()
        try:
            content = self._receive(body)
        except ValueError as error:
            self._warn("request_invalid", error)
            return web.Response(status=400)
        return web.Response(body=content, content_type="application/json")

    def _warn(self, event: str, error: object) -> None:
        """Log it once."""
        if event not in self._said:
            self._said.add(event)
            self._log.warning(event, error=None if error is None else str(error))


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


class _Places:
    """The connections that are open, by whether their request is read. Used by the server's thread only."""

    def __init__(self) -> None:
        self._strangers: dict[_Connection, float] = {}  # the oldest first
        self._senders: set[_Connection] = set()
        self._left = asyncio.Event()

    async def free(self) -> None:
        """Wait for a place; the oldest connection without a request is closed after ``PATIENCE_SECONDS``."""
        while len(self._strangers) >= MOST_STRANGERS:
            oldest, since = next(iter(self._strangers.items()))
            self._left.clear()
            with contextlib.suppress(TimeoutError):
                left = since + PATIENCE_SECONDS - asyncio.get_running_loop().time()
                await asyncio.wait_for(self._left.wait(), max(0.0, left))
                continue
            self.leave(oldest)
            oldest.abort()

    def enter(self, connection: _Connection) -> None:
        """A connection was accepted."""
        self._strangers[connection] = asyncio.get_running_loop().time()

    def heard(self, protocol: object) -> None:
        """The connection of this protocol has sent its headers."""
        connection = self._stranger(protocol)
        if connection is not None:
            connection.extend(ANSWER_SECONDS)

    def admit(self, protocol: object) -> bool:
        """Read the request of the connection of this protocol; False if those of too many others are read."""
        connection = self._stranger(protocol)
        if connection is None or len(self._senders) >= MOST_SENDERS:
            return False
        self.leave(connection)
        self._senders.add(connection)
        connection.extend(CONNECTION_SECONDS)
        return True

    def _stranger(self, protocol: object) -> _Connection | None:
        return next((one for one in self._strangers if one.inner is protocol), None)

    def leave(self, connection: _Connection) -> None:
        """Its place is free again."""
        self._strangers.pop(connection, None)
        self._senders.discard(connection)
        self._left.set()


class _Connection(asyncio.Protocol):
    """Passes everything on to the server's own protocol, and ends the connection when its time is over."""

    def __init__(self, inner: Any, places: _Places, loop: asyncio.AbstractEventLoop) -> None:
        self.inner = inner
        self.opening: asyncio.Task[None] | None = None
        self._places = places
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        places.enter(self)
        self.extend(HEADER_SECONDS)

    def abort(self) -> None:
        """End it now, also during its TLS handshake."""
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def extend(self, seconds: float) -> None:
        """It may live so long from now."""
        if self._timer is not None:
            self._timer.cancel()
        self._due = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._due, self._expire)

    def ended(self) -> None:
        """It is closed: its place is free."""
        if self._timer is not None:
            self._timer.cancel()
        self._places.leave(self)

    def _expire(self) -> None:
        if self._loop.time() - self._due > _LATE_SECONDS:
            self.extend(HEADER_SECONDS)
        else:
            self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream socket's
        self._transport = transport
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended()
        self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        said: bool | None = self.inner.eof_received()
        return said

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()
