"""Fault models: the standard months and what is changed in them, each with its source.

A model changes the episodes that a month was drawn with, so every model has the same faults at the same times. In: a
month. Out: the same month under the model. Called by ``campaign``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from monthsim.assumptions import MONTH_SECONDS
from monthsim.episodes import DISK_FAULTS, Disk, DiskEffect, Episode, Kind, Month, PathEffect

STANDARD = "standard"
LISTENER_FAULTS = frozenset({Kind.EXTERNAL_CUT, Kind.EXTERNAL_BLACKHOLE, Kind.ZONE_CUT})
CHANGED = LISTENER_FAULTS | DISK_FAULTS | {Kind.DISK_HICCUP}
"""Kinds whose duration a model changes: those that a demotion cures."""

FLAP_SECONDS = 2.0
FLAPPING_SECONDS = 300.0
BURST_SECONDS = 7.0
BURST_PERIOD_SECONDS = 10.0
DRIP_SECONDS = 180.0
DRIP_LEVEL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Model:
    """How a month is changed. ``duration`` multiplies durations; ``tail`` is the sigma of a further log-normal factor.

    ``listener`` and ``disk`` replace a listener fault or a disk fault by another one at the same time.
    """

    source: str
    duration: float = 1.0
    tail: float = 0.0
    listener: Callable[[Episode], Episode] | None = None
    disk: Callable[[Episode], Episode] | None = None

    def applied(self, month: Month) -> Month:
        """The month under this model; the same month gives the same result."""
        rng = np.random.default_rng((*month.seed, 7))
        return replace(month, episodes=tuple(self._changed(e, float(rng.standard_normal())) for e in month.episodes))

    def _changed(self, episode: Episode, draw: float) -> Episode:
        if episode.kind not in CHANGED:
            return episode
        made = stretched(episode, self.duration * float(np.exp(self.tail * draw)))
        if self.listener is not None and made.kind in LISTENER_FAULTS:
            return self.listener(made)
        if self.disk is not None and made.kind in DISK_FAULTS:
            return self.disk(made)
        return made


def stretched(episode: Episode, factor: float) -> Episode:
    """The episode with its duration multiplied, at most to the end of the month."""
    if factor == 1.0:
        return episode

    def moved(time: float) -> float:
        return min(MONTH_SECONDS, episode.start + factor * (time - episode.start))

    return replace(
        episode,
        end=moved(episode.end),
        paths=tuple(replace(p, start=moved(p.start), end=moved(p.end)) for p in episode.paths),
        disks=tuple(replace(d, start=moved(d.start), end=moved(d.end)) for d in episode.disks),
    )


def flapping(episode: Episode) -> Episode:
    """The listener is down for two seconds and up for two, for five minutes."""
    end = min(episode.end, episode.start + FLAPPING_SECONDS)
    paths: list[PathEffect] = []
    for path in episode.paths:
        starts = np.arange(path.start, end, 2 * FLAP_SECONDS).tolist()
        paths += [replace(path, start=start, end=min(end, start + FLAP_SECONDS)) for start in starts]
    return replace(episode, end=end, paths=tuple(paths))


def bursts(episode: Episode) -> Episode:
    """Writes are slow for 7 s of every 10, for at most ten minutes."""
    end, level = min(episode.end, episode.start + 600.0), _level(episode)
    starts = np.arange(episode.start, end, BURST_PERIOD_SECONDS).tolist()
    disks = [DiskEffect(t, min(end, t + BURST_SECONDS), Disk.SLOW, episode.brokers, (level,)) for t in starts]
    return replace(episode, end=end, disks=tuple(disks))


def drips(episode: Episode) -> Episode:
    """Writes become slower from 1 to 100 ms within three minutes and stay so."""
    steps = np.linspace(0.001, DRIP_LEVEL_SECONDS, 37).tolist()
    width = DRIP_SECONDS / len(steps)
    end = max(episode.end, episode.start + 2 * DRIP_SECONDS)
    disks = []
    for number, level in enumerate(steps):
        start = episode.start + number * width
        last = number == len(steps) - 1
        disks.append(DiskEffect(start, end if last else start + width, Disk.SLOW, episode.brokers, (level,)))
    return replace(episode, end=end, disks=tuple(disks))


def _level(episode: Episode) -> float:
    return next((level for disk in episode.disks for level in disk.levels), 0.2)


_ASSUMED = "assumed; no published distribution found"
MODELS: dict[str, Model] = {
    STANDARD: Model("the months as drawn from `assumptions.py`"),
    "durations x10": Model(f"every duration ten times as long: {_ASSUMED}", duration=10.0),
    "durations x0.1": Model(f"every duration a tenth as long: {_ASSUMED}", duration=0.1),
    "heavier tails": Model(
        "durations times a log-normal factor, sigma 1.5, as path outages have it (Feamster et al., SIGMETRICS 2003)",
        tail=1.5,
    ),
    "bursts": Model(
        f"disk faults are slow for 7 s of every 10: {_ASSUMED}; volumes that use up their burst credits do so",
        disk=bursts,
    ),
    "flapping": Model(
        f"listener faults are down for 2 s and up for 2 s: {_ASSUMED}; a load balancer with two health checks does so",
        listener=flapping,
    ),
    "drips": Model(
        "disk faults grow from 1 to 100 ms in three minutes: assumed, after Gunawi et al., 'Fail-Slow at Scale',"
        " FAST 2018: faults that cascade and grow",
        disk=drips,
    ),
}
