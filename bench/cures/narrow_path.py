"""A network path of little bandwidth, which all connections through it share, in both directions: a TCP relay."""

from __future__ import annotations

import socket
import threading
import time

from faults.lossy_path import LossyPath

CHUNK = 1024
"""Bytes that a connection sends before the next one has its turn."""


class NarrowPath(LossyPath):
    """Relays to a port of 127.0.0.1, so many bytes a second in all."""

    def __init__(self, target: int, bytes_per_second: float) -> None:
        super().__init__(target, 0.0)
        self._rate = bytes_per_second
        self._turn = threading.Lock()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                with self._turn:
                    time.sleep(len(data) / self._rate)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return
