"""SamplingRound after round for as long as the process lives, and every round written down.

In: rounds, a clock, and where to write. Out: rows in the store, and log events on changes. Called by
``bellwether sample``. A round that the store does not take is kept and tried again with the next ones; the sampler has
no other state, so it may be killed and started at any time. Rounds begin at whole multiples of the period, by the wall
clock, so that restarts and replicas fall in step; one that would begin late is left out and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta

import structlog

from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat
from bellwether_load.sampling.rounds import Rounds, SamplingRound
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.store.samples.sample_files import Rows

# At 200,000 partitions one takes some 20 MB.
MOST_KEPT = 10
# How often the clock is looked at, which may be set at any time.
_LOOK_SECONDS = 1.0


class Sampler:
    """One cluster's sampler. ``write`` puts one round into the store, or raises Transient or Terminal."""

    def __init__(
        self,
        rounds: Rounds,
        write: Callable[[Rows], object],
        period_seconds: int,
        clock: Clock,
        metrics: SamplingMetrics,
    ) -> None:
        self._rounds = rounds
        self._write = write
        self._period = timedelta(seconds=period_seconds)
        self._clock = clock
        self._metrics = metrics
        self._log = structlog.get_logger(__name__)
        self._kept: deque[Rows] = deque()
        self._failing: set[str] = set()
        self._pulse = Heartbeat("the sampler", clock.monotonic, begun=False)

    def problems(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """Reports that no round has progressed for longer than any takes. Does not block."""
        found = self._pulse.unhealthy_reason(bound_seconds)
        return [] if found is None else [found]

    def run(self, stop: threading.Event, prepare: Callable[[], None] = lambda: None) -> None:
        """Sample until ``stop``. ``prepare`` is called before each round, and may raise Transient or Terminal."""
        due: datetime | None = None
        # A wake-up later than this no longer measures the time of its round.
        tolerated = max(timedelta(seconds=1), self._period / 20)
        while not stop.is_set():
            self._pulse.beat()
            now = self._clock.now()
            if due is None or due - now > self._period:  # it begins, or the clock was set back
                due = self._after(now - timedelta(microseconds=1))
            if now < due:
                stop.wait(min(_LOOK_SECONDS, (due - now).total_seconds()))
                continue
            late, due = now - due, self._after(now)
            if late > tolerated:
                missed = 1 + late // self._period
                self._metrics.late.inc(missed)
                self._log.warning("sampling_rounds_skipped", rounds=missed)
                continue
            self._attempt("preparation", prepare)
            self.round(now.replace(microsecond=0))
        self._flush()

    def _after(self, now: datetime) -> datetime:
        """The first multiple of the period after a time."""
        start = datetime.fromtimestamp(0, UTC)
        return start + ((now - start) // self._period + 1) * self._period

    def round(self, at: datetime) -> SamplingRound | None:
        """Take the round of this moment and write it; None when it came to nothing."""
        try:
            found = self._rounds.take(at)
        except (Transient, Terminal) as error:
            self._say({"round": str(error)}, ("round",))
            self._metrics.failed()
            return None
        self._say({}, ("round",))
        self._say(found.troubles, self._failing - {"store", "preparation"})
        failing = [number for number, answers in found.answers.items() if answers.problem]
        self._metrics.keep(found.answers)
        self._metrics.sampled(failing, complete=not found.troubles)
        self._kept.append(found.rows)
        self._flush()
        return found

    def _flush(self) -> None:
        """Write what is to be written, the oldest first; what the store does not take is kept for later."""
        while self._kept:
            rows = self._kept[0]
            self._pulse.beat()
            try:
                self._write(rows)
            except (Transient, Terminal) as error:
                self._metrics.refused.inc()
                self._say({"store": str(error)}, ("store",))
                break
            self._metrics.last_written.set(rows.at.timestamp())
            self._kept.popleft()
            self._say({}, ("store",))
        while len(self._kept) > MOST_KEPT:
            self._kept.popleft()
            self._metrics.lost.inc()

    def _attempt(self, what: str, action: Callable[[], None]) -> None:
        try:
            action()
        except BellwetherError as error:
            self._say({what: str(error)}, (what,))
        else:
            self._say({}, (what,))

    def _say(self, troubles: Mapping[str, str], about: Collection[str]) -> None:
        """Log a problem when it begins and when it ends, not at every round; ``about`` was checked."""
        for what, why in troubles.items():
            if what not in self._failing:
                self._log.warning("sampling_failed", step=what, error=why)
                self._failing.add(what)
        for what in (self._failing & set(about)) - set(troubles):
            self._failing.discard(what)
            self._log.info("sampling_recovered", step=what)
