"""What a storage prober finds on one broker's disk, counted by the prober's own code.

In: the effects on one disk. Out: the news that the prober would post, and every write's time for the peers' rules,
which look at latencies themselves. Stretches in which every write stays far below the news floor are passed over, and
so is the middle of a long steady one: ``_EDGE`` seconds at both ends stand for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from bellwether.core.settings.detection import StorageLatency
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.result_window import Window
from bellwether.probes.storage.write_latency import SPANS_KEPT, Latencies, LatencyBaseline, Sample, periods
from monthsim.episodes import Disk, DiskEffect
from monthsim.paths import News, at

FLOOR_SECONDS = 0.004
"""A disk whose median stays below this makes no news: those begin at a tenth of the default threshold."""
_BEFORE, _AFTER = 5.0, 80.0
_EDGE = 150.0
_LOOK_SECONDS = 0.1
_SLOW_SIGMA = 0.2
_GAP_SECONDS = 60.0
_PLAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Volume:
    """One broker's disk: its own median, how it scatters, and what befalls it."""

    usual_seconds: float
    sigma: float
    effects: tuple[DiskEffect, ...]
    broker: int

    def level(self, time: float) -> tuple[float, float, float | None]:
        """The median of a write begun at ``time``, its scatter, and when it ends at the earliest if it is stalled."""
        median, sigma, until = self.usual_seconds, self.sigma, None
        for effect in self.effects:
            if not effect.start <= time < effect.end:
                continue
            if effect.what is Disk.STALLED:
                until = max(until or 0.0, effect.end)
                continue
            level = effect.levels[effect.brokers.index(self.broker)]
            if effect.what is Disk.WAVE:
                median *= level
            elif effect.what is Disk.SLOW or (time - effect.start) % 10.0 < 1.0:
                median, sigma = max(median, level), _SLOW_SIGMA
        return median, sigma, until

    def write(self, time: float, rng: Generator) -> float:
        """Seconds that a write takes."""
        median, sigma, until = self.level(time)
        seconds = float(median * np.exp(sigma * rng.standard_normal()))
        return seconds if until is None else max(seconds, until - time)

    def quiet(self) -> bool:
        """Whether nothing that befalls it makes a write worth counting."""
        return all(
            e.what is Disk.WAVE and self.usual_seconds * e.levels[e.brokers.index(self.broker)] < FLOOR_SECONDS
            for e in self.effects
        ) and (len(self.effects) < 2)

    def windows(self) -> list[tuple[float, float]]:
        """The stretches that are looked at second by second."""
        spans = []
        for effect in self.effects:
            if effect.end - effect.start <= 2 * _EDGE:
                spans.append((effect.start - _BEFORE, effect.end + _AFTER))
            else:
                spans.append((effect.start - _BEFORE, effect.start + _EDGE))
                spans.append((effect.end - _EDGE, effect.end + _AFTER))
        merged: list[tuple[float, float]] = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged


def steady(volume: Volume, settings: StorageLatency) -> Latencies:
    """A disk that has long been well."""
    known = Latencies(baseline=LatencyBaseline((), (volume.usual_seconds,) * SPANS_KEPT))
    for n in range(2 * settings.window_samples):
        known = known.after(Sample(volume.usual_seconds), settings, at(n - 1000.0))
    return known


def writes(volume: Volume, phase: float, settings: StorageLatency, rng: Generator) -> Iterator[tuple[float, float]]:
    """When each write begins, and how long it takes."""
    time = 0.0
    for start, end in volume.windows():
        time = max(time, start // settings.period_seconds * settings.period_seconds + phase)
        while time < end:
            seconds = volume.write(time, rng)
            yield time, seconds
            time = max(time + settings.period_seconds, time + seconds)


def watch(volume: Volume, begun: Sequence[tuple[float, float]], settings: StorageLatency) -> list[News]:
    """The news of the prober beside one disk."""
    if volume.quiet():
        return []
    well, news = steady(volume, settings), []
    known = posted = well
    posted_at = last = -1000.0
    for time, sample in _samples(begun, settings):
        if time - last > _GAP_SECONDS and not any(e.start <= last and time <= e.end for e in volume.effects):
            known = posted = well  # what was passed over was a long time of being well
        last = time
        known = known.after(sample, settings, at(time))
        if known.differs(posted, time - posted_at, settings):
            posted, posted_at = known, time
            signal = known.signal(volume.broker, f"broker-{volume.broker}", settings)
            if signal is not None:
                news.append(News(time, signal))
    return news


def _samples(begun: Sequence[tuple[float, float]], settings: StorageLatency) -> Iterator[tuple[float, Sample]]:
    """Writes as ``probes.storage.storage_probe`` tells them: one that hangs is told of period by period."""
    for time, seconds in begun:
        counted, waited = 0, float(settings.timeout_seconds)
        while waited <= seconds and counted <= 2 * settings.window_samples:
            yield time + waited, Sample(waited, stalled=True, counted=counted)
            counted = periods(waited, settings)
            waited = counted * settings.period_seconds + _LOOK_SECONDS
        if waited <= seconds:
            counted = periods(seconds, settings)
        yield time + seconds, Sample(seconds, counted=counted)


def plain(volume: Volume, begun: Sequence[tuple[float, float]], *, slow: int = 5, of: int = 10) -> list[News]:
    """What a plain count makes of the same writes: so many of the last ones above 50 ms, with nothing to compare."""
    if volume.quiet():
        return []
    window, news = Window(Reading.PASSING, at(0.0)), []
    counting = StorageLatency(window_samples=of, failure_threshold=slow, success_threshold=slow)
    for time, seconds in begun:
        ok = seconds <= _PLAIN_SECONDS
        seen = window
        for _ in range(1 if ok else min(of, math.ceil(seconds))):
            seen = seen.seen(ok, at(time), counting)
        if seen.reading is not window.reading:
            # A write that hangs is noticed as soon as it has kept out so many others.
            noticed = time + (seconds if seconds < slow else slow)
            signal = Signal(
                volume.broker, SignalType.STORAGE_LATENCY, f"broker-{volume.broker}", seen.reading, at(noticed)
            )
            news.append(News(noticed, signal))
        window = seen
    return news
