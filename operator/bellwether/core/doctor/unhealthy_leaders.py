"""Partitions that Kafka serves and clients do not get, or get slowly: by an unhealthy leader, or by a slow follower.

In: a ``Cluster``, and what a policy says of its brokers. Out: ``UnhealthyLeader``s and ``SlowFollower``s, and what one
slow disk would do. Pure; used by ``bellwether doctor``. Metadata alone cannot show it: such a broker is alive, and in
every ISR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bellwether.core.doctor.judged_brokers import IdleBroker, JudgedBrokers, SlowBroker, UnhealthyBroker
from bellwether.core.doctor.remediation import Remediation
from bellwether.core.model.cluster import Cluster, Partition, TopicPartition

ACKS_ALL_FIGURES = "measured with a disk 80 ms slower per write and 60 records a second: 38 of 40 s lost"
"""What a slow ISR member does to ``acks=all``, from docs/internals/cures.md, with the conditions."""


FETCHERS = "num.replica.fetchers"
KEEPS_UP_SHARE = 0.7
"""Share of its time for which a replica fetcher can append without falling behind (docs/internals/cures.md)."""


@dataclass(frozen=True)
class UnhealthyLeader:
    """An unhealthy broker and the partitions that it leads: at least one.

    ``movable`` of them have another ISR member that may lead now; ``idle`` are brokers that could lead others, if the
    person who demoted them allowed it.
    """

    broker: UnhealthyBroker
    partitions: tuple[Partition, ...]
    movable: int
    idle: tuple[IdleBroker, ...] = ()

    @cached_property
    def topics(self) -> Mapping[str, int]:
        """How many of these partitions each topic has; the most first, then by name."""
        counted = Counter(p.topic for p in self.partitions)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    @property
    def remediations(self) -> tuple[Remediation, ...]:
        """What helps, the fastest first: a demotion by hand only where it moves a leader."""
        by_hand = (self.broker.by_hand,) if self.broker.by_hand is not None and self.movable else ()
        return (*(one.remediation for one in self.idle), *by_hand, *self.broker.remediations)


@dataclass(frozen=True, slots=True)
class SlowFollower:
    """A slow broker, and how many partitions that other brokers lead have it in their ISR: at least one."""

    broker: SlowBroker
    partitions: int


def unhealthy_leaders(cluster: Cluster, judged: JudgedBrokers) -> tuple[UnhealthyLeader, ...]:
    """Those of the unhealthy brokers that lead a partition; the most partitions first, then by id."""
    led: dict[int, list[Partition]] = {broker.broker: [] for broker in judged.unhealthy}
    free = cluster.live.difference(judged.demoted, led)
    for partition in cluster.partitions:
        if partition.leader in led:
            led[partition.leader].append(partition)
    found = [_leader(one, tuple(led[one.broker]), free, judged) for one in judged.unhealthy if led[one.broker]]
    return tuple(sorted(found, key=lambda leader: (-len(leader.partitions), leader.broker.broker)))


def _leader(
    broker: UnhealthyBroker, led: tuple[Partition, ...], free: frozenset[int], judged: JudgedBrokers
) -> UnhealthyLeader:
    stuck = [p for p in led if free.isdisjoint(p.isr)]
    able = {b for p in stuck for b in p.isr}
    return UnhealthyLeader(broker, led, len(led) - len(stuck), tuple(i for i in judged.idle if i.broker in able))


def slow_followers(cluster: Cluster, judged: JudgedBrokers) -> tuple[SlowFollower, ...]:
    """Slow brokers for which ``acks=all`` waits in partitions that others lead, by id."""
    slow = {one.broker for one in judged.slow}
    waiting = Counter(b for p in cluster.partitions for b in slow.intersection(p.isr) if p.leader not in (None, b))
    found = (SlowFollower(one, waiting[one.broker]) for one in judged.slow if waiting[one.broker])
    return tuple(sorted(found, key=lambda follower: follower.broker.broker))


@dataclass(frozen=True, slots=True)
class SlowDiskForecast:
    """What slow writes would do to the follower that they would hurt first. ``appends`` are appends a second of each
    partition that it follows, by leader; ``fetchers`` is its ``num.replica.fetchers``: a thread for each leader and
    fetcher appends one partition after the other.
    """

    broker: int
    appends: Mapping[tuple[int, TopicPartition], float]
    fetchers: int

    @property
    def appends_per_second(self) -> float:
        """Of all that it follows."""
        return sum(self.appends.values())

    @property
    def sources(self) -> int:
        """From how many leaders it fetches."""
        return len({leader for leader, _ in self.appends})

    def keeps_up_seconds(self, fetchers: int = 0) -> float:
        """How long an append may take until acks=all waits for it where it follows; with other fetchers, if given.

        The busiest thread decides.
        """
        threads: dict[tuple[int, int], float] = {}
        for (leader, name), each in self.appends.items():
            thread = leader, _fetcher(name, fetchers or self.fetchers)
            threads[thread] = threads.get(thread, 0.0) + each
        return KEEPS_UP_SHARE / max(threads.values())


def _fetcher(name: TopicPartition, fetchers: int) -> int:
    """The fetcher of a partition, as Kafka 4.3 chooses it (kafka.server.AbstractFetcherManager.getFetcherId)."""
    code = 0
    for unit in name.topic:
        code = 31 * code + ord(unit)
    code = (31 * code + name.partition + (1 << 31)) % (1 << 32) - (1 << 31)  # an int of Java
    return (0 if code == -(1 << 31) else abs(code)) % fetchers


def slow_disk_forecast(
    cluster: Cluster, appends: Mapping[TopicPartition, float], fetchers: Mapping[int, int]
) -> SlowDiskForecast | None:
    """The forecast by appends a second of each partition; None where none is measured, or no fetchers are known."""
    found = []
    for broker in sorted(cluster.live & fetchers.keys()):
        followed = [p for p in cluster.followed_in_sync_by(broker) if appends.get(p.name)]
        if followed:
            each = {(p.leader, p.name): appends[p.name] for p in followed if p.leader is not None}
            found.append(SlowDiskForecast(broker, each, fetchers[broker]))
    return min(found, key=lambda one: (one.keeps_up_seconds(), one.broker), default=None)
