"""What a storage prober finds on one broker's disk, counted by the prober's own code.

In: the effects on one disk. Out: the news that the prober would post, and every write's time for the peers' rules,
which look at latencies themselves. Stretches in which every write stays far below the news floor are skipped, and
so is the middle of a long steady one: ``_EDGE`` seconds at both ends represent it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.settings.detection import StorageLatency
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.storage.write_latency import SPANS_KEPT, Latencies, LatencyBaseline, Sample
from bellwether.probes.storage.write_probe import pause
from monthsim.episodes import FENCED_SECONDS, Absence, Disk, DiskEffect, Month
from monthsim.paths import News, at
from monthsim.regret import keeps_up

FLOOR_SECONDS = 0.004
"""A disk whose median stays below this makes no news: no write of it comes near the default objective."""
_BEFORE, _AFTER = 5.0, 80.0
_EDGE = 150.0
_MOST_COUNTED = 700
_LOOK_SECONDS = 0.1
_SLOW_SIGMA = 0.2
_GAP_SECONDS = 60.0
_PLAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Volume:
    """One broker's disk: its own median, how it scatters, and what happens to it."""

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
            if effect.what is Disk.SYNCS:
                continue
            level = effect.levels[effect.brokers.index(self.broker)]
            if effect.what is Disk.WAVE:
                median *= level
            elif effect.what is Disk.SLOW or (time - effect.start) % 10.0 < 1.0:
                median, sigma = max(median, level), _SLOW_SIGMA
        return median, sigma, until

    def sync(self, time: float) -> float:
        """Seconds that a sync takes."""
        slow = (e for e in self.effects if e.what is Disk.SYNCS and e.start <= time < e.end)
        return max((e.levels[e.brokers.index(self.broker)] for e in slow), default=self.usual_seconds)

    def write(self, time: float, rng: Generator) -> float:
        """Seconds that a write takes."""
        median, sigma, until = self.level(time)
        seconds = float(median * np.exp(sigma * rng.standard_normal()))
        return seconds if until is None else max(seconds, until - time)

    def quiet(self) -> bool:
        """Whether nothing that happens to it makes a write worth counting."""
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


class MonthOfDisks:
    """What a month's disks are like at any time, as the operator reads it of followers and of Kafka's fencing."""

    def __init__(self, month: Month) -> None:
        self._month = month
        self._volumes = [volume_of(month, b) for b in range(month.brokers)]
        slow = [e for v in self._volumes for e in v.effects if e.what in (Disk.SLOW, Disk.STALLED)]
        self.edges = {edge for e in slow for edge in (e.start, e.end)}
        stalls = [
            e for e in slow if e.what is Disk.STALLED and e.end - e.start > FENCED_SECONDS and month.metadata_hangs
        ]
        self.fenced = tuple(Absence(e.start + FENCED_SECONDS, e.end + 1.0, b) for e in stalls for b in e.brokers)
        """When Kafka fences brokers with stalled disks that lead."""
        self._led: dict[Absence, bool] = {}

    def keeps_up(self, broker: int, time: float) -> bool:
        """Whether a broker keeps up as a follower."""
        seconds, _, stalled_until = self._volumes[broker].level(time)
        return stalled_until is None and keeps_up(self._month, seconds)

    def fences(self, time: float, cured: Iterable[DemotedBroker | QuarantineOrder]) -> frozenset[int]:
        """Brokers that are fenced for a stalled disk: those that led when their session ran out."""
        there = [a for a in self.fenced if a.start <= time < a.end]
        for one in there:
            led = not any(c.broker == one.who and c.since <= at(one.start) for c in cured)
            self._led.setdefault(one, led)
        return frozenset(a.who for a in there if self._led[a])


def volume_of(month: Month, broker: int) -> Volume:
    """One broker's disk in a month."""
    touched = tuple(d for e in month.episodes for d in e.disks if broker in d.brokers)
    return Volume(month.usual_seconds[broker], month.world.disk_sigma, touched, broker)


