"""Read probe: latency of direct reads from old segments of one broker's log directory.

In: something that reads, and settings that may change. Out: signals, posted when they change. Called by ``bellwether
probe storage``. One thread reads, and may hang with the disk; another judges, and never touches the disk. Neither is a
thread of ``write_probe``: a read that hangs does not stop the writes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median

import structlog

from bellwether.core.detection.harm import HarmCounter
from bellwether.core.settings.detection import ReadLatency
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.ports.clock import Clock
from bellwether.probes.measuring_thread import MeasuringThread
from bellwether.probes.reachability.reachability_state import milliseconds
from bellwether.probes.result_window import lost_text
from bellwether.probes.storage.disk_read import NO_EVIDENCE, DiskReader, NothingToRead
from bellwether.probes.storage.disk_timer import DiskTimer
from bellwether.probes.storage.disk_write import words
from bellwether.probes.storage.write_latency import STARVED, Sample
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

RECENT_READS = 10
# After so many reads in a row during which this process did not run, nothing is known.
_MOST_STARVED = 5


@dataclass(frozen=True, slots=True)
class ReadLatencies:
    """One log directory's reads up to now.

    ``fastest`` is the fastest read since the process started. ``problem`` says that the last read failed or is late,
    empty if it ended; ``unmeasured`` why reads cannot be measured.
    ``starved`` counts the last reads during which this process did not run.
    """

    counter: HarmCounter = field(default_factory=HarmCounter)
    times: tuple[float, ...] = ()
    fastest: float | None = None
    problem: str = ""
    unmeasured: str = ""
    starved: int = 0

    def after(self, sample: Sample, seconds: float, objective: float, now: datetime) -> ReadLatencies:
        """What is known after one more sample, which covers the ``seconds`` since the one before it."""
        sample = sample.without_absence(objective)
        if sample.problem == STARVED and self.starved + 1 < _MOST_STARVED:
            return replace(self, starved=self.starved + 1)
        if sample.own_trouble:
            return ReadLatencies(self.counter.unmeasured(now), fastest=self.fastest, unmeasured=sample.problem)
        late = bool(sample.problem) or sample.seconds > objective
        counter = self.counter.after(1.0 if late else 0.0, seconds, now)
        if sample.stalled:
            problem = f"a read has not ended within {milliseconds(objective)}"
            return ReadLatencies(counter, self.times, self.fastest, problem)
        if sample.problem:
            return ReadLatencies(counter, self.times, self.fastest, f"reads fail: {sample.problem}")
        fastest = min(sample.seconds, self.fastest or sample.seconds)
        return ReadLatencies(counter, (*self.times, sample.seconds)[-RECENT_READS:], fastest)

    def signal(self, broker: int, source: str, objective: float) -> Signal | None:
        """The signal to report; None while nothing has been judged."""
        if self.counter.reading_since is None:
            return None
        return Signal(
            broker,
            SignalType.READ_LATENCY,
            source,
            self.counter.reading,
            self.counter.reading_since,
            latency_seconds=median(self.times) if self.times else None,
            message=self.message(objective),
            harm=self.counter.harm,
        )

    def message(self, objective: float) -> str:
        """One sentence for a person, with figures as they are now."""
        if self.unmeasured:
            return f"reads are not measured: {self.unmeasured}"
        failing = self.counter.reading is Reading.FAILING
        if failing and self.problem:
            return f"{lost_text(self.counter)} ({self.problem})"
        if not self.times:
            return ""
        figures = f"median {milliseconds(median(self.times))}, last {milliseconds(self.times[-1])}"
        if not failing:
            return f"reads take {figures}"
        said = f"{lost_text(self.counter)} (reads over {milliseconds(objective)}: {figures})"
        if self.fastest is not None and self.fastest > objective:
            said += (
                f"; no read has met the objective, the fastest took {milliseconds(self.fastest)}: check"
                " spec.detection.objectives.fetchMilliseconds"
            )
        return said

    def differs(self, posted: ReadLatencies | None, seconds_since: float) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or self.unmeasured != posted.unmeasured:
            return True
        return self.counter.differs(posted.counter, seconds_since)


_TICK_SECONDS = 0.1
# A read that hangs is counted again after this time.
_SLICE_SECONDS = 0.5


class ReadProbe(MeasuringThread):
    """The reads of one log directory. ``post`` is called with changed signals, on the judging thread."""

    def __init__(
        self,
        broker: int,
        source: str,
        reader: DiskReader,
        post: Callable[[Signal], None],
        clock: Clock,
        metrics: ProbeMetrics,
        verify: Callable[[], None] = lambda: None,
        *,
        period_seconds: float = ReadLatency.period_seconds,
    ) -> None:
        """``verify`` is called on the reading thread after each read, before its sample can be posted."""
        super().__init__("read-judge", clock)
        self._broker = broker
        self._source = source
        self._reader = reader
        self._post = post
        self._metrics = metrics
        self._verify = verify
        self._settings, self._objectives = ReadLatency(), Objectives()
        self._log = structlog.get_logger(__name__).bind(broker=broker)
        self._timer = DiskTimer("storage-read", self._measure, lambda _sample: period_seconds, clock)
        self._period = period_seconds
        self._counted_until = clock.monotonic()
        self._known = ReadLatencies()
        self._posted: ReadLatencies | None = None
        self._posted_at = 0.0

    def configure(self, settings: ReadLatency, objectives: Objectives) -> None:
        """Use these settings from the next read on."""
        self._settings, self._objectives = settings, objectives

    def start(self) -> None:
        """Start to read and to judge."""
        self._timer.start()
        super().start()

    def repeat(self) -> None:
        """Post the current signal again, changed or not."""
        self._posted = None

    def alive(self) -> bool:
        """Whether both threads are at work; a reader that hangs with the disk is."""
        return super().alive() and self._timer.alive()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Stop; a reader that hangs with its disk is left behind."""
        super().stop(timeout_seconds)
        self._timer.stop(timeout_seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._beat = self._clock.monotonic()
            sample = self._timer.ended(_TICK_SECONDS)
            if sample is not None:
                self._observe(sample)
                self._take(sample)
            elif self._clock.monotonic() - self._counted_until >= _SLICE_SECONDS:
                waited = self._timer.hanging_seconds()
                if waited > self._objectives.fetch_milliseconds / 1000:
                    self._take(Sample(waited, stalled=True))

    def _measure(self) -> Sample:
        if not self._settings.enabled:
            return Sample(0.0, "the policy disables it", own_trouble=True)
        sample = measure(self._reader, self._clock)
        self._verify()
        return sample

    def _observe(self, sample: Sample) -> None:
        result = "unmeasured" if sample.own_trouble else "failed" if sample.problem else "ok"
        self._metrics.reads.add(self._broker, result, seconds=sample.seconds)

    def _take(self, sample: Sample) -> None:
        now, objective = self._clock.monotonic(), self._objectives.fetch_milliseconds / 1000
        # After a pause of this process, as in a suspended machine, nothing is known of the time in between.
        since = min(now - self._counted_until, max(sample.seconds, 2.0 * self._period))
        self._counted_until = now
        before = self._known.unmeasured
        self._known = self._known.after(sample, since, objective, self._clock.now())
        if self._known.unmeasured and self._known.unmeasured != before:
            self._log.warning("reads_not_measured", reason=self._known.unmeasured)
        signal = self._known.signal(self._broker, self._source, objective)
        if signal is not None and self._known.differs(self._posted, now - self._posted_at):
            self._posted, self._posted_at = self._known, now
            self._post(signal)


def measure(reader: DiskReader, clock: Clock) -> Sample:
    """Time one read, without the search for a segment."""
    began = clock.monotonic()
    try:
        reader.open()
        began = clock.monotonic()
        reader.read()
    except NothingToRead as reason:
        return Sample(clock.monotonic() - began, str(reason), own_trouble=True)
    except OSError as error:
        return Sample(clock.monotonic() - began, words(error), own_trouble=error.errno in NO_EVIDENCE)
    return Sample(clock.monotonic() - began)


def read_once(reader: DiskReader, timeout_seconds: float, clock: Clock) -> Sample:
    """Time one read from a thread of its own; one that does not end in time has failed."""
    ended: queue.SimpleQueue[Sample] = queue.SimpleQueue()
    threading.Thread(target=lambda: ended.put(measure(reader, clock)), name="storage-read", daemon=True).start()
    try:
        return ended.get(timeout=timeout_seconds)
    except queue.Empty:
        return Sample(timeout_seconds, f"the read did not finish within {timeout_seconds:g} s", stalled=True)
