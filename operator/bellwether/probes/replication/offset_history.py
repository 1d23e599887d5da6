"""Offset history: replication lag in seconds, from when the leader's log ended where the follower's ends now.

In: round after round, the cluster's map and where each broker's copies end. Out: one ``Lag`` for each follower of each
partition whose leader and follower both answered. Called by ``replication_probe``. No IO and no clock: times come with
the answers. Every lag is a lower bound, by at most the time between two rounds: an end that was first seen after it was
reached, or a follower asked before its leader, never looks like lag.

A leader's ends are remembered only while a follower is behind them, so a healthy cluster costs next to nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bellwether.core.model.cluster import Cluster, Partition, PartitionKey, TopicPartition
from bellwether.ports.kafka import BrokerLogEnds

# Of one leader's log: enough to measure a lag of hours to a quarter of it.
MOST_POINTS = 64
# For so many rounds a silent follower's last end is kept; coming back later, it is measured from then on.
_KEPT_ROUNDS = 3


class Lag(NamedTuple):
    """How far one follower of one partition is behind; ``in_isr`` as of the map."""

    name: TopicPartition
    leader: int
    follower: int
    seconds: float
    records: int
    in_isr: bool


class Point(NamedTuple):
    """The leader's log ended at ``end``, at this time at the latest."""

    at: float
    end: int


@dataclass(slots=True)
class _Trail:
    leader: int
    epoch: int
    points: list[Point]
    behind: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Last log ends of followers that were behind, and for how many rounds they have not answered."""


class OffsetHistory:
    """The remembered ends of all leaders. Not for two threads at once."""

    def __init__(self) -> None:
        self._trails: dict[PartitionKey, _Trail] = {}
        self._ends: dict[PartitionKey, int] = {}
        self._grown: dict[tuple[int, int], float] = {}

    def __len__(self) -> int:
        """How many partitions have a follower behind a remembered end."""
        return len(self._trails)

    def round(self, cluster: Cluster, answers: Mapping[int, BrokerLogEnds]) -> Iterator[Lag]:
        """The lags of one round. Exhaust it: what it leaves behind is the memory of the next round."""
        trails, self._trails = self._trails, {}
        ends, self._ends = self._ends, {}
        for partition in cluster.partitions:
            key, name = partition.key, partition.name
            answer = None if partition.leader is None else answers.get(partition.leader)
            end = None if answer is None else answer.ends.get(name)
            if answer is None or end is None:
                if key in trails:
                    self._trails[key] = trails[key]
                continue
            self._ends[key] = end
            grew = end > ends.get(key, end)
            trail = _led_on(trails.get(key), partition, Point(answer.received, end))
            yield from self._followers(partition, trail, answers, grew)
            self._keep(key, trail)

    def active(self, leader: int, follower: int, since: float) -> bool:
        """Whether the leader has been seen to write, since that time, to a partition that the follower follows.

        Following idle partitions without lag is no evidence that a broker can follow.
        """
        return self._grown.get((leader, follower), float("-inf")) >= since

    def _followers(
        self, partition: Partition, trail: _Trail, answers: Mapping[int, BrokerLogEnds], grew: bool
    ) -> Iterator[Lag]:
        name, (now, end) = partition.name, trail.points[-1]
        before, trail.behind = trail.behind, {}
        for follower in partition.replicas:
            if follower == partition.leader or follower in partition.adding:
                continue  # one that is being added copies old data; that is not lag
            answer = answers.get(follower)
            reached = None if answer is None else answer.ends.get(name)
            if answer is None or reached is None:
                last, rounds = before.get(follower, (0, _KEPT_ROUNDS))
                if rounds < _KEPT_ROUNDS:
                    trail.behind[follower] = (last, rounds + 1)
                continue
            if grew:
                self._grown[trail.leader, follower] = now
            seconds = 0.0
            if reached < end:
                trail.behind[follower] = (reached, 0)
                missed = trail.points[bisect_right(trail.points, reached, key=lambda point: point.end)]
                seconds = max(0.0, answer.sent - missed.at)
            yield Lag(name, trail.leader, follower, seconds, max(0, end - reached), follower in partition.isr)

    def _keep(self, key: PartitionKey, trail: _Trail) -> None:
        if not trail.behind:
            return
        slowest = min(reached for reached, _ in trail.behind.values())
        points = trail.points[bisect_right(trail.points, slowest, key=lambda point: point.end) :]
        trail.points = _thinned(points) or trail.points[-1:]
        self._trails[key] = trail


def _led_on(trail: _Trail | None, partition: Partition, point: Point) -> _Trail:
    """The trail with one more end.

    Another leader, a new epoch or an end that went back (a truncated, restarted or re-created log) begins a new one.
    """
    leader = partition.leader
    assert leader is not None  # noqa: S101 - its end is known
    if trail is None or (trail.leader, trail.epoch) != (leader, partition.leader_epoch):
        return _Trail(leader, partition.leader_epoch, [point])
    last = trail.points[-1]
    if point.end < last.end:
        return _Trail(leader, partition.leader_epoch, [point])
    if point.end > last.end:
        trail.points.append(point)
    return trail


def _thinned(points: list[Point]) -> list[Point]:
    """At most so many points, the first and the last among them: what is long ago is known more roughly.

    Each point dropped is the one whose neighbours are the closest for their age, so lags err by the same share.
    """
    while len(points) > MOST_POINTS:
        now = points[-1].at
        _, dropped = min(
            ((points[i + 1].at - points[i - 1].at) / max(now - points[i].at, 1e-9), i)
            for i in range(1, len(points) - 1)
        )
        del points[dropped]
    return points
