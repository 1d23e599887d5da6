"""A port that swallows: packets to it are dropped without an answer, as a firewall's rule does, and no sender knows.

In: a port of 127.0.0.1 that nothing listens on. Out: connecting there takes for ever, neither refused nor reset. The
kernel drops the first packet of a connection for which the listener's queue has no room; this one has none. That needs
no privilege and no firewall.
"""

from __future__ import annotations

import socket
from types import TracebackType


class Blackhole:
    """Swallows what is sent to one port, from ``open`` to ``close``; a context manager."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets: list[socket.socket] = []

    def open(self) -> None:
        """Begin to swallow. OSError when a server listens there."""
        listener = self._made()
        listener.bind(("127.0.0.1", self._port))
        listener.listen(0)
        plug = self._made()  # the one connection that a queue of length 0 has room for
        plug.settimeout(1)
        plug.connect(("127.0.0.1", self._port))

    def close(self) -> None:
        """Free the port; what was being connected is refused from now on."""
        while self._sockets:
            self._sockets.pop().close()

    def _made(self) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sockets.append(made)
        return made

    def __enter__(self) -> Blackhole:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
