"""What a vantage's rounds find on one broker's paths, counted by the prober's own code.

In: the effects on both paths of one broker from one vantage. Out: the news that the prober would post, with their
times. Rounds in which nothing can change are passed over: a sighting that has seen the same for long posts no news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bellwether.core.detection import Reachability
from bellwether.core.signals import Signal
from bellwether.probes.sightings import Round, Sighting
from monthsim.episodes import Path, PathEffect

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
RETRY_SECONDS = 1.0
"""Linux sends a lost SYN again after one second."""
_ADDRESS = "broker:9094"
_BEFORE, _AFTER = 3.0, 7.0


def at(seconds: float) -> datetime:
    """A time of the simulated month."""
    return EPOCH + timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True)
class Found:
    """How one question went (``probes.sightings.Answer``)."""

    ok: bool
    seconds: float
    stage: str = ""
    message: str = ""
    advertised: Mapping[str, str] = field(default_factory=dict)
    weaker: bool = False


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
    """One path: how long an answer takes when all is well, and what befalls it."""

    seconds: float
    effects: tuple[PathEffect, ...]

    def within(self, start: float, end: float) -> Question:
        """The same path with what befalls it in that stretch."""
        return Question(self.seconds, tuple(e for e in self.effects if e.start < end and start < e.end))

    def lost(self, times: NDArray[np.float64], rng: Generator) -> NDArray[np.bool_]:
        """Which of the questions asked at these times packet loss makes fail."""
        lost = np.zeros(len(times), dtype=bool)
        for effect in self.effects:
            if effect.what is Path.LOSSY:
                meets = (effect.start <= times) & (times < effect.end)
                lost |= meets & (rng.random(len(times)) < fails_by_loss(effect.level))
        return lost

    def ask(self, time: float, timeout: float, *, lost: bool = False) -> tuple[Found, float]:
        """The answer to a question asked at ``time``, and when it is known."""
        known = time + (timeout if lost else self.seconds)
        for effect in self.effects:
            if not effect.start <= time < effect.end:
                continue
            if effect.what is Path.REFUSED:
                return _REFUSED, time + _REFUSED.seconds
            if effect.what is Path.FROZEN:
                known = max(known, effect.end + self.seconds)
            elif effect.what is Path.DROPPED:
                retried = effect.end <= time + RETRY_SECONDS
                known = max(known, time + (RETRY_SECONDS + self.seconds if retried else timeout))
        if known - time >= timeout:
            return Found(False, timeout, "Connect", "no answer"), time + timeout
        return Found(True, known - time), known


_REFUSED = Found(False, 0.005, "Connect", "refused")


def steady(settings: Reachability) -> Sighting:
    """A broker that has long been well."""
    sighting = Sighting()
    for n in range(10):
        sighting = sighting.after(Round(_ADDRESS, Found(True, 0.02), Found(True, 0.004)), settings, at(n - 1000.0))
    return sighting


def watch(
    broker: int,
    vantage: int,
    phase: float,
    external: Question,
    internal: Question,
    settings: Reachability,
    rng: Generator,
) -> list[News]:
    """The news of one vantage on one broker."""
    sighting = steady(settings)
    told, known, news = sighting.news(), 0.0, []
    period, timeout = settings.period_seconds, float(settings.timeout_seconds)
    for start, end in _windows((*external.effects, *internal.effects)):
        outside, inside = external.within(start, end), internal.within(start, end)
        times = np.arange(start // period * period + phase, end, period)
        lost = outside.lost(times, rng), inside.lost(times, rng)
        if _harmless(outside, inside) and not any(_longest_run(x) >= settings.failure_threshold for x in lost):
            continue
        for time, out_lost, in_lost in zip(times.tolist(), lost[0].tolist(), lost[1].tolist(), strict=True):
            answer, first = outside.ask(time, timeout, lost=out_lost)
            control, second = inside.ask(time, timeout, lost=in_lost)
            # Rounds are counted in the order in which they were begun.
            known = max(known, first, second)
            sighting = sighting.after(Round(_ADDRESS, answer, control), settings, at(known))
            if sighting.news() != told:
                told = sighting.news()
                word = sighting.word(broker, f"v{vantage}")
                if word is not None:
                    news.append(News(known, word))
    return news


def _harmless(*questions: Question) -> bool:
    """Whether packets are lost here and nothing else happens."""
    return all(e.what is Path.LOSSY for q in questions for e in q.effects)


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
