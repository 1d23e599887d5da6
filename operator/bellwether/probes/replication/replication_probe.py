"""Replication probe: lag of every broker of one cluster, measured from outside by log end offsets.

In: soundings (one round of questions to all the brokers), and settings that may change. Out: signals, posted on news.
Called by ``bellwether probe replication``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import structlog

from bellwether.core.settings.detection import ReplicationLag
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.measuring_thread import MeasuringThread
from bellwether.probes.replication.lag_round import LagRounds
from bellwether.probes.replication.lag_state import LagMeasurement, Lags
from bellwether.telemetry.metrics.probe_metrics import LagMetrics

_IDLE_SECONDS = 0.2
# Additional time for reading metadata (a read tries up to three brokers).
_MAP_SECONDS = 10.0
_ONCE_SECONDS = 1.0


class ReplicationProbe(MeasuringThread):
    """The rounds of one cluster. ``post`` and ``forget`` are called with news, on the probe's own thread.

    ``kept`` names the brokers that still have a BrokerHealth; None: unknown.
    """

    def __init__(
        self,
        source: str,
        post: Callable[[Signal], None],
        forget: Callable[[int], None],
        kept: Callable[[], frozenset[int] | None],
        clock: Clock,
        metrics: LagMetrics,
    ) -> None:
        super().__init__("replication", clock)
        self._source = source
        self._post = post
        self._forget = forget
        self._kept = kept
        self._metrics = metrics
        self._log = structlog.get_logger(__name__).bind(source=source)
        self._lock = threading.Lock()
        self._lag_rounds: LagRounds | None = None
        self._settings = ReplicationLag()
        self._known: dict[int, Lags] = {}
        self._posted: dict[int, tuple[Lags, float]] = {}
        self._repeat = False
        self._failing = ""

    def configure(self, lag_rounds: LagRounds | None, settings: ReplicationLag) -> None:
        """Go on in another way, or under other thresholds, from the next round on; None measures nothing."""
        with self._lock:
            self._lag_rounds, self._settings = lag_rounds, settings

    def repeat(self) -> None:
        """Post every current signal again: what the previous leader reported is unknown."""
        self._repeat = True

    def _longest_round(self) -> float:
        settings, lag_rounds = self._settings, self._lag_rounds
        reading = _MAP_SECONDS if lag_rounds is None else max(_MAP_SECONDS, 2 * lag_rounds.read_took)
        return 2 * settings.period_seconds + settings.timeout_seconds + reading

    def _run(self) -> None:
        used: LagRounds | None = None
        due = self._clock.monotonic()
        while not self._stop.is_set():
            with self._lock:
                lag_rounds, settings = self._lag_rounds, self._settings
            if used is not None and used is not lag_rounds:
                used.close()
            used = lag_rounds
            self._progress()
            if lag_rounds is None:
                self._stop.wait(_IDLE_SECONDS)
                continue
            began = self._clock.monotonic()
            self._round(lag_rounds, settings)
            # A cluster so large that a round takes longer than half its period gets fewer rounds, not all of a core.
            now = self._clock.monotonic()
            due = max(due + settings.period_seconds, now + min(now - began, float(settings.period_seconds)))
            self._stop.wait(due - now)
        if used is not None:
            used.close()

    def _progress(self) -> None:
        self._beat = self._clock.monotonic()

    def _round(self, lag_rounds: LagRounds, settings: ReplicationLag) -> None:
        began = self._clock.monotonic()
        returning = frozenset(b for b, lags in self._known.items() if lags.returning(began))
        try:
            found = lag_rounds.round(settings, returning, self._progress)
        except (Transient, Terminal) as error:
            if self._failing != str(error):
                self._log.warning("metadata_read_failed", error=str(error))
            self._failing = str(error)
            found = {}
        else:
            self._failing = ""
        gone = self._failing or "metadata names it no longer"
        self._judge({**{broker: LagMeasurement(problem=gone) for broker in self._known}, **found}, settings)
        cluster = lag_rounds.cluster
        if cluster is not None and not self._failing:
            self._metrics.ended(self._clock.monotonic() - began, len(cluster.partitions))
            if set(self._known) - cluster.named:
                self._drop(cluster.named)

    def _judge(self, found: Mapping[int, LagMeasurement], settings: ReplicationLag) -> None:
        now, at = self._clock.now(), self._clock.monotonic()
        if self._repeat:
            self._repeat = False
            self._posted = {}
        for broker, look in sorted(found.items()):
            lags = self._known[broker] = self._known.get(broker, Lags()).after(look, settings, now, at)
            self._metrics.measured(broker, look.worst_seconds, look.lagging, look.in_isr, look.problem)
            signal = lags.signal(broker, self._source)
            if signal is None:
                continue
            self._metrics.judged(signal)
            posted, posted_at = self._posted.get(broker, (None, 0.0))
            if lags.differs(posted, at - posted_at, settings):
                self._posted[broker] = lags, at
                self._post(signal)

    def _drop(self, named: frozenset[int]) -> None:
        kept = self._kept()
        for broker in sorted(set(self._known) - named - kept) if kept is not None else ():
            del self._known[broker]
            self._posted.pop(broker, None)
            self._metrics.gone(broker)
            self._log.info("broker_removed", broker=broker)
            self._forget(broker)


def measure_once(lag_rounds: LagRounds, settings: ReplicationLag, clock: Clock) -> dict[int, LagMeasurement]:
    """Watch the followers until it is plain whether they lag: as long as the threshold, if need be.

    A lag is a lower bound that grows while it is watched. Raises Transient or Terminal.
    """
    lag_rounds.round(settings)
    began = clock.monotonic()
    while True:
        clock.sleep(_ONCE_SECONDS)
        # A follower that still is where it was in the first round lags for longer than this.
        elapsed = clock.monotonic() - began
        found = lag_rounds.round(settings)
        worst = max((measurement.worst_seconds for measurement in found.values()), default=0.0)
        if elapsed > settings.threshold_seconds or (elapsed > 2 * _ONCE_SECONDS and worst < _ONCE_SECONDS / 2):
            return found


def reading(measurement: LagMeasurement) -> Reading:
    """The reading of a single measurement, before any counting."""
    if measurement.problem:
        return Reading.UNKNOWN
    return Reading.FAILING if measurement.blamed else Reading.PASSING
