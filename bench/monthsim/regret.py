"""Regret: what clients lost under a rule set, moves included, against a clairvoyant that knows every duration.

In: a month and a rule set's cures. Out: both sums, in seconds of all requests to what a broker leads. Which clients
lose by a fault, and what a cure ends of it, is in ``relief``. Harm that no allowed cure ends (restarts, a
single pause, acks=all of a broker that freezes or where no broker is held, a cluster cut off as a whole) is the same
for every rule and is left out, which makes the ratio larger. A disk that is slow for 1 s in every 10 loses the
allowance, which all bear. Called by ``scoring``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, log
from statistics import NormalDist
from typing import NamedTuple

from bellwether.core.doctor.unhealthy_leaders import KEEPS_UP_SHARE
from bellwether.core.model.history.move_cost import MoveCost
from bellwether.core.settings.harm import LEADING_LOST_SECONDS, Objectives
from monthsim.assumptions import LEADERS, REPLICAS
from monthsim.episodes import DISK_FAULTS, EXTERNAL_FAULTS, FENCED_SECONDS, Disk, DiskEffect, Kind, Month, Path
from monthsim.relief import RELIEF, Cure, Fault, Lost

MOVE_SECONDS = MoveCost().seconds
"""What moving leaders away and back costs, for every rule set and for the clairvoyant; a hold costs the same."""

CURED = EXTERNAL_FAULTS | DISK_FAULTS | {Kind.DISK_HICCUP, Kind.FREEZING}
WELL_SECONDS = 60.0
"""A demotion or a hold lasts until its broker has been well for so long."""

TOGETHER_SECONDS = 600.0
"""Harm with shorter gaps is one episode, in which the clairvoyant pays for at most one move."""

_SLOW_SIGMA = 0.2

IN_FLIGHT_SECONDS: Mapping[tuple[Fault, Cure], float] = {
    (Fault.LEADS_SLOWLY, Cure.DEMOTION): 7,
    (Fault.LEADS_SLOWLY, Cure.HELD): 1,
    (Fault.STALLED, Cure.DEMOTION): 27,
    (Fault.STALLED, Cure.HELD): 3,
}
"""How long requests to what the broker led are lost after the cure as before: those in flight wait for their timeout.
Measured with ``make bench-cures``: the median, less the 3 s before the cure; 0 where nothing is listed.
"""

Price = Callable[[float], float]
"""What a move at a time costs."""


class Cured(NamedTuple):
    """Share of requests lost with a cure: ``then``, and ``first`` in its first ``seconds``, by requests in flight."""

    then: float = 0.0
    first: float = 0.0
    seconds: float = 0.0

    def lost(self, since: float, start: float, end: float) -> float:
        """Seconds lost from ``start`` to ``end`` by a cure that was taken at ``since``."""
        first = min(max(0.0, since + self.seconds - start), end - start)
        return first * self.first + (end - start - first) * self.then


_AT_ONCE = Cured()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds in which a share of a broker's requests is lost: without a cure, while it is demoted, while it is held.

    Kafka fences the broker at ``fenced_at`` and ends the loss, if it has not been demoted by then.
    """

    start: float
    end: float
    share: float
    demoted: Cured = _AT_ONCE
    held: Cured = _AT_ONCE
    fenced_at: float = inf

    @property
    def lost(self) -> float:
        """Seconds lost without a cure."""
        return max(0.0, min(self.end, self.fenced_at) - self.start) * self.share

    @property
    def least(self) -> float:
        """Seconds lost with the best cure from the start on, a move not counted."""
        return min(self.lost, *(c.lost(self.start, self.start, self.end) for c in (self.demoted, self.held)))


def harm(month: Month, broker: int) -> list[Stretch]:
    """What clients of a broker lose, in order; of stretches that overlap the worst counts."""
    found = []
    for episode in month.episodes:
        if episode.kind not in CURED or broker not in episode.brokers:
            continue
        found += [
            _stretch(month, p.start, p.end, Fault.UNREACHABLE, 1.0)
            for p in episode.paths
            if broker in p.brokers and p.external and p.what in (Path.REFUSED, Path.DROPPED)
        ]
        # acks=all waits for it as a follower as well: a demotion ends nothing of that, and a hold was not measured.
        acks_one = 1 - month.world.acks_all_share
        found += [Stretch(p.start, p.end, acks_one) for p in episode.paths if p.what is Path.FROZEN]
        found += [_on_disk(month, d, broker) for d in episode.disks if broker in d.brokers]
    return _worst(s for s in found if s.share > 0.01 and s.end > s.start)


