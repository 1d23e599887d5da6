"""Write latency of a log directory over time: quantiles, baseline and stalls, and whether it is slow.

In: samples (one for each write: how long it took, or what went wrong) and thresholds. Out: a ``Signal`` with a message
for a person, and whether it is news. Called by ``storage_probe``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median

from bellwether.core.settings.detection import StorageLatency
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.reachability.reachability_state import milliseconds
from bellwether.probes.result_window import Window, apart, signal_of

# A latency alone is news at most this often, and only when it has changed by half: peers are compared with it.
LATENCY_NEWS_SECONDS = 5.0
_LATENCY_NEWS_RATIO = 1.5
# Kinds of trouble in which a write has a time at all.
_TIMED = ("", "slow", "stalled")
# Another kind of problem is reported after this many in a row.
_CONFIRMED = 5
# ... compared above this share of the threshold: jitter of a fast disk is no news, and what is a few times faster than
# the threshold still is, as slow disks are compared with it.
_FLOOR_SHARE = 0.1


STARVED = "this process was not let run while it wrote: give it more CPU"


@dataclass(frozen=True, slots=True)
class Sample:
    """One write. ``problem`` is why it failed; ``stalled`` that it has not ended yet, after ``seconds``.

    ``own_trouble`` marks a problem of the prober itself, which is no evidence about the disk. ``away`` are those of the
    ``seconds`` in which the prober itself did not run, ``counted`` the periods of this write that have been counted
    while it hung.
    """

    seconds: float
    problem: str = ""
    stalled: bool = False
    own_trouble: bool = False
    away: float = 0.0
    counted: int = 0

    def without_absence(self, limit: float) -> Sample:
        """The sample as evidence: a write that only seemed slow because the prober did not run is none."""
        if not self.away or self.problem or self.stalled:
            return self
        if self.seconds > limit >= self.seconds - self.away:
            return Sample(self.seconds, STARVED, own_trouble=True)
        return replace(self, seconds=self.seconds - self.away, away=0.0)


RECENT_WRITES = 10
SPAN_WRITES = 30
SPANS_KEPT = 60


@dataclass(frozen=True, slots=True)
class LatencyBaseline:
    """What is usual for a disk: the median over spans of good writes. Bad times teach nothing: dying is not usual."""

    writes: tuple[float, ...] = ()
    spans: tuple[float, ...] = ()

    def after(self, seconds: float) -> LatencyBaseline:
        """The habit after one more good write."""
        writes = (*self.writes, seconds)
        if len(writes) < SPAN_WRITES:
            return LatencyBaseline(writes, self.spans)
        return LatencyBaseline((), (*self.spans, median(writes))[-SPANS_KEPT:])

    @property
    def usual(self) -> float | None:
        """Seconds that a write usually takes; ``None`` while too little is known."""
        return median(self.spans) if len(self.spans) > 1 else None


@dataclass(frozen=True, slots=True)
class Latencies:
    """One log directory's writes up to now."""

    window: Window = field(default_factory=Window)
    times: tuple[float, ...] = ()
    slow_times: tuple[float, ...] = ()
    """Of the last writes that were bad, since the reading was last ``Passing``."""
    baseline: LatencyBaseline = field(default_factory=LatencyBaseline)
    slow: int = 0
    kind: str = ""
    """What is wrong, without figures; empty while all is well."""
    kind_seen: tuple[str, int] = ("", 0)
    trouble: str = ""
    troubles: int = 0

    def after(self, sample: Sample, settings: StorageLatency, now: datetime) -> Latencies:
        """What is known after one more sample."""
        limit = self.limit(settings)
        sample = sample.without_absence(limit)
        if sample.own_trouble:
            return self._troubled(sample, settings, now)
        slow = sample.seconds > limit
        ok = not slow and not sample.problem and not sample.stalled
        window = self.window
        # A write that took several periods counts for the writes that it prevented.
        unposted = min(periods(sample.seconds, settings) - sample.counted, settings.window_samples)
        for _ in range(1 if ok else max(unposted, 0 if sample.counted else 1)):
            window = window.seen(ok, now, settings)
        times = self.times if sample.problem else (*self.times, sample.seconds)[-settings.window_samples :]
        passing = window.reading is Reading.PASSING
        slow_times = () if passing and ok else self.slow_times
        if not ok and not sample.problem:
            slow_times = (*slow_times, sample.seconds)[-max(1, settings.failure_threshold) :]
        baseline = self.baseline.after(sample.seconds) if ok and passing else self.baseline
        kind = "" if ok else "stalled" if sample.stalled else sample.problem or "slow"
        seen = (kind, self.kind_seen[1] + 1 if kind == self.kind_seen[0] else 1)
        kind = self._settled(window, seen, settings)
        return Latencies(window, times, slow_times, baseline, sum(window.bad), kind, seen)

    def limit(self, settings: StorageLatency) -> float:
        """Seconds beyond which a write is slow: the floor, or what is far from usual here; never far above the floor.

        The upper end keeps a disk that dies slowly from teaching us that dying is usual.
        """
        floor = settings.threshold_milliseconds / 1000
        usual = self.baseline.usual or 0.0
        return max(floor, min(settings.history_ratio * usual, settings.history_ratio * floor))

    def signal(self, broker: int, source: str, settings: StorageLatency) -> Signal | None:
        """The signal to report; ``None`` while the directory has not been judged."""
        return signal_of(
            self.window,
            broker,
            SignalType.STORAGE_LATENCY,
            source,
            latency_seconds=self.typical(),
            message=self.message(settings),
            usual_seconds=self.baseline.usual,
        )

    def typical(self) -> float | None:
        """The median of the last writes: of the slow ones while it fails; ``None`` while writes end in errors."""
        if self.window.reading is Reading.FAILING:
            slow = self.slow_times if self.kind in _TIMED else ()
            return median(slow) if slow else None
        recent = self.times[-RECENT_WRITES:]
        return median(recent) if recent else None

    def message(self, settings: StorageLatency) -> str:
        """One sentence for a person, with figures as they are now."""
        if self.window.reading is Reading.UNKNOWN:
            return f"the prober cannot measure: {self.trouble}" if self.trouble else ""
        if self.window.reading is Reading.FAILING and self.kind == "stalled":
            return f"a write has not ended within {settings.timeout_seconds} s"
        if self.window.reading is Reading.FAILING and self.kind not in ("", "slow"):
            return f"writes fail: {self.kind}"
        if not self.times:
            return ""
        recent = self.times[-len(self.window.bad) :] if self.window.bad else self.times
        figures = f"median {milliseconds(median(recent))}, last {milliseconds(self.times[-1])}"
        if self.window.reading is Reading.PASSING:
            return f"writes take {figures}"
        limit = round(self.limit(settings) * 1000)
        return f"{self.slow} of the last {len(self.window.bad)} writes took more than {limit} ms: {figures}"

    def differs(self, posted: Latencies | None, seconds_since: float, settings: StorageLatency) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or (self.window.reading, self.kind) != (posted.window.reading, posted.kind):
            return True
        now, then = self.typical(), posted.typical()
        if now is None or then is None or seconds_since < LATENCY_NEWS_SECONDS:
            return False
        floor = settings.threshold_milliseconds / 1000 * _FLOOR_SHARE
        return apart(now, then, floor, _LATENCY_NEWS_RATIO)

    def _settled(self, window: Window, seen: tuple[str, int], settings: StorageLatency) -> str:
        """What is wrong changes with the reading, or when another thing has been wrong often enough."""
        if window.reading is not Reading.FAILING:
            return ""
        kind, count = seen
        if not kind:
            return self.kind
        turned = self.window.reading is not Reading.FAILING
        return kind if turned or not self.kind or count >= min(_CONFIRMED, settings.failure_threshold) else self.kind

    def _troubled(self, sample: Sample, settings: StorageLatency, now: datetime) -> Latencies:
        troubles = self.troubles + 1
        if troubles < min(_CONFIRMED, settings.failure_threshold):
            return replace(self, troubles=troubles, trouble=sample.problem)
        known = self.window.reading is not Reading.UNKNOWN
        lost = Window(Reading.UNKNOWN, now if known else self.window.since)
        return Latencies(lost, baseline=self.baseline, kind="trouble", trouble=sample.problem, troubles=troubles)


def periods(seconds: float, settings: StorageLatency) -> int:
    """For how many writes one of this duration counts: itself, and those that it prevented."""
    return max(1, math.ceil(seconds / max(settings.period_seconds, 0.001)))
