"""A network path that loses packets: a TCP relay that delays what TCP would have to send again.

In: a port of 127.0.0.1 and the share of packets that are lost, each way. Out: another port that leads there. A loss
costs what it costs on Linux: 1 s for a SYN or its answer (RFC 6298), 0.2 s for data (TCP_RTO_MIN), twice as long each
time that it is lost again. No kernel module and no privilege is needed.
"""

from __future__ import annotations

import random
import socket
import socketserver
import threading
import time
from types import TracebackType

SYN_SECONDS = 1.0
DATA_SECONDS = 0.2
IDLE_SECONDS = 60.0


class LossyPath:
    """Relays from ``port`` on entry to exit; each path loses the same packets in every run."""

    def __init__(self, target: int, share: float) -> None:
        self._losses = random.Random(target)
        self._target = target
        self._share = share
        path = self

        class Relay(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                path._relay(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay)
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def port(self) -> int:
        """Where to connect."""
        return int(self._server.server_address[1])

    def delay(self, first: float) -> float:
        """Seconds that a packet is late, if its first repetition comes after ``first`` seconds."""
        late = 0.0
        while self._losses.random() < self._share:
            late, first = late + first, 2 * first
        return late

    def _relay(self, client: socket.socket) -> None:
        time.sleep(self.delay(SYN_SECONDS) + self.delay(SYN_SECONDS))
        try:
            with socket.create_connection(("127.0.0.1", self._target), timeout=IDLE_SECONDS) as broker:
                client.settimeout(IDLE_SECONDS)
                back = threading.Thread(target=self._pump, args=(broker, client), daemon=True)
                back.start()
                self._pump(client, broker)
                back.join()
        except OSError:
            return  # the client sees its connection end

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                time.sleep(self.delay(DATA_SECONDS))
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def __enter__(self) -> LossyPath:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
