"""Write latency of a log directory over time: harm by slow, hanging and failing appends, usual latency, syncs.

In: samples (one for each write: how long it took, or what went wrong) and the latency objective. Out: a ``Signal`` with
its harm and a message for a person, and whether it is news. Called by ``write_probe``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from math import log2
from statistics import median

from bellwether.core.detection.harm import HarmCounter
from bellwether.core.settings.detection import StorageLatency
from bellwether.core.settings.harm import FENCED_WITHIN_SECONDS, SLOW_SYNC_SECONDS, STALLED_SECONDS, Objectives
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.reachability.reachability_state import milliseconds
from bellwether.probes.result_window import lost_text

# Another kind of problem is reported after this many in a row.
_CONFIRMED = 5

STARVED = "this process got no CPU time during the write: raise its CPU limit"


@dataclass(frozen=True, slots=True)
class Sample:
    """One append, or one sync. ``problem`` is why it failed; ``stalled`` that it has not ended yet, after ``seconds``.

    ``own_trouble`` marks a problem of the prober itself, which is no evidence about the disk. ``away`` are those of the
    ``seconds`` in which the prober itself did not run. The sample represents ``covers`` seconds: those since the sample
    before it, so a write counts for the writes that it prevented.
    """

    seconds: float
    problem: str = ""
    stalled: bool = False
    own_trouble: bool = False
    away: float = 0.0
    covers: float = StorageLatency.period_seconds

    def without_absence(self, limit: float) -> Sample:
        """The sample as evidence: a write that only seemed slow because the prober did not run is none."""
        if not self.away or self.problem or self.stalled:
            return self
        if self.seconds > limit >= self.seconds - self.away:
            return Sample(self.seconds, STARVED, own_trouble=True, covers=self.covers)
        return replace(self, seconds=self.seconds - self.away, away=0.0)


RECENT_WRITES = 10
SPAN_WRITES = 30
SPANS_KEPT = 60


@dataclass(frozen=True, slots=True)
class LatencyBaseline:
    """What is usual for a disk: the median over spans of good writes. It only explains; no limit depends on it."""

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

    counter: HarmCounter = field(default_factory=HarmCounter)
    times: tuple[float, ...] = ()
    fastest: float | None = None
    baseline: LatencyBaseline = field(default_factory=LatencyBaseline)
    kind: str = ""
    """What is wrong, without figures; empty while all is well."""
    kind_seen: tuple[str, int] = ("", 0)
    trouble: str = ""
    troubles: int = 0
    syncs: tuple[float, ...] = ()
    sync_hangs: float = 0.0
    """Seconds since the present sync began; 0 between two."""
    metadata_log: bool | None = None
    """Whether the KRaft metadata log lies in the directory; None while that is unknown."""

    @property
    def sync_seconds(self) -> float | None:
        """What a sync takes, in seconds: the median of the last ones, or what the present one has taken so far."""
        return max(median(self.syncs), self.sync_hangs) if self.syncs else self.sync_hangs or None

    @property
    def _slow_syncs(self) -> int:
        """How often SLOW_SYNC_SECONDS has doubled, from 1; 0 for syncs that are not slow. A change of it is news."""
        slower = (self.sync_seconds or 0.0) / SLOW_SYNC_SECONDS
        return 1 + int(log2(slower)) if slower >= 1 else 0

    @property
    def _stall_limits_passed(self) -> int:
        """How many of the limits by which a cure is chosen a hanging write has passed. A change of it is news."""
        limits = (STALLED_SECONDS, FENCED_WITHIN_SECONDS)
        return sum(self.kind == "stalled" and self.times[-1] >= limit for limit in limits)

    def synced(self, seconds: float) -> Latencies:
        """What is known after one more sync."""
        return replace(self, syncs=(*self.syncs, seconds)[-RECENT_WRITES:])

    @property
    def reading(self) -> Reading:
        """The reading that is reported."""
        return self.counter.reading

    def after(self, sample: Sample, objectives: Objectives, now: datetime) -> Latencies:
        """What is known after one more sample."""
        limit = objectives.produce_milliseconds / 1000
        sample = sample.without_absence(limit)
        if sample.own_trouble:
            return self._troubled(sample, now)
        ok = sample.seconds <= limit and not sample.problem and not sample.stalled
        counter = self.counter.after(0.0 if ok else 1.0, sample.covers, now)
        known = counter.reading is Reading.PASSING
        ended = not sample.problem and not sample.stalled
        kind = "" if ok else "stalled" if sample.stalled else sample.problem or "slow"
        seen = (kind, self.kind_seen[1] + 1 if kind == self.kind_seen[0] else 1)
        # A write that hung is counted while it hangs, and is one write in the times.
        times = self.times[:-1] if self.kind_seen[0] == "stalled" else self.times
        return replace(
            self,
            counter=counter,
            times=self.times if sample.problem else (*times, sample.seconds)[-RECENT_WRITES:],
            fastest=min(sample.seconds, self.fastest or sample.seconds) if ended else self.fastest,
            baseline=self.baseline.after(sample.seconds) if ok and known else self.baseline,
            kind=self._settled(counter, seen),
            kind_seen=seen,
            trouble="",
            troubles=0,
        )

    def signal(self, broker: int, source: str, objectives: Objectives) -> Signal | None:
        """The signal to report; ``None`` while the directory has not been judged."""
        if self.counter.reading_since is None:
            return None
        failing_writes = self.reading is Reading.FAILING and self.kind not in ("", "slow", "stalled")
        taken = None
        if self.times and not failing_writes:
            # One slow write of many is no stall, and the cure is chosen by what writes take.
            taken = self.times[-1] if self._stall_limits_passed else median(self.times)
        return Signal(
            broker,
            SignalType.STORAGE_LATENCY,
            source,
            self.reading,
            self.counter.reading_since,
            latency_seconds=taken,
            message=self.message(objectives),
            usual_seconds=self.baseline.usual,
            value=self.sync_seconds,
            harm=self.counter.harm,
            metadata_log=self.metadata_log,
        )

    def message(self, objectives: Objectives) -> str:
        """One sentence for a person, with figures as they are now."""
        if self.reading is Reading.UNKNOWN:
            return f"the prober cannot measure: {self.trouble}" if self.trouble else ""
        if not self.times and not self.kind:
            return ""
        figures = ""
        if self.times:
            figures = f"median {milliseconds(median(self.times))}, last {milliseconds(self.times[-1])}"
        if self.reading is Reading.PASSING:
            syncs = f"; syncs take {milliseconds(self.sync_seconds)}" if self.sync_seconds is not None else ""
            return f"writes take {figures}{syncs}"
        lost, limit = lost_text(self.counter), objectives.produce_milliseconds
        if self.kind == self.kind_seen[0] == "stalled" and self.times[-1] >= 1:
            return f"{lost} (a write has not ended for {self.times[-1]:.0f} s)"
        if self.kind not in ("", "slow", "stalled"):
            return f"{lost} (writes fail: {self.kind})"
        said = f"{lost} (writes over {limit} ms: {figures})"
        if self.fastest is not None and self.fastest * 1000 > limit:
            said += (
                f"; no write has met the objective, the fastest took {milliseconds(self.fastest)}: check"
                " spec.detection.objectives.produceMilliseconds"
            )
        return said

    def differs(self, posted: Latencies | None, seconds_since: float) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or (self.kind, self.metadata_log) != (posted.kind, posted.metadata_log):
            return True
        if (self._slow_syncs, self._stall_limits_passed) != (posted._slow_syncs, posted._stall_limits_passed):
            return True
        return self.counter.differs(posted.counter, seconds_since)

    def _settled(self, counter: HarmCounter, seen: tuple[str, int]) -> str:
        """What is wrong changes with the reading, or when another thing has been wrong often enough."""
        if counter.reading is not Reading.FAILING:
            return ""
        kind, count = seen
        if not kind:
            return self.kind
        turned = self.reading is not Reading.FAILING
        return kind if turned or not self.kind or count >= _CONFIRMED else self.kind

    def _troubled(self, sample: Sample, now: datetime) -> Latencies:
        troubles = self.troubles + 1
        if troubles < _CONFIRMED:
            return replace(self, troubles=troubles, trouble=sample.problem)
        return Latencies(
            self.counter.unmeasured(now),
            fastest=self.fastest,
            baseline=self.baseline,
            kind="trouble",
            trouble=sample.problem,
            troubles=troubles,
            syncs=self.syncs,
            metadata_log=self.metadata_log,
        )
