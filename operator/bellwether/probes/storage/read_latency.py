"""Read latency of a log directory over time, and what its late reads cost clients.

In: samples (one for each read: how long it took, or what went wrong) and the fetch objective. Out: a ``Signal`` with
its harm and a message for a person. Pure values. Called by ``read_probe``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median

from bellwether.core.detection.harm import HarmCounter
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.reachability.reachability_state import milliseconds
from bellwether.probes.result_window import lost_text
from bellwether.probes.storage.write_latency import STARVED, Sample

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
