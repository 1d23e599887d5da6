"""The peers' published rules on the same world: what each would have demoted.

In: a month's news and writes. Out: demotions by rule set. Where a choice was open it was made in the rule's favour: its
history is perfectly known and never spoilt, a write that hangs shows its age, and a broker that it demotes is left
alone until it has been well for a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bellwether.core.signals import Reading, SignalType
from monthsim.episodes import Disk, DiskEffect, Month
from monthsim.paths import News
from monthsim.reconciles import Demotion
from monthsim.scoring import STORAGE

Writes = Mapping[int, Sequence[tuple[float, float]]]

WELL_SECONDS = 60.0
SCORE = 5
"""Cruise Control's SlowBrokerFinder: a point a round, demoted at five."""
HISTORY_RATIO = PEER_RATIO = 3.0
ABSOLUTE_SECONDS = 1.0
ROUND_SECONDS = 300.0
UNFIXABLE_SHARE = 0.1
_P90 = NormalDist().inv_cdf(0.9)
_P999 = NormalDist().inv_cdf(0.999)
_P90_OF_PEAKS = NormalDist().inv_cdf(0.9 ** (1 / ROUND_SECONDS))


def single_probe(news: Sequence[News]) -> list[Demotion]:
    """One vantage, three failures in a row."""
    return _by_readings(news, lambda failing: "v0" in failing)


def k_of_n(news: Sequence[News]) -> list[Demotion]:
    """Two of three vantages, or five of ten slow writes: no control, no peers, no cap, no dwell."""
    return _by_readings(
        news, lambda failing: sum(s.startswith("v") for s in failing) >= 2 or any(s.startswith("b") for s in failing)
    )


def _by_readings(news: Sequence[News], sick: Callable[[set[str]], bool]) -> list[Demotion]:
    failing: dict[int, set[str]] = {}
    well_since: dict[int, float] = {}
    demoted: set[int] = set()
    found = []
    for one in sorted(news, key=lambda n: n.time):
        broker, sources = one.signal.broker, failing.setdefault(one.signal.broker, set())
        was = sick(sources)
        (sources.add if one.signal.reading is Reading.FAILING else sources.discard)(one.signal.source)
        now = sick(sources)
        if was and not now:
            well_since[broker] = one.time
        if now and not was:
            if broker in demoted and one.time - well_since[broker] >= WELL_SECONDS:
                demoted.discard(broker)
            if broker not in demoted:
                demoted.add(broker)
                reason = STORAGE if one.signal.type == SignalType.STORAGE_LATENCY else "Unreachable"
                found.append(Demotion(one.time, broker, reason))
    return found


@dataclass(frozen=True, slots=True)
class Seconds:
    """Latencies second by second over the stretches in which any disk is touched: a row for each broker."""

    times: NDArray[np.float64]
    latencies: NDArray[np.float64]
    flushes: NDArray[np.float64]
    """What a flush of the log takes: at least what a write takes, and a sync where syncs are slow."""
    bytes_factor: NDArray[np.float64]


