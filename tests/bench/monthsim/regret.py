"""Regret: what clients lost under a rule set, moves included, against a clairvoyant that knows every duration.

In: a month and a rule set's demotions. Out: both sums. Harm that no demotion cures (restarts, a cluster cut off as a
whole, traffic) is the same for every rule and is left out, which makes the ratio larger. A disk that is slow for 1 s in
every 10 loses the allowance, which both bear. Called by ``months``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import NormalDist

from bellwether.core.model.move_cost import MoveCost
from bellwether.core.settings.harm import Objectives
from monthsim.episodes import DISK_FAULTS, EXTERNAL_FAULTS, Disk, DiskEffect, Kind, Month, Path

MOVE_SECONDS = MoveCost().seconds
"""What moving leaders away and back costs, for every rule set and for the clairvoyant."""

CURED = EXTERNAL_FAULTS | DISK_FAULTS | {Kind.DISK_HICCUP}
WELL_SECONDS = 60.0
"""A demotion lasts until its broker has been well for so long."""

TOGETHER_SECONDS = 600.0
"""Harm with shorter gaps is one episode, in which the clairvoyant pays for at most one move."""

_SLOW_SIGMA = 0.2


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds in which a share of a broker's requests is lost."""

    start: float
    end: float
    share: float

    @property
    def lost(self) -> float:
        """Seconds lost."""
        return (self.end - self.start) * self.share


def harm(month: Month, broker: int) -> list[Stretch]:
    """What clients of a broker lose while it leads, in order; of stretches that overlap the worst counts."""
    found = []
    for episode in month.episodes:
        if episode.kind not in CURED or broker not in episode.brokers:
            continue
        found += [
            Stretch(p.start, p.end, 1.0)
            for p in episode.paths
            if broker in p.brokers and p.external and p.what in (Path.REFUSED, Path.DROPPED)
        ]
        found += [Stretch(d.start, d.end, _share(d, broker)) for d in episode.disks if broker in d.brokers]
    return _worst(s for s in found if s.share > 0.01 and s.end > s.start)


def clairvoyant(stretches: Sequence[Stretch]) -> float:
    """The least that clients can lose: each episode is borne, or moved away from as it begins."""
    total, lost, end = 0.0, 0.0, 0.0
    for stretch in stretches:
        if stretch.start - end > TOGETHER_SECONDS:
            total, lost = total + min(lost, MOVE_SECONDS), 0.0
        lost, end = lost + stretch.lost, stretch.end
    return total + min(lost, MOVE_SECONDS)


def suffered(stretches: Sequence[Stretch], demotions: Iterable[float]) -> float:
    """What clients lose with these demotions of the broker, moves included."""
    total, until = 0.0, -1.0
    left = [(s.start, s.end, s.share) for s in stretches]
    for time in sorted(demotions):
        if time < until:
            continue
        total += MOVE_SECONDS
        until = _well_again(stretches, time)
        left = [cut for piece in left for cut in _without(piece, time, until)]
    return total + sum((end - start) * share for start, end, share in left)


def _without(piece: tuple[float, float, float], start: float, end: float) -> list[tuple[float, float, float]]:
    """The parts of a stretch outside a demotion."""
    begin, stop, share = piece
    parts = [(begin, min(stop, start), share), (max(begin, end), stop, share)]
    return [p for p in parts if p[1] > p[0]] if begin < end and start < stop else [piece]


def _well_again(stretches: Sequence[Stretch], time: float) -> float:
    """When a broker that is demoted at ``time`` has been well for long enough to lead again."""
    until = time + WELL_SECONDS
    for stretch in stretches:
        if stretch.end > time and stretch.start <= until:
            until = max(until, stretch.end + WELL_SECONDS)
    return until


def _share(effect: DiskEffect, broker: int) -> float:
    """Share of writes over the objective."""
    if effect.what is Disk.STALLED:
        return 1.0
    if effect.what is not Disk.SLOW:
        return 0.0
    level = effect.levels[effect.brokers.index(broker)]
    objective = Objectives().produce_milliseconds / 1000
    return 1 - NormalDist().cdf(log(objective / level) / _SLOW_SIGMA)


def _worst(found: Iterable[Stretch]) -> list[Stretch]:
    """Stretches that do not overlap; where some did, the largest share."""
    given = sorted(found, key=lambda s: s.start)
    if not any(a.end > b.start for a, b in pairwise(given)):
        return given
    edges = sorted({t for s in given for t in (s.start, s.end)})
    made = []
    for start, end in pairwise(edges):
        share = max((s.share for s in given if s.start <= start and end <= s.end), default=0.0)
        if share:
            made.append(Stretch(start, end, share))
    return made
