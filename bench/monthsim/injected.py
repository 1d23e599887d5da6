"""Real faults: what a detector has to find.

In: rates and a random generator. Out: episodes. Called by ``worlds``.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from monthsim.assumptions import RACKS, Assumptions, FaultRates
from monthsim.draws import between, lognormal, times
from monthsim.episodes import ALL_VANTAGES, Disk, DiskEffect, Episode, Kind, Path, PathEffect
from monthsim.noise import restart


def faults(brokers: int, rates: FaultRates, world: Assumptions, rng: Generator) -> list[Episode]:
    """A month's real faults, in no order."""
    found: list[Episode] = []
    everybody = tuple(range(brokers))
    # From streams of their own: the other faults are those of months without freezes.
    for broker, own in zip(everybody, rng.spawn(brokers), strict=True):
        found += [freezes(t, between(60, 1800, own), broker, own) for t in times(rates.freezing, own)]
    for broker in everybody:
        found += [
            cut(Kind.EXTERNAL_CUT, t, _repair(rng), (broker,), Path.REFUSED) for t in times(rates.external_cut, rng)
        ]
        found += [
            cut(Kind.EXTERNAL_BLACKHOLE, t, _repair(rng), (broker,), Path.DROPPED)
            for t in times(rates.external_blackhole, rng)
        ]
        for t in times(rates.disk_slow, rng):
            found.append(
                slow_disk(Kind.DISK_SLOW, t, float(rng.uniform(7200, 14_000)), broker, between(0.08, 0.5, rng))
            )
        for t in times(rates.disk_degraded, rng):
            found.append(slow_disk(Kind.DISK_DEGRADED, t, between(60, 600, rng), broker, between(0.2, 0.5, rng)))
        for t in times(rates.disk_stalled, rng):
            end = t + float(rng.uniform(3600, 14_000))
            disk = DiskEffect(t, end, Disk.STALLED, (broker,))
            found.append(Episode(Kind.DISK_STALLED, t, end, (broker,), disks=(disk,)))
        found += [down(t, _repair(rng), broker, world, rng) for t in times(rates.broker_down, rng)]
    for t in times(rates.zone_cut, rng):
        rack = int(rng.integers(RACKS))
        there = tuple(b for b in everybody if b % RACKS == rack)
        found.append(cut(Kind.ZONE_CUT, t, _repair(rng), there, Path.REFUSED))
    return found


def cut(kind: Kind, start: float, seconds: float, brokers: tuple[int, ...], how: Path) -> Episode:
    """Unreachable from outside, well inside."""
    path = PathEffect(start, start + seconds, how, brokers, ALL_VANTAGES, internal=False)
    return Episode(kind, start, start + seconds, brokers, (path,))


def freezes(start: float, seconds: float, broker: int, rng: Generator) -> Episode:
    """A process that stops again and again, each time for less than Kafka needs to fence it."""
    periodic, frozen, answers = bool(rng.random() < 0.5), rng.uniform(2.0, 8.0), rng.uniform(2.0, 8.0)
    paths, time = [], start
    while time < start + seconds:
        if not periodic:
            frozen, answers = rng.uniform(1.0, 8.0), rng.uniform(1.0, 8.0)
        paths.append(PathEffect(time, time + float(frozen), Path.FROZEN, (broker,), ALL_VANTAGES))
        time += float(frozen + answers)
    return Episode(Kind.FREEZING, start, paths[-1].end, (broker,), tuple(paths))


def slow_disk(kind: Kind, start: float, seconds: float, broker: int, level: float) -> Episode:
    """Every write takes about so long."""
    disk = DiskEffect(start, start + seconds, Disk.SLOW, (broker,), (level,))
    return Episode(kind, start, start + seconds, (broker,), disks=(disk,))


def down(start: float, seconds: float, broker: int, world: Assumptions, rng: Generator) -> Episode:
    """A broker that dies; half of the time its host with it, so that nothing even refuses."""
    found = restart(Kind.BROKER_DOWN, start, seconds, broker, world, rng)
    if rng.random() < 0.5:
        return found
    gone, unseen = found.paths
    silent = PathEffect(gone.start, gone.end, Path.DROPPED, gone.brokers, gone.vantages)
    return Episode(found.kind, found.start, found.end, found.brokers, (silent, unseen), fenced=found.fenced)


def _repair(rng: Generator) -> float:
    return float(np.clip(lognormal(1800.0, 0.7, rng), 300.0, 14_000.0))