def seconds_of(month: Month, writes: Writes, rng: Generator) -> list[Seconds]:
    """One ``Seconds`` for each stretch of writes that hang together in time."""
    spans: list[list[float]] = []
    touched = {b: np.array(begun, dtype=float).reshape(-1, 2) for b, begun in writes.items() if begun}
    for begun in touched.values():
        spans += _runs(begun[:, 0], begun[:, 1])
    merged: list[list[float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + 5.0:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    return [_seconds(month, touched, start, end, rng) for start, end in merged]


def _runs(times: NDArray[np.float64], took: NDArray[np.float64]) -> list[list[float]]:
    """First and last times of writes that follow each other; a write that hangs is looked at for a minute."""
    breaks = np.flatnonzero(np.diff(times) > 30.0)
    firsts, lasts = np.concatenate(([0], breaks + 1)), np.concatenate((breaks, [len(times) - 1]))
    return [[float(times[a]), float(times[b] + min(60.0, took[b]))] for a, b in zip(firsts, lasts, strict=True)]


def _seconds(
    month: Month, touched: Mapping[int, NDArray[np.float64]], start: float, end: float, rng: Generator
) -> Seconds:
    times = np.arange(math.floor(start) + 1.0, math.ceil(end) + 2.0)
    usual = np.array(month.usual_seconds)[:, None]
    latencies = usual * np.exp(month.world.disk_sigma * rng.standard_normal((month.brokers, len(times))))
    for broker, begun in touched.items():
        began, took = begun[:, 0], begun[:, 1]
        first, beyond = np.searchsorted(began, [start - 1.0, end + 1.0])
        if first == beyond:
            continue
        last = np.clip(np.searchsorted(began, times - 1.0, side="right") - 1, 0, None)
        known = (began[last] < times) & (times - began[last] < took[last] + 3.0)
        shown = np.minimum(took[last], times - began[last])
        latencies[broker] = np.where(known, shown, latencies[broker])
    factor, flushes = np.ones(len(times)), latencies.copy()
    for episode in month.episodes:
        for effect in episode.disks:
            within = (times >= effect.start) & (times < effect.end)
            if effect.what is Disk.SYNCS and within.any():
                for broker, level in zip(effect.brokers, effect.levels, strict=True):
                    flushes[broker, within] = np.maximum(flushes[broker, within], level)
        if episode.bytes_factor > 1.0:
            factor[(times >= episode.start) & (times < episode.end)] *= episode.bytes_factor
    return Seconds(times, latencies, flushes, factor)


Test = NDArray[np.bool_]


def second_by_second(month: Month, stretches: Sequence[Seconds]) -> dict[str, list[Demotion]]:
    """The storage rules with a round each second."""
    found: dict[str, list[Demotion]] = {name: [] for name in ("own history", "peers", "absolute", "all three")}
    usual = np.array(month.usual_seconds)[:, None]
    p90 = usual * math.exp(_P90 * month.world.disk_sigma)
    for stretch in stretches:
        raw, flushes = stretch.latencies, stretch.flushes
        history, peers = raw > HISTORY_RATIO * p90, raw > PEER_RATIO * _median_of_others(raw)
        # SlowBrokerFinder looks at flush times. Bytes grow for everyone alike, so flush times by bytes compare with
        # peers as flush times themselves do.
        by_history, by_peers = flushes > HISTORY_RATIO * p90, flushes > PEER_RATIO * _median_of_others(flushes)
        by_bytes = flushes / stretch.bytes_factor > HISTORY_RATIO * p90
        every = (by_history | by_peers) & (by_bytes | by_peers) & (flushes > ABSOLUTE_SECONDS)
        tests = {"own history": history, "peers": peers, "absolute": raw > ABSOLUTE_SECONDS, "all three": every}
        for name, test in tests.items():
            found[name] += _scored(stretch.times, test)
    return found


def _median_of_others(latencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each broker the median of the others, by the order of all: one sort instead of one for each."""
    count = len(latencies)
    order = np.sort(latencies, axis=0)
    rest = count - 1
    low, high = (rest - 1) // 2, rest // 2
    # Without a broker at rank r, the element of rank k among the others has rank k or k + 1 among all.
    rank = np.argsort(np.argsort(latencies, axis=0), axis=0)
    first = np.where(rank <= low, order[low + 1], order[low])
    second = np.where(rank <= high, order[high + 1], order[high])
    middle: NDArray[np.float64] = (first + second) / 2
    return middle


def _scored(times: NDArray[np.float64], tests: Test) -> list[Demotion]:
    found = []
    for broker in np.flatnonzero(tests.sum(axis=1) >= SCORE):
        score, demoted, well = 0, False, 0
        for time, slow in zip(times.tolist(), tests[broker].tolist(), strict=True):
            score = min(2 * SCORE, score + 1) if slow else max(0, score - 1)
            well = 0 if score else well + 1
            demoted = demoted and well < WELL_SECONDS
            if score >= SCORE and not demoted:
                demoted = True
                found.append(Demotion(time, int(broker), STORAGE))
    return found


def cruise_control(month: Month, rng: Generator) -> list[Demotion]:
    """SlowBrokerFinder as published: rounds of five minutes on the 99.9th percentile of flush times, all three tests.

    More slow brokers than a tenth of the cluster are not fixable: below ten brokers it never demotes.
    """
    sigma, usual = month.world.disk_sigma, np.array(month.usual_seconds)
    p90 = usual * math.exp(_P90_OF_PEAKS * sigma)
    score, last = np.zeros(month.brokers), 0
    demoted: set[int] = set()
    found = []
    for number, effects in sorted(_rounds(month).items()):
        score = np.maximum(0, score - (number - last - 1))
        demoted = {b for b in demoted if score[b] > 0}
        values = usual * np.exp(sigma * _P999 * rng.uniform(0.9, 1.1, month.brokers))
        factor = 1.0
        for effect, bytes_factor in effects:
            factor *= bytes_factor
            for broker, peak in _peaks(effect, number, month, rng):
                values[broker] = max(values[broker], peak)
        others = _median_of_others(values[:, None])[:, 0]
        peers = values > PEER_RATIO * others
        history, by_bytes = values > HISTORY_RATIO * p90, values / factor > HISTORY_RATIO * p90
        slow = (history | peers) & (by_bytes | peers) & (values > ABSOLUTE_SECONDS)
        score, last = np.where(slow, score + 1, np.maximum(0, score - 1)), number
        chosen = np.flatnonzero(score >= SCORE)
        if len(chosen) <= UNFIXABLE_SHARE * month.brokers:
            found += [Demotion((number + 1) * ROUND_SECONDS, int(b), STORAGE) for b in chosen if int(b) not in demoted]
            demoted |= {int(b) for b in chosen}
    return found


def _rounds(month: Month) -> dict[int, list[tuple[DiskEffect, float]]]:
    touched: dict[int, list[tuple[DiskEffect, float]]] = {}
    for episode in month.episodes:
        for effect in episode.disks:
            for number in range(int(effect.start // ROUND_SECONDS), int(effect.end // ROUND_SECONDS) + 1):
                touched.setdefault(number, []).append((effect, episode.bytes_factor))
    return touched


def _peaks(effect: DiskEffect, number: int, month: Month, rng: Generator) -> list[tuple[int, float]]:
    """About the slowest of the writes that an effect touched in a round."""
    begin, end = number * ROUND_SECONDS, (number + 1) * ROUND_SECONDS
    overlap = min(effect.end, end) - max(effect.start, begin)
    if overlap < 1.0:
        return []
    if effect.what is Disk.STALLED:
        return [(b, min(effect.end, end) - effect.start) for b in effect.brokers]
    deviation = NormalDist().inv_cdf(min(0.9999, max(0.0001, float(rng.random()) ** (1 / overlap))))
    if effect.what is Disk.WAVE:
        spread = math.exp(month.world.disk_sigma * deviation)
        return [(b, month.usual_seconds[b] * f * spread) for b, f in zip(effect.brokers, effect.levels, strict=True)]
    return [(b, s * math.exp(0.2 * deviation)) for b, s in zip(effect.brokers, effect.levels, strict=True)]
