"""Reachability state of a broker's external listener from one vantage, updated round by round.

In: rounds (the external address asked, and the internal listener as the control), each for as many seconds as it
represents. Out: a ``Signal`` with its harm and a message, and whether it is news; of several listeners one signal, with
the worst of them, that names those that do not pass. Called by ``broker_watch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.detection.harm import HarmCounter
from bellwether.core.settings.detection import Reachability
from bellwether.core.settings.harm import REPORTED_FROM_SECONDS
from bellwether.core.signals import ListenerReading, Reading, Signal, SignalType, UnreachableCause
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.result_window import lost_text


@dataclass(frozen=True, slots=True)
class ProbeRound:
    """One question over each path. A path that was not asked (no address known) is ``None``.

    ``trouble`` is a local problem (no file descriptor, no certificate): such a round is no evidence about the broker.
    Neither is one that was ``unasked``, as the listener's address is not known: why. ``elsewhere``: another external
    listener of the broker answered in time. ``slow``: the broker answered far more slowly than its peers, so the
    external request was of a client's size.
    """

    address: str = ""
    external: ProbeAnswer | None = None
    internal: ProbeAnswer | None = None
    trouble: str = ""
    unasked: str = ""
    elsewhere: bool = False
    slow: bool = False


# Another kind of problem is reported after this many rounds in a row; so is the prober's own trouble.
_CONFIRMED = 3


_LATE = {None, UnreachableCause.NO_ANSWER, UnreachableCause.TLS_SILENT}
"""What a request of a client's size breaks at where the path has too little bandwidth; a refusal is another cause."""


@dataclass(frozen=True, slots=True)
class ReachabilityState:
    """One listener of a broker as seen from one vantage up to now."""

    external: HarmCounter = field(default_factory=HarmCounter)
    control: HarmCounter = field(default_factory=HarmCounter)
    both: HarmCounter = field(default_factory=HarmCounter)
    """What was lost while neither listener answered, or both late: a process that freezes keeps all requests waiting.
    By the external one alone where the other is not known.
    """
    frozen_seconds: float = 0.0
    """What of that was lost in gaps that are over."""
    last: ProbeRound = field(default_factory=ProbeRound)
    kind: str = ""
    """The class of what is being seen, without counts and latencies, once seen often enough to be reported."""
    kind_seen: tuple[str, int] = ("", 0)
    troubles: int = 0
    cause: UnreachableCause | None = None
    """What failed requests break at, since the last good one; another cause counts once it is confirmed."""

    def after(self, seen: ProbeRound, now: datetime, seconds: float = Reachability.period_seconds) -> ReachabilityState:
        """The sighting after one more round, which represents so many seconds."""
        if seen.trouble or seen.unasked:
            return self._unmeasured(seen, now)
        external, control = self.external, self.control
        if seen.external is not None:
            external = external.after(0.0 if seen.external.ok else 1.0, seconds, now)
        if seen.internal is not None:
            control = control.after(0.0 if seen.internal.ok else 1.0, seconds, now)
        both, frozen = self.both, self.frozen_seconds
        if seen.external is not None:
            answered = seen.elsewhere or any(a is not None and in_time(a) for a in (seen.external, seen.internal))
            both = both.after(0.0 if answered else 1.0, seconds, now)
            frozen = both.lost_seconds if answered else frozen
        kind = _kind(seen)
        count = self.kind_seen[1] + 1 if kind == self.kind_seen[0] else 1
        settled = kind if count >= _CONFIRMED or not self.kind else self.kind
        cause = self.cause
        if seen.external is not None and (seen.external.ok or cause is None or count >= _CONFIRMED):
            late = seen.external.ok or seen.external.cause in _LATE
            cause = UnreachableCause.SLOW if seen.slow and late else seen.external.cause
        return ReachabilityState(external, control, both, frozen, seen, settled, (kind, count), cause=cause)

    def signal(self, broker: int, source: str) -> Signal | None:
        """The signal to report; ``None`` while the broker has not been judged."""
        if self.external.reading_since is None:
            return None
        answer = self.last.external
        passing, harm = self.external.reading is Reading.PASSING, self.external.harm
        return Signal(
            broker,
            SignalType.EXTERNAL_REACHABILITY,
            source,
            self.external.reading,
            self.external.reading_since,
            control=self.control.reading,
            latency_seconds=answer.seconds if passing and answer is not None and answer.ok else None,
            message=self.message(),
            harm=replace(harm, frozen_seconds=round(self.frozen_seconds, 1)) if harm is not None else None,
            cause=self.cause if self.external.reading is Reading.FAILING or self.last.slow else None,
        )

    @property
    def failing(self) -> bool:
        """Whether the last question was not answered: reason enough to ask again soon."""
        return self.last.external is not None and not self.last.external.ok

    def differs(self, posted: ReachabilityState | None, seconds_since: float) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or (self.control.reading, self.kind) != (posted.control.reading, posted.kind):
            return True
        # Else the gap of a restart would be reported for as long as nothing else is news.
        if self.frozen_seconds < REPORTED_FROM_SECONDS <= posted.frozen_seconds:
            return True
        return self.external.differs(posted.external, seconds_since)

    def message(self) -> str:
        """One sentence for a person, with counts and latencies as they are now."""
        return "; ".join(text for text in (self.outside(), self.inside()) if text)

    def outside(self) -> str:
        """What is seen of the external listener."""
        if self.last.trouble:
            return f"this vantage cannot measure: {self.last.trouble}"
        answer = self.last.external
        if answer is None:
            return f"not probed: {self.last.unasked or 'no external address is known'}"
        if self.external.reading is Reading.FAILING:
            what = answer.message if not answer.ok else f"{self.last.address} answers at times"
            return f"{lost_text(self.external)} ({what})"
        if not answer.ok or answer.weaker:
            return answer.message
        if self.last.slow:
            return f"{self.last.address} answers in {milliseconds(answer.seconds)}, its peers many times faster"
        return f"{self.last.address} answers"

    def inside(self) -> str:
        """What is seen of the internal listener; empty where it was not probed."""
        answer = self.last.internal
        if answer is None or self.last.trouble:
            return ""
        if answer.ok:
            return f"internal listener answers in {milliseconds(answer.seconds)}"
        return f"internal listener: {answer.message}"

    def _unmeasured(self, seen: ProbeRound, now: datetime) -> ReachabilityState:
        """What was not asked is no evidence; when that lasts, what was known before is no longer known, either."""
        troubles = self.troubles + 1
        if troubles < _CONFIRMED:
            return replace(self, troubles=troubles)
        kind = "trouble" if seen.trouble else "unasked"
        external = self.external.unmeasured(now)
        return ReachabilityState(external, last=seen, kind=kind, kind_seen=(kind, troubles), troubles=troubles)