def steady(volume: Volume, objectives: Objectives) -> Latencies:
    """A disk that has long been well."""
    known = Latencies(baseline=LatencyBaseline((), (volume.usual_seconds,) * SPANS_KEPT))
    for n in range(100):
        known = known.after(Sample(volume.usual_seconds), objectives, at(n - 1000.0))
    return known


def writes(
    volume: Volume, phase: float, rng: Generator, objectives: Objectives | None = None
) -> Iterator[tuple[float, float]]:
    """When each write begins, and how long it takes. With ``objectives``, sooner after two that missed them."""
    limit = math.inf if objectives is None else objectives.produce_milliseconds / 1000
    time, bad_in_a_row = 0.0, 0
    for start, end in volume.windows():
        time = max(time, start // StorageLatency.period_seconds * StorageLatency.period_seconds + phase)
        while time < end:
            seconds = volume.write(time, rng)
            yield time, seconds
            bad_in_a_row = bad_in_a_row + 1 if seconds > limit else 0
            time = max(time + pause(bad_in_a_row), time + seconds)


def watch(volume: Volume, begun: Sequence[tuple[float, float]], objectives: Objectives) -> list[News]:
    """The news of the prober next to one disk."""
    if volume.quiet():
        return []
    well, news = steady(volume, objectives), []
    known = posted = well
    posted_at = last = -1000.0
    for time, sample in _samples(begun, objectives):
        covers = min(time - last, max(StorageLatency.period_seconds, sample.seconds))
        if time - last > _GAP_SECONDS and not any(e.start <= last and time <= e.end for e in volume.effects):
            known = posted = well  # what was skipped was a long time of being well
        last = time
        known = known.after(replace(sample, covers=covers), objectives, at(time)).synced(volume.sync(time))
        if known.differs(posted, time - posted_at):
            posted, posted_at = known, time
            signal = known.signal(volume.broker, f"broker-{volume.broker}", objectives)
            if signal is not None:
                news.append(News(time, signal))
    return news


def _samples(begun: Sequence[tuple[float, float]], objectives: Objectives) -> Iterator[tuple[float, Sample]]:
    """Writes as ``probes.storage.write_probe`` counts them: one that hangs is counted while it hangs."""
    for time, seconds in begun:
        counted, waited = 0, objectives.produce_milliseconds / 1000 + _LOOK_SECONDS
        while waited <= seconds and counted <= _MOST_COUNTED:
            yield time + waited, Sample(waited, stalled=True)
            counted += 1
            waited += pause(counted)
        yield time + seconds, Sample(seconds)


def plain(volume: Volume, begun: Sequence[tuple[float, float]], *, slow: int = 5, of: int = 10) -> list[News]:
    """What a plain count makes of the same writes: so many of the last ones above 50 ms, with nothing to compare."""
    if volume.quiet():
        return []
    reading, news = Reading.PASSING, []
    bad: deque[bool] = deque(maxlen=of)
    good_in_a_row = 0
    for time, seconds in begun:
        ok = seconds <= _PLAIN_SECONDS
        bad.extend([not ok] * (1 if ok else min(of, math.ceil(seconds))))
        good_in_a_row = good_in_a_row + 1 if ok else 0
        seen = reading
        if not ok and sum(bad) >= slow:
            seen = Reading.FAILING
        elif good_in_a_row >= min(slow, 5):
            seen = Reading.PASSING
        if seen is not reading:
            if seen is Reading.PASSING:
                bad.clear()
            # A write that hangs is noticed as soon as it has kept out so many others.
            noticed = time + (seconds if seconds < slow else slow)
            signal = Signal(volume.broker, SignalType.STORAGE_LATENCY, f"broker-{volume.broker}", seen, at(noticed))
            news.append(News(noticed, signal))
        reading = seen
    return news