def without_agent(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same where no broker can be held, less what is lost with demotion and without alike."""
    made = []
    for s in stretches:
        alike = min(s.share, s.demoted.then) if s.fenced_at >= s.end else 0.0
        left = Cured(s.demoted.then - alike, s.demoted.first - alike, s.demoted.seconds)
        made.append(replace(s, share=s.share - alike, demoted=left, held=left))
    return made


def price(month: Month, broker: int) -> Price:
    """What moving a broker's leaders costs: more while a replica of what it leads is on a disk with slow syncs."""
    sharing = {(broker + k) % month.brokers for k in range(REPLICAS)}
    effects = [d for e in month.episodes for d in e.disks if d.what is Disk.SYNCS and not sharing.isdisjoint(d.brokers)]

    def cost(time: float) -> float:
        sync = max((max(d.levels) for d in effects if d.start <= time < d.end), default=0.0)
        waited = MoveCost().with_syncs(LEADERS, sync).seconds - MOVE_SECONDS
        # acks=all waits on all partitions that the broker has a replica of (docs/internals/cures.md).
        return MOVE_SECONDS + waited * month.world.acks_all_share * REPLICAS

    return cost


def clairvoyant(stretches: Sequence[Stretch], cost: Price = lambda _: MOVE_SECONDS) -> float:
    """The least that clients can lose: each episode is borne, or moved away from as it begins, by the best cure."""
    total, lost, least, end, start = 0.0, 0.0, 0.0, 0.0, 0.0
    for stretch in stretches:
        if stretch.start - end > TOGETHER_SECONDS:
            total, lost, least, start = total + min(lost, cost(start) + least), 0.0, 0.0, stretch.start
        start = start or stretch.start
        lost, least, end = lost + stretch.lost, least + stretch.least, stretch.end
    return total + min(lost, cost(start) + least)


def suffered(
    stretches: Sequence[Stretch], cures: Iterable[tuple[float, Cure]], cost: Price = lambda _: MOVE_SECONDS
) -> float:
    """What clients lose with these cures of the broker, moves included."""
    total = 0.0
    spans: list[tuple[float, float, Cure]] = []
    for time, cure in sorted(cures):
        if spans and time < spans[-1][1]:
            start, end, before = spans[-1]
            if (before, cure) == (Cure.DEMOTION, Cure.HELD):  # it leads nothing: no leader moves
                spans[-1:] = [(start, time, before), (time, end, cure)]
            continue
        total += cost(time)
        spans.append((time, _well_again(stretches, time), cure))
    return total + sum(_left(stretch, spans) for stretch in stretches)


def _left(stretch: Stretch, spans: Sequence[tuple[float, float, Cure]]) -> float:
    """What a stretch loses with cures from one time to another."""
    fenced = not any(start <= stretch.fenced_at < until for start, until, _ in spans)
    end = min(stretch.end, stretch.fenced_at) if fenced else stretch.end
    lost = max(0.0, end - stretch.start) * stretch.share
    for start, until, cure in spans:
        begin, stop = max(stretch.start, start), min(end, until)
        if stop > begin:
            cured = stretch.held if cure is Cure.HELD else stretch.demoted
            lost += cured.lost(start, begin, stop) - (stop - begin) * stretch.share
    return lost


def _well_again(stretches: Sequence[Stretch], time: float) -> float:
    """When a broker that is demoted or held at ``time`` has been well for long enough to lead again."""
    until = time + WELL_SECONDS
    for stretch in stretches:
        if stretch.end > time and stretch.start <= until:
            until = max(until, stretch.end + WELL_SECONDS)
    return until


def _on_disk(month: Month, effect: DiskEffect, broker: int) -> Stretch:
    """What clients lose by a disk: the share of writes over the objective, of each kind of client."""
    if effect.what is Disk.STALLED:
        found = _stretch(month, effect.start, effect.end, Fault.STALLED, 1.0)
        return replace(found, fenced_at=effect.start + FENCED_SECONDS) if month.metadata_hangs else found
    if effect.what is not Disk.SLOW:
        return Stretch(effect.start, effect.end, 0.0)
    level = effect.levels[effect.brokers.index(broker)]
    objective = Objectives().produce_milliseconds / 1000
    share = 1 - NormalDist().cdf(log(objective / level) / _SLOW_SIGMA)
    if keeps_up(month, level):
        fault = Fault.KEEPS_UP
    else:
        fault = Fault.LEADS_SLOWLY if level >= LEADING_LOST_SECONDS else Fault.TRAILS
    return _stretch(month, effect.start, effect.end, fault, share)


def keeps_up(month: Month, append_seconds: float) -> bool:
    """Whether a follower keeps up whose appends take so long."""
    return append_seconds * month.fetcher_appends < KEEPS_UP_SHARE


def _stretch(month: Month, start: float, end: float, fault: Fault, share: float) -> Stretch:
    """A stretch by kinds of clients; a broker follows ``REPLICAS - 1`` times as many partitions as it leads."""
    acks_all = month.world.acks_all_share

    def weighed(by: Lost) -> float:
        followed = (REPLICAS - 1) * by.all_followed
        return share * (acks_all * (by.all_led + followed) + (1 - acks_all) * by.one_led)

    def cured(cure: Cure) -> Cured:
        then = RELIEF[fault][cure]
        first = none._replace(all_followed=then.all_followed)
        return Cured(weighed(then), weighed(first), IN_FLIGHT_SECONDS.get((fault, cure), 0.0))

    none = RELIEF[fault][Cure.NONE]
    return Stretch(start, end, weighed(none), cured(Cure.DEMOTION), cured(Cure.HELD))


def _worst(found: Iterable[Stretch]) -> list[Stretch]:
    """Stretches that do not overlap; where some did, the one that loses most without a cure."""
    given = sorted(found, key=lambda s: s.start)
    if not any(a.end > b.start for a, b in pairwise(given)):
        return given
    edges = sorted({t for s in given for t in (s.start, s.end)})
    made = []
    for start, end in pairwise(edges):
        there = [s for s in given if s.start <= start and end <= s.end]
        if there:
            made.append(replace(max(there, key=lambda s: s.share), start=start, end=end))
    return made
