"""Attribute replication lag to the slow follower or to its slow leader.

In: the lags of one round. Out: a ``LagMeasurement`` of each broker, with the lag attributed to it. Called by
``lag_round``; pure.

A slow follower lags behind all its leaders; a slow leader has lag on all its followers. The lag is therefore attributed
to a follower that lags behind at least two leaders, or behind its only active one, unless most followers of each of
these leaders lag as well. If all brokers lag, the lag is attributed to none: the cause is a shared one. Two brokers
that lag behind each other alone, and keep up with their other leaders, do not reach each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from bellwether.core.model.cluster import TopicPartition
from bellwether.probes.replication.offset_history import Lag

_NAMED_PARTITIONS = 3


@dataclass(frozen=True, slots=True)
class LagMeasurement:
    """What one round showed of one broker.

    ``behind`` are the leaders towards which it lags, ``slow_leaders`` those of them that several brokers trail and that
    no other broker explains. ``trailed_by``: the brokers that lag behind this one because it is slow.
    ``outside`` counts what it follows outside the ISR, ``returning`` what of that it has to catch up since it came
    back. ``broken_link_to``: the broker behind which alone it lags, and which lags behind it alone. A broker that was
    not measured has a ``problem``.
    """

    followed: int = 0
    worst_seconds: float = 0.0
    lagging: int = 0
    in_isr: int = 0
    worst: tuple[TopicPartition, ...] = ()
    behind: tuple[int, ...] = ()
    blamed: bool = False
    slow_leaders: tuple[int, ...] = ()
    trailed_by: tuple[int, ...] = ()
    outside: int = 0
    returning: int = 0
    problem: str = ""
    broken_link_to: int | None = None


@dataclass(slots=True)
class _Tally:
    """The lags of one follower, summed up as they come."""

    followed: int = 0
    worst_seconds: float = 0.0
    lagging: int = 0
    in_isr: int = 0
    outside: int = 0
    returning: int = 0
    worst: list[tuple[float, TopicPartition]] = field(default_factory=list)
    behind: set[int] = field(default_factory=set)
    leaders: set[int] = field(default_factory=set)

    def add(self, lag: Lag, threshold_seconds: float, *, returning: bool) -> None:
        self.followed += 1
        self.outside += not lag.in_isr
        self.leaders.add(lag.leader)
        late = lag.seconds > threshold_seconds
        if late and returning and not lag.in_isr:
            self.returning += 1
            return
        self.worst_seconds = max(self.worst_seconds, lag.seconds)
        if not late:
            return
        self.lagging += 1
        self.in_isr += lag.in_isr
        self.behind.add(lag.leader)
        heapq.heappush(self.worst, (lag.seconds, lag.name))
        if len(self.worst) > _NAMED_PARTITIONS:
            heapq.heappop(self.worst)


def weigh(
    lags: Iterable[Lag],
    threshold_seconds: float,
    active: Callable[[int, int], bool],
    returning: Collection[int] = (),
) -> dict[int, LagMeasurement]:
    """A look at each broker that follows, or leads, something that was measured.

    ``active``: whether a leader has lately written to a partition that a follower follows. ``returning``: brokers that
    have just come back; what they have to catch up outside the ISR is not counted as lag.
    """
    tallies: dict[int, _Tally] = {}
    for lag in lags:
        tally = tallies.get(lag.follower)
        if tally is None:
            tally = tallies[lag.follower] = _Tally()
        tally.add(lag, threshold_seconds, returning=lag.follower in returning)
    pressed = {b: {led for led in t.leaders if led in t.behind or active(led, b)} for b, t in tallies.items()}
    trailing = _trailing(tallies, set(tallies))
    suspects = {led for led, behind in trailing.items() if len(behind) > 1 and 2 * len(behind) > _count(led, pressed)}
    blamed = {
        broker
        for broker, tally in tallies.items()
        if tally.behind - suspects and (len(tally.behind) > 1 or pressed[broker] == tally.behind)
    }
    half = {b: next(iter(t.behind)) for b, t in tallies.items() if len(t.behind) == 1 and b not in blamed}
    half = {b: leader for b, leader in half.items() if leader not in suspects}
    left = {led: behind for led, behind in _trailing(tallies, set(tallies) - blamed).items() if len(behind) > 1}
    all_brokers = set(tallies) | {led for tally in tallies.values() for led in tally.leaders}
    found = {b: _measurement(tallies.get(b, _Tally()), b in blamed, left, left.get(b, ())) for b in sorted(all_brokers)}
    mutual = {b: other for b, other in half.items() if half.get(other) == b}
    return found | {b: replace(found[b], broken_link_to=other) for b, other in mutual.items()}


def _measurement(
    tally: _Tally, blamed: bool, slow: dict[int, tuple[int, ...]], trailed_by: tuple[int, ...]
) -> LagMeasurement:
    return LagMeasurement(
        followed=tally.followed,
        worst_seconds=tally.worst_seconds,
        lagging=tally.lagging,
        in_isr=tally.in_isr,
        worst=tuple(name for _, name in sorted(tally.worst, key=lambda item: (-item[0], item[1]))),
        behind=tuple(sorted(tally.behind)),
        blamed=blamed,
        slow_leaders=tuple(sorted(tally.behind & set(slow))) if not blamed else (),
        trailed_by=trailed_by,
        outside=tally.outside,
        returning=tally.returning,
    )


def _trailing(tallies: dict[int, _Tally], brokers: set[int]) -> dict[int, tuple[int, ...]]:
    """Which of these brokers lag behind each leader."""
    found: dict[int, list[int]] = {}
    for broker in sorted(brokers):
        for leader in tallies[broker].behind:
            found.setdefault(leader, []).append(broker)
    return {leader: tuple(behind) for leader, behind in found.items()}


def _count(leader: int, pressed: dict[int, set[int]]) -> int:
    """How many brokers follow the leader where it writes."""
    return sum(leader in leaders for leaders in pressed.values())
