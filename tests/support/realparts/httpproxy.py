"""An HTTP proxy on 127.0.0.1: CONNECT, and plain requests (RFC 9110, 9.3.6 and 3.7), with or without a user.

In: a user and a password. Out: its URL, what it was asked for, and a status to refuse everything with. Tests of
proxies that people choose start it.
"""

from __future__ import annotations

import base64
import http.client
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from realparts.ports import HeldPorts
from realparts.started import Started

_SECONDS = 30


class HttpProxy(Started):
    """A context manager. ``refuse`` is a status that answers everything while it is not 0."""

    def __init__(self, username: str = "", password: str = "") -> None:
        self.asked: list[str] = []
        self.refuse = 0
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        self._wanted = f"Basic {pair}" if username else None
        self._ports = HeldPorts()
        self._port = self._ports.take()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Serve."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_CONNECT(self) -> None:
                if not self._let_in():
                    return
                host, _, port = self.path.rpartition(":")
                try:
                    with socket.create_connection((host, int(port)), _SECONDS) as target:
                        self.send_response(200)
                        self.end_headers()
                        there = threading.Thread(target=_pump, args=(self.connection, target), daemon=True)
                        there.start()
                        _pump(target, self.connection)
                        there.join(_SECONDS)
                except OSError:
                    self.send_error(502)
                self.close_connection = True

            def do_POST(self) -> None:
                self._forward()

            def do_GET(self) -> None:
                self._forward()

            def _forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if not self._let_in():
                    return
                url = urlsplit(self.path)
                onward = http.client.HTTPConnection(url.hostname or "", url.port or 80, timeout=_SECONDS)
                headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
                onward.request(self.command, f"{url.path}?{url.query}".rstrip("?"), body, headers)
                answer = onward.getresponse()
                said = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def _let_in(self) -> bool:
                proxy.asked.append(f"{self.command} {self.path}")
                known = proxy._wanted in (None, self.headers.get("Proxy-Authorization"))
                status = proxy.refuse or (0 if known else 407)
                if status:
                    self.send_error(status)
                return not status

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="proxy", daemon=True).start()

    def stop(self) -> None:
        """Refuse connections."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
