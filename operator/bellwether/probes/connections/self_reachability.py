"""Self-reachability probe: are external clients connected to one broker, seen from its own socket table.

In: a table of sockets, and settings that may change. Out: signals, posted on news. Called by ``bellwether probe self``.
One thread looks; between two looks the same thread takes note of who hangs up.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.probes.connections.connection_activity import ConnectionActivity, ConnectionSample
from bellwether.probes.connections.socket_table import SocketTable
from bellwether.probes.measuring_thread import MeasuringThread
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

_SLICE_SECONDS = 0.25


class SelfReachabilityProbe(MeasuringThread):
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
        metrics: ProbeMetrics,
    ) -> None:
        super().__init__("sockets", clock)
        self._broker = broker
        self._source = source
        self._port = port
        self._table = table
        self._settings = settings
        self._post = post
        self._metrics = metrics
        self._log = structlog.get_logger(__name__).bind(broker=broker, port=port)
        self._known = ConnectionActivity()
        self._posted: tuple[str, ...] | None = None
        self._warned = ""

    def configure(self, settings: SelfReachability) -> None:
        """Go on under other settings, from the next look on."""
        self._settings = settings

    def repeat(self) -> None:
        """Post the current signal again, changed or not."""
        self._posted = None

    def _longest_round(self) -> float:
        return 3 * self._settings.period_seconds + 5.0

    def _run(self) -> None:
        due = self._clock.monotonic()
        while not self._stop.is_set():
            now = self._clock.monotonic()
            if now < due:
                self._table.listen(min(_SLICE_SECONDS, due - now))
                continue
            self._beat = now
            self._take(self._table.sample())
            due = max(due + self._settings.period_seconds, now)
        self._table.close()

    def _take(self, sample: ConnectionSample) -> None:
        settings = self._settings
        if sample.problem and sample.problem != self._warned:
            self._log.warning("connections_not_read", error=sample.problem)
        self._warned = sample.problem
        self._known = self._known.after(sample, settings, self._clock.now(), self._clock.monotonic())
        if not sample.problem:
            self._metrics.looked(self._broker, sample.connections, self._known.silent_seconds)
        signal = self._known.signal(self._broker, self._source, self._port, settings)
        if signal is None:
            return
        self._metrics.judged(signal)
        if self._known.news() != self._posted:
            self._posted = self._known.news()
            self._post(signal)


def measure_once(
    table: SocketTable, settings: SelfReachability, clock: Clock
) -> tuple[ConnectionSample, Reading, float]:
    """Sample until a client sends data, at most ``idle_after_seconds``: last sample, reading, seconds."""
    began = clock.monotonic()
    while True:
        sample = table.sample()
        waited = clock.monotonic() - began
        if sample.problem or not sample.listening:
            return sample, Reading.UNKNOWN, waited
        if sample.last_received_seconds is not None and sample.last_received_seconds <= settings.idle_after_seconds:
            return sample, Reading.PASSING, sample.last_received_seconds
        if waited >= settings.idle_after_seconds:
            return sample, Reading.UNKNOWN if sample.blind else Reading.FAILING, waited
        table.listen(min(_SLICE_SECONDS, settings.idle_after_seconds - waited))
