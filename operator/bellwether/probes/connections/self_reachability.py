"""Self-reachability probe: are external clients connected to one broker, seen from its own socket table.

In: a table of sockets, and settings that may change. Out: signals, posted on news. Called by ``bellwether probe self``.
One thread looks; between two looks the same thread takes note of who hangs up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import structlog

from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.probes.connections.connection_activity import ConnectionActivity, Look
from bellwether.probes.connections.socket_table import SocketTable

_SLICE_SECONDS = 0.25


class Observer(Protocol):
    """Is told what is measured, for metrics; ``telemetry`` has the real one."""

    def looked(self, broker: int, connections: int, silent_seconds: float) -> None:
        """One look: who is connected, and how long ago anybody was heard of."""
        ...

    def judged(self, signal: Signal) -> None:
        """The listener's reading, after each look."""
        ...


class SelfReachabilityProbe:
    """The looks at one listener's port. ``post`` is called with news, on the looking thread."""

    def __init__(
        self,
        broker: int,
        source: str,
        port: int,
        table: SocketTable,
        settings: SelfReachability,
        post: Callable[[Signal], None],
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._broker = broker
        self._source = source
        self._port = port
        self._table = table
        self._settings = settings
        self._post = post
        self._clock = clock
        self._observer = observer
        self._log = structlog.get_logger(__name__).bind(broker=broker, port=port)
        self._known = ConnectionActivity()
        self._told: tuple[str, ...] | None = None
        self._warned = ""
        self._beat = clock.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sockets", daemon=True)

    @property
    def known(self) -> ConnectionActivity:
        """What is known now."""
        return self._known

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def configure(self, settings: SelfReachability) -> None:
        """Go on under other settings, from the next look on."""
        self._settings = settings

    def repeat(self) -> None:
        """Tell the present word again, news or not."""
        self._told = None

    def alive(self) -> bool:
        """Whether the table is being looked at."""
        patience = 3 * self._settings.period_seconds + 5.0
        return self._thread.is_alive() and self._clock.monotonic() - self._beat < patience

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Stop looking."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        due = self._clock.monotonic()
        while not self._stop.is_set():
            now = self._clock.monotonic()
            if now < due:
                self._table.listen(min(_SLICE_SECONDS, due - now))
                continue
            self._beat = now
            self._take(self._table.look())
            due = max(due + self._settings.period_seconds, now)
        self._table.close()

    def _take(self, look: Look) -> None:
        settings = self._settings
        if look.problem and look.problem != self._warned:
            self._log.warning("who is connected cannot be told; that is no evidence", error=look.problem)
        self._warned = look.problem
        self._known = self._known.after(look, settings, self._clock.now(), self._clock.monotonic())
        if not look.problem:
            self._observer.looked(self._broker, look.connections, self._known.silent_seconds)
        word = self._known.word(self._broker, self._source, self._port, settings)
        if word is None:
            return
        self._observer.judged(word)
        if self._known.news() != self._told:
            self._told = self._known.news()
            self._post(word)


def measure_once(table: SocketTable, settings: SelfReachability, clock: Clock) -> tuple[Look, Reading, float]:
    """Look until somebody is heard of, at most ``idle_after_seconds``: the last look, its reading, the seconds."""
    began = clock.monotonic()
    while True:
        look = table.look()
        waited = clock.monotonic() - began
        if look.problem or not look.listening:
            return look, Reading.UNKNOWN, waited
        if look.heard_seconds is not None and look.heard_seconds <= settings.idle_after_seconds:
            return look, Reading.PASSING, look.heard_seconds
        if waited >= settings.idle_after_seconds:
            return look, Reading.UNKNOWN if look.blind else Reading.FAILING, waited
        table.listen(min(_SLICE_SECONDS, settings.idle_after_seconds - waited))
