"""Write probe: write latency of one broker's log directory, measured on the broker's own volume.

In: something that writes, and objectives that may change. Out: signals, posted on news. Called by ``bellwether probe
storage``. One thread appends and one syncs, and each may hang with the disk; another judges, and never touches the
disk: a write that has not ended in time is reported while it still hangs. Clients wait for no sync, so only appends are
harm.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import structlog

from bellwether.core.settings.detection import StorageLatency
from bellwether.core.settings.harm import WRITE_AGAIN_SHARE, Objectives
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.probes.measuring_thread import MeasuringThread
from bellwether.probes.storage.disk_timer import DiskTimer
from bellwether.probes.storage.disk_write import DiskWriter, words
from bellwether.probes.storage.write_latency import Latencies, Sample
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

_LOOK_SECONDS = 0.1


class WriteProbe(MeasuringThread):
    """The writes of one log directory. ``post`` is called with news, on the judging thread."""

    def __init__(
        self,
        broker: int,
        source: str,
        writer: DiskWriter,
        objectives: Objectives,
        post: Callable[[Signal], None],
        clock: Clock,
        metrics: ProbeMetrics,
        verify: Callable[[], None] = lambda: None,
    ) -> None:
        """``verify`` is called on the writing threads after each write, before its sample can be posted."""
        super().__init__("storage-judge", clock)
        self._broker = broker
        self._source = source
        self._writer = writer
        self._objectives = objectives
        self._post = post
        self._metrics = metrics
        self._verify = verify
        self._log = structlog.get_logger(__name__).bind(broker=broker)
        self._metadata_log: bool | None = None
        self._bad_in_a_row = 0
        self._known = Latencies()
        self._posted: Latencies | None = None
        self._told_at = 0.0
        self._counted_until = clock.monotonic()
        self._warned = ""
        self._appends = DiskTimer("storage-write", self._append, self._pause_after, clock, writer.remove)
        self._syncs = DiskTimer("storage-sync", self._sync, lambda _sample: StorageLatency.period_seconds, clock)

    def start(self) -> None:
        """Begin to write and to judge."""
        self._appends.start()
        self._syncs.start()
        super().start()

    def configure(self, objectives: Objectives) -> None:
        """Go on under other objectives, from the next write on."""
        self._objectives = objectives

    def repeat(self) -> None:
        """Post the current signal again, changed or not."""
        self._posted = None

    def alive(self) -> bool:
        """Whether all threads are at work; a writer that hangs with the disk is."""
        return super().alive() and self._appends.alive() and self._syncs.alive()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Stop and remove the files; a writer that hangs with its disk is left behind, and its files with it."""
        self._syncs.stop(timeout_seconds)
        super().stop(timeout_seconds)
        self._appends.stop(timeout_seconds)

    def _append(self) -> Sample:
        self._look_for_the_metadata_log()
        sample = measure(self._writer, self._clock, self._writer.append)
        self._verify()
        return sample

    def _pause_after(self, sample: Sample) -> float:
        self._bad_in_a_row = self._bad_in_a_row + 1 if reading(sample, self._objectives) is Reading.FAILING else 0
        return pause(self._bad_in_a_row)

    def _sync(self) -> Sample:
        sample = measure(self._writer, self._clock, self._writer.sync)
        self._verify()
        return sample

    def _look_for_the_metadata_log(self) -> None:
        """Until it is found: a broker creates it when it first starts."""
        if not self._metadata_log:
            with suppress(OSError):
                self._metadata_log = self._writer.holds_metadata_log()

    def _run(self) -> None:
        self._counted_until = self._clock.monotonic()
        while not self._stop.is_set():
            self._beat = self._clock.monotonic()
            self._look_at_syncs()
            if (sample := self._appends.ended(_LOOK_SECONDS)) is not None:
                self._take(sample)
            else:
                self._look_at_a_hanging_write()

    def _look_at_syncs(self) -> None:
        """Note how long they take; one that fails is a failed write, as Kafka gives the directory up by it."""
        while (sample := self._syncs.ended(0.0)) is not None:
            if sample.problem:
                self._take(sample)
            else:
                self._metrics.sync_seconds.labels(self._broker).observe(sample.seconds)
                self._known = self._known.synced(sample.seconds - sample.away)
        hanging = self._syncs.hanging_seconds()
        self._known = replace(self._known, sync_hangs=hanging, metadata_log=self._metadata_log)

    def _look_at_a_hanging_write(self) -> None:
        """Count a write that is late while it hangs, as often as writes would be made while they are slow."""
        began, limit = self._appends.began, self._objectives.produce_milliseconds / 1000 + _LOOK_SECONDS
        now = self._clock.monotonic()
        if began is None or now - began < limit:
            return
        counted = self._counted_until - began
        if counted >= 0 and now - self._counted_until < pause(2 if counted >= StorageLatency.period_seconds else 1):
            return
        if (waited := self._appends.hanging_seconds()) >= limit:
            self._take(Sample(waited, stalled=True))

    def _take(self, sample: Sample) -> None:
        """Count a sample for the time since the one before it, without those seconds in which this did not run."""
        until = self._clock.monotonic()
        most = max(StorageLatency.period_seconds, sample.seconds)
        covers = min(max(until - self._counted_until - sample.away, 0.0), most)
        self._counted_until, sample = until, replace(sample, covers=covers)
        if sample.own_trouble and sample.problem != self._warned:
            self._log.warning("probe_file_not_written", error=sample.problem)
        self._warned = sample.problem if sample.own_trouble else ""
        result = "stalled" if sample.stalled else "failed" if sample.problem else "ok"
        self._metrics.writes.add(self._broker, result, seconds=sample.seconds)
        self._known = self._known.after(sample, self._objectives, self._clock.now())
        signal = self._known.signal(self._broker, self._source, self._objectives)
        if signal is None:
            return
        self._metrics.judged(signal)
        now = self._clock.monotonic()
        if self._known.differs(self._posted, now - self._told_at):
            self._posted, self._told_at = self._known, now
            self._post(signal)


