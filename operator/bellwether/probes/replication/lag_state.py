"""Replication lag state of one broker, updated round by round.

In: looks (what one round showed of the broker, blame included) and thresholds. Out: a ``Signal`` with a message for a
person, and whether it is news. Called by ``replication_probe``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bellwether.core.model.cluster import TopicPartition
from bellwether.core.settings.detection import ReplicationLag
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.replication.offset_history import Lag
from bellwether.probes.result_window import Streak, apart, signal_of, times

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


# A lag alone is news at most this often, and only when it has more than doubled or halved above the threshold.
LAG_NEWS_SECONDS = 10.0
_LAG_NEWS_RATIO = 2.0
# What a broker that comes back has to catch up outside the ISR is not held against it for so long: as long as a
# restarted broker is given to become reachable again.
RETURN_SECONDS = 180.0
_NAMED_BROKERS = 5
# Two brokers have to lag behind each other alone, in one round, for so many rounds: more than chance explains.
_LINK_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Lags:
    """One broker's replication up to now. ``returned`` is when it came back from silence, monotonic seconds."""

    streak: Streak = field(default_factory=Streak)
    last: LagMeasurement = field(default_factory=LagMeasurement)
    kind: str = ""
    """The class of what is being seen, without figures, once seen often enough to be reported."""
    kind_seen: tuple[str, int] = ("", 0)
    broken_link_to: int | None = None
    """The broker that it and this one do not reach, once that, or its end, is seen often enough to be reported."""
    link_seen: tuple[int | None, int] = (None, 0)
    troubles: int = 0
    returned: float | None = None

    def after(self, measurement: LagMeasurement, settings: ReplicationLag, now: datetime, at: float) -> Lags:
        """What is known after one more round, made ``at`` this monotonic time."""
        if measurement.problem:
            return self._troubled(measurement, settings, now)
        # Once it is back in every ISR it has returned. Until then going away again begins no new grace.
        returned = self.returned if self.returned is not None else at if self.troubles else None
        if not measurement.outside:
            returned = None
        streak = self.streak.seen(not measurement.blamed, now, settings)
        kind = _kind(measurement)
        seen = (kind, self.kind_seen[1] + 1 if kind == self.kind_seen[0] else 1)
        turned = streak.reading is not self.streak.reading
        settled = kind if turned or seen[1] >= max(1, settings.failure_threshold) else self.kind
        other = measurement.broken_link_to
        link_seen = (other, self.link_seen[1] + 1 if other == self.link_seen[0] else 1)
        link = other if link_seen[1] >= _LINK_ROUNDS else self.broken_link_to
        return Lags(streak, measurement, settled, seen, link, link_seen, returned=returned)

    def returning(self, at: float) -> bool:
        """Whether it has come back so lately that what it has to catch up is not held against it."""
        if self.returned is None:
            return self.troubles > 0
        return at - self.returned <= RETURN_SECONDS

    def signal(self, broker: int, source: str) -> Signal | None:
        """The signal to report; ``None`` while the broker has not been judged."""
        known = self.streak.reading is not Reading.UNKNOWN and self.last.followed
        value = round(self.last.worst_seconds, 1) if known else None
        evidence = {"message": self.message(), "value": value, "broken_link_to": self.broken_link_to if known else None}
        return signal_of(self.streak, broker, SignalType.REPLICATION_LAG, source, **evidence)

    def differs(self, posted: Lags | None, seconds_since: float, settings: ReplicationLag) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or (self.streak.reading, self.kind) != (posted.streak.reading, posted.kind):
            return True
        if self.broken_link_to != posted.broken_link_to:
            return True
        if seconds_since < LAG_NEWS_SECONDS:
            return False
        floor = float(settings.threshold_seconds)
        return apart(self.last.worst_seconds, posted.last.worst_seconds, floor, _LAG_NEWS_RATIO)

    def message(self) -> str:
        """One sentence for a person, with figures as they are now."""
        reading = self.streak.reading
        if reading is Reading.UNKNOWN and not self.last.problem:
            return f"measured again{times(self.streak.successes)}"
        if reading is Reading.FAILING and not self.last.lagging:
            return f"keeps up again{times(self.streak.successes)}"
        return sentence(self.last)

    def _troubled(self, measurement: LagMeasurement, settings: ReplicationLag, now: datetime) -> Lags:
        """Without an answer the lag is unknown; if that lasts, the former reading is dropped."""
        troubles = self.troubles + 1
        if troubles < max(1, settings.failure_threshold):
            return replace(self, troubles=troubles)
        kind = "unmeasured"
        return Lags(
            self.streak.lost(now), measurement, kind, (kind, troubles), troubles=troubles, returned=self.returned
        )


def sentence(measurement: LagMeasurement) -> str:
    """One measurement as a sentence."""
    if measurement.problem:
        return f"not measured: {measurement.problem}"
    if measurement.lagging:
        said = _behind(measurement) if measurement.blamed else f"{_behind(measurement)}; {_excuse(measurement)}"
    elif measurement.returning:
        said = f"is back and catches up on {_partitions(measurement.returning)}, none of them in the ISR"
    else:
        said = f"keeps up on {_partitions(measurement.followed)}" if measurement.followed else "follows no partition"
    if measurement.trailed_by:
        said += f"; brokers {_some(measurement.trailed_by)} lag on partitions that it leads: it serves them slowly"
    return said


def _kind(measurement: LagMeasurement) -> str:
    """What is seen, without figures. Who trails whom is part of it, how far is not."""
    if measurement.blamed:
        said = "in the ISR" if measurement.in_isr else "out of the ISR"
    elif measurement.slow_leaders:
        said = f"slow leaders {_some(measurement.slow_leaders)}"
    elif measurement.lagging:
        said = f"behind {_some(measurement.behind)}"
    else:
        said = ""
    return f"{said} | trailed by {_some(measurement.trailed_by)}" if measurement.trailed_by else said


def _behind(measurement: LagMeasurement) -> str:
    held = f"{measurement.in_isr} in the ISR, delaying acks=all" if measurement.in_isr else "none of them in the ISR"
    leaders = "leader" if len(measurement.behind) == 1 else "leaders"
    first, *others = (str(name) for name in measurement.worst)
    worst = f"{first} worst, then {' and '.join(others)}" if others else f"{first} worst"
    figures = f"behind by {measurement.worst_seconds:.0f} s on {_partitions(measurement.lagging)} ({held})"
    return f"{figures}, {worst}, {leaders} {_some(measurement.behind)}"


def _excuse(measurement: LagMeasurement) -> str:
    if (other := measurement.broken_link_to) is not None:
        return f"broker {other} lags behind this one alone, too: the two do not reach each other"
    if measurement.slow_leaders:
        slow = "that leader" if len(measurement.slow_leaders) == 1 else "these leaders"
        return f"not blamed: other brokers lag behind {slow}, too ({_some(measurement.slow_leaders)})"
    return "not blamed: it keeps up with its other leaders: check the network between the two"


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _some(brokers: Sequence[int]) -> str:
    rest = f" and {len(brokers) - _NAMED_BROKERS} more" if len(brokers) > _NAMED_BROKERS else ""
    return ", ".join(str(broker) for broker in brokers[:_NAMED_BROKERS]) + rest
