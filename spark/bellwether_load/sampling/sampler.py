"""SamplingRound after round for as long as the process lives, and every round written down.

In: rounds, a clock, and where to write. Out: rows in the store, and log events on changes. Called by
``bellwether sample``. A round that the store does not take is kept and tried again with the next ones; the sampler has
no other state, so it may be killed and started at any time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Protocol

import structlog

from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat
from bellwether_load.sampling.rounds import SamplingRound
from bellwether_load.sampling.schedules import Schedule
from bellwether_load.store.samples.rows import Rows

# At 200,000 partitions one takes some 20 MB.
MOST_KEPT = 10


class SamplingObserver(Protocol):
    """Receives what happens, for metrics; implemented in ``telemetry.metrics.sampler_metrics``."""

    def sampled(self, seconds: float, rows: int, known: int, failing: Collection[int], whole: bool) -> None:
        """A round has ended."""
        ...

    def failed(self) -> None:
        """A round came to nothing."""
        ...

    def late(self, rounds: int) -> None:
        """So many rounds were left out."""
        ...

    def written(self, at: float, size: int) -> None:
        """A round is in the store."""
        ...

    def refused(self) -> None:
        """The store took nothing."""
        ...

    def lost(self) -> None:
        """A round was given up."""
        ...

    def keep(self, brokers: Collection[int]) -> None:
        """Only these brokers exist."""
        ...


class TakesRounds(Protocol):
    """Takes one round; ``rounds.Rounds`` does."""

    def take(self, at: datetime) -> SamplingRound:
        """The round of this moment. Raises Transient or Terminal."""
        ...


class Sampler:
    """One cluster's sampler. ``write`` puts one round into the store: the bytes it took, or Transient or Terminal."""

    def __init__(
        self,
        rounds: TakesRounds,
        write: Callable[[Rows], int],
        schedule: Schedule,
        clock: Clock,
        observer: SamplingObserver,
    ) -> None:
        self._rounds = rounds
        self._write = write
        self._schedule = schedule
        self._clock = clock
        self._observer = observer
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
        while not stop.is_set():
            self._pulse.beat()
            step = self._schedule.next_step(self._clock.now())
            if step.set_back:
                self._log.warning("clock_set_back", seconds=step.set_back)
            if step.missed:
                self._observer.late(step.missed)
                self._log.warning("sampling_rounds_skipped", rounds=step.missed)
            if step.begin is not None:
                self._attempt("preparation", prepare)
                self.round(step.begin)
            elif step.wait:
                stop.wait(step.wait)
        self._flush()

    def round(self, at: datetime) -> SamplingRound | None:
        """Take the round of this moment and write it; None when it came to nothing."""
        try:
            found = self._rounds.take(at)
        except (Transient, Terminal) as error:
            self._say({"round": str(error)}, ("round",))
            self._observer.failed()
            return None
        self._say({}, ("round",))
        self._say(found.troubles, self._failing - {"store", "preparation"})
        failing = [number for number, answers in found.answers.items() if answers.problem]
        known = sum(end is not None for end in found.rows.end_offset)
        self._observer.keep(found.answers)
        self._observer.sampled(found.seconds, len(found.rows), known, failing, not found.troubles)
        self._kept.append(found.rows)
        self._flush()
        return found

    def _flush(self) -> None:
        """Write what is to be written, the oldest first; what the store does not take is kept for later."""
        while self._kept:
            rows = self._kept[0]
            self._pulse.beat()
            try:
                size = self._write(rows)
            except (Transient, Terminal) as error:
                self._observer.refused()
                self._say({"store": str(error)}, ("store",))
                break
            self._observer.written(rows.at.timestamp(), size)
            self._kept.popleft()
            self._say({}, ("store",))
        while len(self._kept) > MOST_KEPT:
            self._kept.popleft()
            self._observer.lost()

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
