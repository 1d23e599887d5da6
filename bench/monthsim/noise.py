"""What happens to a cluster that is no fault of one broker's: restarts, pauses, vantages' troubles, hiccups, waves.

In: assumptions and a random generator. Out: episodes. Called by ``worlds``.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from monthsim.assumptions import RACKS, Assumptions
from monthsim.draws import P99_AT_FIVE_MEDIANS, between, lognormal, times
from monthsim.episodes import (
    ALL_VANTAGES,
    SESSION_SECONDS,
    Absence,
    Disk,
    DiskEffect,
    Episode,
    Kind,
    Path,
    PathEffect,
)


def noise(brokers: int, world: Assumptions, rng: Generator) -> list[Episode]:
    """A month's noise, in no order.

    Each kind draws from a stream of its own, so that a number that is changed leaves all other kinds as they were.
    """
    found: list[Episode] = []
    everybody = tuple(range(brokers))
    rolling, shared, whole, waves = rng.spawn(4)
    for broker, one in zip(everybody, rng.spawn(brokers), strict=True):
        found += _broker_noise(broker, world, one)
    for vantage, one in zip(ALL_VANTAGES, rng.spawn(len(ALL_VANTAGES)), strict=True):
        found += _vantage_noise(vantage, brokers, world, one)
    for t in times(world.rolling_restarts, rolling):
        found += rolling_restart(t, brokers, world, rolling)
    for t in times(world.shared_loss_bursts, shared):
        found.append(loss(Kind.SHARED_LOSS, t, everybody, ALL_VANTAGES, world, shared))
    for t in times(world.everybody_cut, whole):
        path = PathEffect(t, t + 300.0, Path.DROPPED, everybody, ALL_VANTAGES, internal=False)
        found.append(Episode(Kind.EVERYBODY_CUT, t, t + 300.0, everybody, (path,)))
    found += [wave(t, brokers, world, waves) for t in times(world.waves, waves)]
    return found


def _broker_noise(broker: int, world: Assumptions, rng: Generator) -> list[Episode]:
    pauses, freezes, long, crashes, hiccups, bursts, syncs = rng.spawn(7)
    found = [
        frozen(Kind.GC_PAUSE, t, world.gc_seconds * pauses.uniform(0.5, 1.5), broker)
        for t in times(world.gc_pauses, pauses)
    ]
    found += [
        frozen(Kind.VM_FREEZE, t, lognormal(world.vm_freeze_seconds, P99_AT_FIVE_MEDIANS, freezes), broker)
        for t in times(world.vm_freezes, freezes)
    ]
    found += [
        frozen(Kind.VM_FREEZE, t, world.long_freeze_seconds * long.uniform(0.8, 1.2), broker)
        for t in times(world.long_freezes, long)
    ]
    found += [
        restart(Kind.CRASH, t, world.restart_seconds * crashes.uniform(0.2, 1.8), broker, world, crashes)
        for t in times(world.crashes, crashes)
    ]
    found += [hiccup(t, broker, world, hiccups) for t in times(world.hiccups, hiccups)]
    found += [bursty(t, broker) for t in times(world.bursty_disks, bursts)]
    found += [slow_syncs(t, broker, world, syncs) for t in times(world.slow_syncs, syncs)]
    return found


def _vantage_noise(vantage: int, brokers: int, world: Assumptions, rng: Generator) -> list[Episode]:
    found, everybody = [], tuple(range(brokers))
    outages, paths, losses, silences = rng.spawn(4)
    for t in times(world.vantage_outages, outages):
        end = t + min(14_000.0, lognormal(world.vantage_outage_seconds, 1.5, outages))
        path = PathEffect(t, end, Path.DROPPED, everybody, (vantage,), internal=bool(outages.random() < 0.5))
        found.append(Episode(Kind.VANTAGE_OUTAGE, t, end, everybody, (path,)))
    for t in times(world.path_outages, paths):
        end = t + min(14_000.0, lognormal(world.vantage_outage_seconds, 1.5, paths))
        rack = int(paths.integers(RACKS))
        there = tuple(b for b in everybody if b % RACKS == rack)
        path = PathEffect(t, end, Path.DROPPED, there, (vantage,), internal=bool(paths.random() < 0.5))
        found.append(Episode(Kind.PATH_OUTAGE, t, end, there, (path,)))
    found += [loss(Kind.LOSS_BURST, t, everybody, (vantage,), world, losses) for t in times(world.loss_bursts, losses)]
    for t in times(world.prober_silences, silences):
        end = t + world.prober_silence_seconds * float(silences.uniform(0.25, 1.75))
        found.append(Episode(Kind.SILENT_PROBER, t, end, everybody, silent=(Absence(t, end, vantage),)))
    return found


def frozen(kind: Kind, start: float, seconds: float, broker: int) -> Episode:
    """A broker that answers no one for a while, then everyone; fenced where that outlasts its session."""
    end = start + float(seconds)
    path = PathEffect(start, end, Path.FROZEN, (broker,), ALL_VANTAGES)
    fenced = (Absence(start + SESSION_SECONDS, end + 1.0, broker),) if seconds > SESSION_SECONDS else ()
    return Episode(kind, start, end, (broker,), (path,), fenced=fenced)


def restart(
    kind: Kind, start: float, seconds: float, broker: int, world: Assumptions, rng: Generator, *, planned: bool = False
) -> Episode:
    """A broker that is gone and comes back, and that the load balancer finds again some time after that."""
    up = start + float(seconds)
    if rng.random() < world.slow_balancer_share:
        seen = up + world.slow_balancer_seconds * float(rng.uniform(8 / 9, 10 / 9))
    else:
        seen = up + world.fast_balancer_seconds * float(rng.uniform(0.4, 1.6))
    down = PathEffect(start, up - 0.5, Path.REFUSED, (broker,), ALL_VANTAGES)
    unseen = PathEffect(up - 0.5, seen, Path.REFUSED, (broker,), ALL_VANTAGES, internal=False)
    fenced = Absence(start - 0.2 if planned else start + SESSION_SECONDS, up, broker)
    return Episode(kind, start, seen, (broker,), (down, unseen), fenced=(fenced,))


def rolling_restart(start: float, brokers: int, world: Assumptions, rng: Generator) -> list[Episode]:
    """Every broker in turn, the next when the last is up and its replicas have caught up."""
    found, at = [], start
    for broker in range(brokers):
        seconds = world.restart_seconds * float(rng.uniform(0.2, 1.8))
        found.append(restart(Kind.ROLLING_RESTART, at, seconds, broker, world, rng, planned=True))
        at += seconds + float(rng.uniform(10.0, 60.0))
    return found


def loss(
    kind: Kind, start: float, brokers: tuple[int, ...], vantages: tuple[int, ...], world: Assumptions, rng: Generator
) -> Episode:
    """A burst of packet loss; half of them strike the vantage's path to the internal listeners as well."""
    end = start + min(600.0, lognormal(world.loss_seconds, 1.0, rng))
    share = between(0.02, max(0.02, world.loss_share), rng)
    inside = len(vantages) == 1 and bool(rng.random() < 0.5)
    path = PathEffect(start, end, Path.LOSSY, brokers, vantages, internal=inside, level=share)
    return Episode(kind, start, end, brokers, (path,))


