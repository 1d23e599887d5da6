"""A way to a server under another address: bytes in, bytes out. For certificates that carry the one and not the other.

In: where to listen and where it leads. Out: a running forwarder, ended by ``close``.
"""

from __future__ import annotations

import contextlib
import socket
import threading


class Forwarder:
    """Listens on one address and passes everything on to another; a context manager."""

    def __init__(self, host: str, target: str) -> None:
        """``target`` is host:port."""
        name, _, port = target.rpartition(":")
        self._target = (name, int(port))
        self._listening = socket.create_server((host, 0))
        self.address = f"{host}:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse new connections; open ones go on."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # or the waiting thread takes one more
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._listening.accept()
            except OSError:
                return
            try:
                outer = socket.create_connection(self._target)
            except OSError:
                inner.close()
                continue
            for source, sink in ((inner, outer), (outer, inner)):
                threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
