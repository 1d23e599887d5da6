"""An HTTP server that answers as it is asked to, byte for byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class ReplyServer:
    """Reads each request up to the end of its body and sends ``reply(request)`` back, then closes."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.reply: Callable[[bytes, socket.socket], None] = lambda _request, _socket: None
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def says(self, status: str, body: bytes, headers: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
        self.reply = lambda _request, client: client.sendall(head + body)

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            got = b""
            while b"\r\n\r\n" not in got:
                got += client.recv(65536)
            head, body = got.split(b"\r\n\r\n", 1)
            lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line]
            while len(body) < sum(lengths):
                body += client.recv(65536)
            self.requests.append(head + b"\r\n\r\n" + body)
            self.reply(self.requests[-1], client)