def pause(bad_in_a_row: int) -> float:
    """Seconds from the beginning of one write to the next, or between two looks at a write that hangs."""
    return StorageLatency.period_seconds * (WRITE_AGAIN_SHARE if bad_in_a_row > 1 else 1)


def measure(writer: DiskWriter, clock: Clock, write: Callable[[], None]) -> Sample:
    """Time one append or sync of the writer."""
    began = clock.monotonic()
    try:
        write()
    except OSError as error:
        return Sample(clock.monotonic() - began, words(error), own_trouble=writer.own_trouble(error))
    return Sample(clock.monotonic() - began)


def measure_once(writer: DiskWriter, timeout_seconds: float, clock: Clock) -> tuple[Sample, Sample]:
    """Time one append, then one sync, from a thread of its own; what does not end in time is ``stalled``."""
    ended: queue.SimpleQueue[Sample] = queue.SimpleQueue()

    def run() -> None:
        ended.put(measure(writer, clock, writer.append))
        ended.put(measure(writer, clock, writer.sync))
        writer.remove()

    thread = threading.Thread(target=run, name="storage-write", daemon=True)
    thread.start()
    found = [Sample(timeout_seconds, stalled=True)] * 2
    with suppress(queue.Empty):
        for number in range(2):
            found[number] = ended.get(timeout=timeout_seconds)
        thread.join(timeout_seconds)
    return found[0], found[1]


def reading(sample: Sample, objectives: Objectives) -> Reading:
    """What a single write looks like, before any counting."""
    if sample.own_trouble:
        return Reading.UNKNOWN
    slow = sample.stalled or sample.problem or sample.seconds * 1000 > objectives.produce_milliseconds
    return Reading.FAILING if slow else Reading.PASSING