def in_time(answer: ProbeAnswer) -> bool:
    """Whether it is an answer, and not one that something has kept waiting."""
    return answer.ok and answer.seconds <= Reachability.late_after_seconds


def milliseconds(seconds: float) -> str:
    """A latency for people: two significant digits below 10 ms, whole milliseconds above."""
    value = seconds * 1000
    return f"{value:.1f} ms" if value < 9.95 else f"{value:.0f} ms"


def _kind(seen: ProbeRound) -> str:
    slow = " slow" if seen.slow else ""
    outside = "" if seen.external is None else f"{seen.address} {_path_kind(seen.external)}{slow}"
    inside = "" if seen.internal is None else _path_kind(seen.internal)
    return f"{outside} | {inside}"


def _path_kind(answer: ProbeAnswer) -> str:
    if answer.ok:
        return "weaker" if answer.weaker else "ok"
    return str(answer.cause or answer.stage)


_BADNESS = {Reading.UNKNOWN: 0, Reading.PASSING: 1, Reading.FAILING: 2}
"""Whether a broker is reached is known where one listener is measured."""


def signal_of(states: Mapping[str, ReachabilityState], broker: int, source: str) -> Signal | None:
    """The signal to report; ``None`` while no listener has been judged. One listener's is that of its state."""
    if len(states) == 1:
        return next(iter(states.values())).signal(broker, source)
    said = {name: signal for name, state in states.items() if (signal := state.signal(broker, source)) is not None}
    if not said:
        return None
    worst = max(said, key=lambda name: (_BADNESS[said[name].reading], _lost(said[name]), said[name].cause is not None))
    found = said[worst]
    alike = [signal.since for signal in said.values() if signal.reading is found.reading]
    # The broker fails since its first listener did, and passes since its last one does.
    since = max(alike) if found.reading is Reading.PASSING else min(alike)
    return replace(found, since=since, message=_message(states, said, worst), listeners=_apart(states, said))


def differ(
    states: Mapping[str, ReachabilityState], posted: Mapping[str, ReachabilityState] | None, seconds_since: float
) -> bool:
    """Whether these states differ enough from ``posted``, which were posted so many seconds ago."""
    if posted is None or states.keys() != posted.keys():
        return True
    return any(state.differs(posted[name], seconds_since) for name, state in states.items())


def _apart(states: Mapping[str, ReachabilityState], said: Mapping[str, Signal]) -> tuple[ListenerReading, ...]:
    found = []
    for name in states:
        signal = said.get(name)
        if signal is None or signal.reading is Reading.UNKNOWN:
            found.append(ListenerReading(name, Reading.UNKNOWN))
        elif signal.reading is Reading.FAILING:
            found.append(ListenerReading(name, signal.reading, signal.harm, signal.cause))
        elif signal.cause is not None:
            found.append(ListenerReading(name, signal.reading, cause=signal.cause))
    return tuple(found)


def _message(states: Mapping[str, ReachabilityState], said: Mapping[str, Signal], worst: str) -> str:
    """Each listener in a few words, the worst ones first."""
    names = sorted(states, key=lambda name: (name != worst, -_BADNESS[said[name].reading] if name in said else 0))
    parts = [f"{name}: {states[name].outside()}" for name in names]
    return "; ".join(part for part in (*parts, states[worst].inside()) if part)


def _lost(signal: Signal) -> float:
    return signal.harm.lost_seconds if signal.harm is not None else 0.0
