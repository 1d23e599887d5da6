"""What a vantage's rounds find on one broker's paths, counted by the prober's own code.

In: the effects on both paths of one broker from one vantage. Out: the news that the prober would post, with their
times. Rounds in which nothing can change are skipped: a sighting that has seen the same for long posts no news.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bellwether.core.settings.detection import Reachability
from bellwether.core.settings.harm import ALLOWANCE, REPORTED_FROM_SECONDS, RETRY_SHARE
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.reachability.reachability_state import ProbeRound, ReachabilityState
from bellwether.probes.result_window import Streak
from monthsim.episodes import Path, PathEffect

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
RETRY_SECONDS = 1.0
"""Linux sends a lost SYN again after one second."""
_ADDRESS = "broker:9094"
_ROUNDING = 1e-6
_BEFORE, _AFTER = 3.0, 15.0
_FADING = 7, 10.0
"""Slices, and their seconds, in which the harm of a stretch fades before the next one; the rest is one slice."""


def at(seconds: float) -> datetime:
    """A time of the simulated month."""
    return EPOCH + timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class News:
    """A word that a prober posts, and when."""

    time: float
    signal: Signal


def fails_by_loss(share: float) -> float:
    """The chance that a question fails when so many packets are lost, in one direction as is usual.

    Two SYNs fit into a round of two seconds; each of the four exchanges that follow (TLS, SASL, the request) is sent
    at most four times within what is left.
    """
    return 1 - (1 - share**2) * (1 - share**4) ** 4


@dataclass(frozen=True, slots=True)
class Question:
    """One path: how long an answer takes when all is well, and what happens to it."""

    seconds: float
    effects: tuple[PathEffect, ...]

    def within(self, start: float, end: float) -> Question:
        """The same path with what happens to it in that stretch."""
        return Question(self.seconds, tuple(e for e in self.effects if e.start < end and start < e.end))

    def loses(self, time: float, luck: float) -> bool:
        """Whether packet loss makes a question that is asked at ``time`` fail, by a draw between 0 and 1."""
        return any(
            luck < fails_by_loss(e.level) for e in self.effects if e.what is Path.LOSSY and e.start <= time < e.end
        )

    def worst_loss(self) -> float:
        """The highest chance of a question to fail by loss."""
        return max((fails_by_loss(e.level) for e in self.effects if e.what is Path.LOSSY), default=0.0)

    def ask(self, time: float, timeout: float, *, lost: bool = False) -> tuple[ProbeAnswer, float]:
        """The answer to a question asked at ``time``, and when it is known."""
        known = time + (timeout if lost else self.seconds)
        for effect in self.effects:
            if not effect.start <= time < effect.end:
                continue
            if effect.what is Path.REFUSED:
                return _REFUSED, time + _REFUSED.seconds
            if effect.what is Path.FROZEN:
                known = max(known, effect.end + self.seconds)
            elif effect.what is Path.DROPPED and effect.end <= time + RETRY_SECONDS < time + timeout:
                again, then = self.ask(time + RETRY_SECONDS, timeout - RETRY_SECONDS)
                if not again.ok:
                    return again, then
                known = max(known, then)
            elif effect.what is Path.DROPPED:
                known = time + timeout
        if known - time >= timeout - _ROUNDING:
            return ProbeAnswer(False, timeout, "Connect", "no answer"), time + timeout
        return ProbeAnswer(True, known - time), known


_REFUSED = ProbeAnswer(False, 0.005, "Connect", "refused")
_LATE = ProbeAnswer(False, Reachability.late_after_seconds, "Connect", "no answer")


class UnderWay(NamedTuple):
    """A round that has begun: when it will be known, is late, and each of its two answers comes; what it will show."""

    known: float
    late: float
    first: float
    second: float
    seen: ProbeRound
    stands_for: float


def steady() -> ReachabilityState:
    """A broker that has long been well."""
    state = ReachabilityState()
    for n in range(10):
        state = state.after(ProbeRound(_ADDRESS, ProbeAnswer(True, 0.02), ProbeAnswer(True, 0.004)), at(n - 1000.0))
    return state


def watch(
    broker: int,
    vantage: int,
    phase: float,
    external: Question,
    internal: Question,
    settings: Reachability,
    rng: Generator,
) -> list[News]:
    """The news of one vantage on one broker, counted as the prober counts them."""
    state = posted = steady()
    news, posted_at = [], -1000.0
    seen_until = 0.0
    for start, end in _windows((*external.effects, *internal.effects)):
        outside, inside = external.within(start, end), internal.within(start, end)
        luck = rng.random((2, 2 * math.ceil((end - start) / settings.period_seconds) + 4))
        if _harmless(outside, inside) and not any(
            _largest_harm(draws < q.worst_loss()) >= REPORTED_FROM_SECONDS
            for draws, q in zip(luck, (outside, inside), strict=True)
        ):
            continue
        for until, seconds in _passed_over(seen_until, start):
            # No effect begins or ends here, so one answer represents all.
            answer, control = (q.ask(until - seconds / 2, settings.timeout_seconds)[0] for q in (external, internal))
            state = state.after(ProbeRound(_ADDRESS, answer, control), at(until), seconds)
            if state.differs(posted, until - posted_at):
                posted, posted_at = state, until
                news += _news(state, broker, vantage, until)
        seen_until = end
        pace = Pace(start // settings.period_seconds * settings.period_seconds + phase, settings.period_seconds)
        timeout, number = float(settings.timeout_seconds), 0
        under_way: deque[UnderWay] = deque()
        expected, late_until = state, start
        while under_way or pace.due < end:
            late = next(
                (r.late for r in under_way if late_until < r.late < min(r.known, pace.due, under_way[0].known)), None
            )
            if late is not None:
                late_until = late
                expected = _if_they_time_out(state, under_way, late)
                pace.counted(expected.failing, late)
                if expected.differs(posted, late - posted_at):
                    posted, posted_at = expected, late
                    news += _news(expected, broker, vantage, late)
                continue
            if pace.due < end and (not under_way or pace.due < under_way[0].known):
                time, stands_for = pace.begin(expected.failing)
                out_lost, in_lost = (
                    q.loses(time, float(draws[min(number, len(draws) - 1)]))
                    for q, draws in zip((outside, inside), luck, strict=True)
                )
                answer, first = outside.ask(time, timeout, lost=out_lost)
                control, second = inside.ask(time, timeout, lost=in_lost)
                # Rounds are counted in the order in which they were begun.
                known = max(first, second, under_way[-1].known if under_way else 0.0)
                late = time + settings.late_after_seconds
                under_way.append(
                    UnderWay(known, late, first, second, ProbeRound(_ADDRESS, answer, control), stands_for)
                )
                number += 1
                continue
            known, seen, stands_for = under_way[0].known, under_way[0].seen, under_way.popleft().stands_for
            state = expected = state.after(seen, at(known), stands_for)
            if under_way and under_way[0].late <= known:
                expected = _if_they_time_out(state, under_way, known)
            pace.counted(expected.failing, known)
            seen_until = max(seen_until, known)
            if expected.differs(posted, known - posted_at):
                posted, posted_at = expected, known
                news += _news(expected, broker, vantage, known)
    return news


def _if_they_time_out(state: ReachabilityState, under_way: Iterable[UnderWay], now: float) -> ReachabilityState:
    """What is expected of the rounds that are late by now, as ``probes.reachability.broker_watch`` does it."""
    for one in under_way:
        if now < one.late or (one.first <= now and one.seen.external is not None and one.seen.external.ok):
            break
        external, internal = (
            answer if ended <= now else _LATE
            for answer, ended in ((one.seen.external, one.first), (one.seen.internal, one.second))
        )
        state = state.after(ProbeRound(_ADDRESS, external, internal), at(now), one.stands_for)
    return state


def _news(state: ReachabilityState, broker: int, vantage: int, time: float) -> list[News]:
    signal = state.signal(broker, f"v{vantage}")
    return [] if signal is None else [News(time, signal)]


def _passed_over(start: float, end: float) -> Iterator[tuple[float, float]]:
    """Ends and lengths of the slices between two windows."""
    count, seconds = _FADING
    for _ in range(count):
        if start + seconds < end:
            start += seconds
            yield start, seconds
    if end > start:
        yield end, end - start


@dataclass(slots=True)
class Pace:
    """When the next round is begun: as ``probes.reachability.broker_watch`` does it, sooner while the broker fails."""

    due: float
    period: float
    begun: float = 0.0

    def begin(self, failing: bool) -> tuple[float, float]:
        """Begin a round now, at the time that it is due; that time, and the seconds that the round represents."""
        stands_for = min(self.due - self.begun, self.period)
        self.begun = self.due
        self.due += self._seconds(failing)
        return self.begun, stands_for

    def counted(self, failing: bool, now: float) -> None:
        """A round has been counted: one that fails brings the next one nearer."""
        self.due = min(self.due, max(self.begun + self._seconds(failing), now))

    def _seconds(self, failing: bool) -> float:
        return self.period * (RETRY_SHARE if failing else 1.0)


@dataclass(frozen=True, slots=True)
class InARow:
    """Thresholds of a plain probe."""

    failure_threshold: int
    success_threshold: int


def plain(
    broker: int, vantage: int, phase: float, external: Question, rng: Generator, *, in_a_row: int = 3
) -> list[News]:
    """What a plain probe makes of the same path: a round a second, so many failures or answers in a row."""
    streak = Streak(Reading.PASSING, EPOCH)
    counting = InARow(in_a_row, in_a_row)
    news, known = [], 0.0
    for start, end in _windows(external.effects):
        outside = external.within(start, end)
        times = np.arange(math.floor(start) + phase, end)
        luck = rng.random(len(times))
        if _harmless(outside) and _longest_run(luck < outside.worst_loss()) < in_a_row:
            continue
        for time, draw in zip(times.tolist(), luck.tolist(), strict=True):
            answer, first = outside.ask(time, 2.0, lost=outside.loses(time, draw))
            known = max(known, first)
            seen = streak.seen(answer.ok, at(known), counting)
            if seen.reading is not streak.reading:
                signal = Signal(broker, SignalType.EXTERNAL_REACHABILITY, f"v{vantage}", seen.reading, at(known))
                news.append(News(known, signal))
            streak = seen
    return news


def _harmless(*questions: Question) -> bool:
    """Whether packets are lost here and nothing else happens."""
    return all(e.what is Path.LOSSY for q in questions for e in q.effects)


def _largest_harm(lost: NDArray[np.bool_]) -> float:
    """The most that a counter could hold, if every round was for a whole second."""
    largest = harm = 0.0
    for one in lost.tolist():
        harm = max(0.0, harm + (1.0 if one else 0.0) - ALLOWANCE)
        largest = max(largest, harm)
    return largest


def _longest_run(lost: NDArray[np.bool_]) -> int:
    longest = run = 0
    for one in lost.tolist():
        run = run + 1 if one else 0
        longest = max(longest, run)
    return longest


def _windows(effects: Iterable[PathEffect]) -> list[tuple[float, float]]:
    """The stretches in which outcomes may change, merged."""
    spans = []
    for effect in effects:
        if effect.what is Path.LOSSY:
            spans.append((effect.start - _BEFORE, effect.end + _AFTER))
        else:
            spans += [(edge - _BEFORE, edge + _AFTER) for edge in (effect.start, effect.end)]
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
