"""Ports of 127.0.0.1 that stay ours, also while the server behind them is down.

In: nothing. Out: held ports. The kernel picks each (port 0), and the socket that asked stays bound without listening: a
server that sets SO_REUSEADDR (the JVM, Go and Python do) can listen on it, while the kernel gives it to no one else.
Without that, an outgoing connection may take a broker's port while the broker restarts.
"""

from __future__ import annotations

import socket
from types import TracebackType

LOOPBACK = {"BELLWETHER_ALLOWED_DESTINATIONS": "127.0.0.0/8 [::1]"}
"""Environment of an operator, a prober or a sampler whose policies may connect to parts on this machine."""


class HeldPorts:
    """A bag of held ports, all freed by ``release``."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        """Hold one more port and return its number."""
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        self._sockets.append(holder)
        return int(holder.getsockname()[1])

    def release(self) -> None:
        """Give all of them back."""
        while self._sockets:
            self._sockets.pop().close()

    def __enter__(self) -> HeldPorts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def accepts(port: int, timeout_seconds: float = 1.0) -> bool:
    """Whether something on 127.0.0.1 takes connections at that port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_seconds):
            return True
    except OSError:
        return False
