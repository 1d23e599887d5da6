"""One month lived again, to see why a broker was demoted in it: for changes of a rule."""

from __future__ import annotations

from collections.abc import Iterator

from monthsim.assumptions import Assumptions, FaultRates
from monthsim.episodes import FAULTS, Month
from monthsim.months import look, operate, our_policy
from monthsim.scoring import FalseDemotion, score
from monthsim.worlds import drawn

_BEFORE_SECONDS = 90.0


def tell(seed: tuple[int, ...]) -> Iterator[str]:
    """Every false demotion of the month of that seed, with what led to it."""
    month, rng = drawn(seed[1], seed, Assumptions(), FaultRates())
    policy = our_policy()
    seen = look(month, policy.detection, rng)
    ours = operate(month, seen, policy)
    false = score(month, ours.demotions).false
    yield f"{month.brokers} brokers, {len(month.episodes)} episodes"
    yield f"{len(ours.demotions)} demotions, {len(false)} of them false"
    for one in false:
        yield f"{one.time:.2f} broker {one.broker} demoted: {one.reason}: {one.message}"
        yield from _around(month, one)
        for news in seen.news:
            if one.time - _BEFORE_SECONDS <= news.time <= one.time:
                word = news.signal
                latency = "" if word.latency_seconds is None else f" {word.latency_seconds * 1000:.1f} ms"
                yield (
                    f"    {news.time - one.time:+7.2f} broker {word.broker} {word.source}: {word.reading}"
                    f" (control {word.control}){latency}; {word.message}"
                )


def _around(month: Month, one: FalseDemotion) -> Iterator[str]:
    for episode in month.episodes:
        if episode.start <= one.time <= episode.end + _BEFORE_SECONDS:
            fault = " (a fault)" if episode.kind in FAULTS else ""
            begun, long = one.time - episode.start, episode.end - episode.start
            there = ",".join(map(str, episode.brokers))
            yield f"  {episode.kind}{fault} on {there}: begun {begun:.1f} s before, {long:.1f} s long"
