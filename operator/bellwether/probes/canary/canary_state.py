"""What one vantage knows of one broker by its canary: latencies of produce and fetch, and what late ones cost clients.

In: slices of time, each with whether the last request of a kind was late. Out: a ``Signal`` with its harm and a message
for a person. Pure values. Called by ``canary_probe``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median

from bellwether.core.detection.harm import HarmCounter
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.ports.canary import FETCH, PRODUCE
from bellwether.probes.reachability.reachability_state import milliseconds
from bellwether.probes.result_window import lost_text

RECENT = 10
SETTINGS = {
    PRODUCE: "spec.detection.objectives.produceMilliseconds",
    FETCH: "spec.detection.objectives.fetchMilliseconds",
}


@dataclass(frozen=True, slots=True)
class RequestState:
    """Requests of one kind. ``problem`` is what the last one failed with, empty if it was answered.

    ``fastest`` is the fastest answer in seconds, ``trouble`` is why such requests cannot be measured.
    """

    kind: str
    counter: HarmCounter = field(default_factory=HarmCounter)
    times: tuple[float, ...] = ()
    fastest: float | None = None
    problem: str = ""
    trouble: str = ""

    def answered(self, latency: float, late: bool, seconds: float, now: datetime) -> RequestState:
        """After an answer, which covers the ``seconds`` before it."""
        counter = self.counter.after(1.0 if late else 0.0, seconds, now)
        fastest, times = min(latency, self.fastest or latency), (*self.times, latency)[-RECENT:]
        return replace(self, counter=counter, times=times, fastest=fastest, problem="", trouble="")

    def failed(self, problem: str, seconds: float, now: datetime) -> RequestState:
        """After a failure, or while a request is late."""
        return replace(self, counter=self.counter.after(1.0, seconds, now), problem=problem, trouble="")

    def unmeasured(self, trouble: str, now: datetime) -> RequestState:
        """Such requests cannot be measured."""
        return RequestState(self.kind, self.counter.unmeasured(now), fastest=self.fastest, trouble=trouble)

    def differs(self, posted: RequestState, seconds_since: float) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        return self.trouble != posted.trouble or self.counter.differs(posted.counter, seconds_since)

    def message(self, objectives: Objectives) -> str:
        """A clause for a person; empty while there is nothing to say."""
        if self.trouble:
            return f"{self.kind} is not measured: {self.trouble}"
        if self.problem and self.counter.reading is Reading.FAILING:
            return f"{self.kind} fails: {self.problem}"
        if not self.times:
            return f"{self.kind} was not measured yet"
        text, limit = f"{self.kind} takes {milliseconds(median(self.times))}", objective(self.kind, objectives)
        if self.counter.reading is not Reading.FAILING:
            return text
        text += f", {round(self.counter.share * 100)} % over {milliseconds(limit)}"
        if self.fastest is not None and self.fastest > limit:
            text += f" and none faster than {milliseconds(self.fastest)}: check {SETTINGS[self.kind]}"
        return text


@dataclass(frozen=True, slots=True)
class CanaryState:
    """One broker from one vantage. ``trouble`` is why nothing can be measured."""

    produce: RequestState = field(default_factory=lambda: RequestState(PRODUCE))
    fetch: RequestState = field(default_factory=lambda: RequestState(FETCH))
    trouble: str = ""

    def of(self, kind: str) -> RequestState:
        """Requests of one kind."""
        return self.produce if kind == PRODUCE else self.fetch

    def with_requests(self, requests: RequestState) -> CanaryState:
        """The state with new knowledge of one kind."""
        return replace(self, trouble="", **{requests.kind: requests})

    def unmeasured(self, trouble: str, now: datetime) -> CanaryState:
        """Nothing can be measured."""
        return CanaryState(self.produce.unmeasured("", now), self.fetch.unmeasured("", now), trouble)

    @property
    def worse(self) -> RequestState:
        """The kind of request by which clients lost more; produce if neither lost anything."""
        failing = [r for r in (self.produce, self.fetch) if r.counter.reading is Reading.FAILING]
        return max(failing or [self.produce, self.fetch], key=lambda r: r.counter.lost_seconds)

    @property
    def reading(self) -> Reading:
        """Failing if either kind fails, Passing if produce passes and fetch does not fail."""
        if Reading.FAILING in (self.produce.counter.reading, self.fetch.counter.reading):
            return Reading.FAILING
        return self.produce.counter.reading

    def signal(self, broker: int, source: str, objectives: Objectives) -> Signal | None:
        """The signal to report; None while nothing has been judged."""
        worse = self.worse
        decisive = worse if self.reading is Reading.FAILING else self.produce
        if decisive.counter.reading_since is None:
            return None
        return Signal(
            broker,
            SignalType.CANARY,
            source,
            self.reading,
            decisive.counter.reading_since,
            latency_seconds=median(worse.times) if worse.times else None,
            message=self.message(objectives),
            harm=worse.counter.harm,
        )

    def message(self, objectives: Objectives) -> str:
        """One sentence for a person, with figures as they are now."""
        if self.trouble:
            return f"not measured: {self.trouble}"
        said = f"{self.produce.message(objectives)}; {self.fetch.message(objectives)}"
        return f"{lost_text(self.worse.counter)} ({said})" if self.reading is Reading.FAILING else said

    def differs(self, posted: CanaryState | None, seconds_since: float) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or self.trouble != posted.trouble:
            return True
        return any(self.of(kind).differs(posted.of(kind), seconds_since) for kind in (PRODUCE, FETCH))


def late(kind: str, seconds: float, objectives: Objectives) -> bool:
    """Whether a request that has taken so long misses its objective."""
    return seconds > objective(kind, objectives)


def objective(kind: str, objectives: Objectives) -> float:
    """Seconds up to which a request of a kind is good."""
    return (objectives.produce_milliseconds if kind == PRODUCE else objectives.fetch_milliseconds) / 1000