def hiccup(start: float, broker: int, world: Assumptions, rng: Generator) -> Episode:
    """A volume that stops, or is slow, for seconds."""
    end = start + min(120.0, lognormal(world.hiccup_seconds, P99_AT_FIVE_MEDIANS, rng))
    if rng.random() < 0.5:
        disk = DiskEffect(start, end, Disk.STALLED, (broker,))
    else:
        disk = DiskEffect(start, end, Disk.SLOW, (broker,), (between(0.06, 0.5, rng),))
    return Episode(Kind.DISK_HICCUP, start, end, (broker,), disks=(disk,))


def bursty(start: float, broker: int) -> Episode:
    """100 ms for 1 s in every 10, for an hour."""
    disk = DiskEffect(start, start + 3600.0, Disk.BURSTY, (broker,), (0.1,))
    return Episode(Kind.BURSTY_DISK, start, start + 3600.0, (broker,), disks=(disk,))


def slow_syncs(start: float, broker: int, world: Assumptions, rng: Generator) -> Episode:
    """Syncs take seconds, writes do not: no client waits until leaders move."""
    end = start + between(60.0, 7200.0, rng)
    disk = DiskEffect(start, end, Disk.SYNCS, (broker,), (max(0.5, lognormal(world.slow_sync_seconds, 1.0, rng)),))
    return Episode(Kind.SLOW_SYNCS, start, end, (broker,), disks=(disk,))


def wave(start: float, brokers: int, world: Assumptions, rng: Generator) -> Episode:
    """More traffic for everyone: every disk slower by about the same factor."""
    end = start + min(7200.0, lognormal(world.wave_seconds, 0.7, rng))
    factor = max(1.0, lognormal(world.wave_factor, 1.0, rng))
    levels = tuple(float(f) for f in factor * np.exp(world.wave_skew * rng.standard_normal(brokers)))
    everybody = tuple(range(brokers))
    disk = DiskEffect(start, end, Disk.WAVE, everybody, levels)
    return Episode(Kind.TRAFFIC_WAVE, start, end, everybody, disks=(disk,), bytes_factor=float(rng.uniform(1.5, 4.0)))
