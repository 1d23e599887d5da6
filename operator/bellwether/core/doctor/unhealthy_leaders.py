"""Partitions that Kafka serves and clients do not get, or get slowly: by an unhealthy leader, or by a slow follower.

In: a ``Cluster``, and what a policy says of its brokers. Out: the unhealthy brokers that lead, the slow ones that
follow, and what one slow disk would do. Pure; used by ``bellwether doctor``. Metadata alone cannot show it: such a
broker is alive, and in every ISR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bellwether.core.doctor.remediation import Remediation
from bellwether.core.model.cluster import Cluster, Partition, TopicPartition
from bellwether.core.reasons import Reason

_UNREACHABLE = "no reads, no writes"
CLIENT_IMPACT: Mapping[str, str] = {
    Reason.EXTERNALLY_UNREACHABLE: f"{_UNREACHABLE} through the external listener",
    Reason.FREEZING: f"{_UNREACHABLE} while it freezes",
    Reason.NOT_FENCED_IN_TIME: _UNREACHABLE,
    Reason.UNREACHABLE: _UNREACHABLE,
    Reason.STORAGE_SLOW: "writes fail or are slow",
    Reason.READS_SLOW: "reads fail or are slow",
}
"""What clients lose, by the reason of the leader's verdict."""

ANY_IMPACT = "requests fail or are slow"
"""What clients lose for every other reason."""


@dataclass(frozen=True, slots=True)
class UnhealthyBroker:
    """A broker that a policy judges Sick or Down, and the partitions that it leads, once they were looked for.

    ``state`` and ``reason`` are those of the verdict, ``message`` its evidence; ``kept`` is why the policy does not
    demote the broker, empty if it does. ``by_hand`` demotes it beyond the cap; None where that is not the question.
    """

    broker: int
    state: str
    reason: str
    message: str
    kept: str = ""
    remediations: tuple[Remediation, ...] = ()
    by_hand: Remediation | None = None
    partitions: tuple[Partition, ...] = ()

    @property
    def clients(self) -> str:
        """What clients lose while it leads."""
        return f"{CLIENT_IMPACT.get(self.reason, ANY_IMPACT)}: {self.message}"

    @property
    def topics(self) -> Mapping[str, int]:
        """How many of its partitions each topic has; the most first, then by name."""
        counted = Counter(p.topic for p in self.partitions)
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class SlowBroker:
    """A slow broker for which ``acks=all`` waits (``HoldsBackISR``): the reason, and why it is not held.

    ``partitions``: how many that other brokers lead have it in their ISR, once they were looked for.
    """

    broker: int
    reason: str
    not_held: str
    remediations: tuple[Remediation, ...] = ()
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class QuarantineCheck:
    """Whether a policy enables quarantine, and what is missing for it, each with the remedy."""

    enabled: bool
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedBrokers:
    """Brokers of one policy. ``demoted``: all that are kept from leading, for whatever reason.

    ``idle``: healthy ones that a person keeps from leading, with what lets each lead again.
    """

    unhealthy: tuple[UnhealthyBroker, ...] = ()
    demoted: frozenset[int] = frozenset()
    idle: Mapping[int, Remediation] = field(default_factory=dict)
    slow: tuple[SlowBroker, ...] = ()


ACKS_ALL_FIGURES = "measured with a disk 80 ms slower per write and 60 records a second: 38 of 40 s lost"
"""What a slow ISR member does to ``acks=all``, from docs/internals/cures.md, with the conditions."""


FETCHERS = "num.replica.fetchers"
KEEPS_UP_SHARE = 0.7
"""Share of its time for which a replica fetcher can append without falling behind (docs/internals/cures.md)."""


def unhealthy_leaders(cluster: Cluster, judged: JudgedBrokers) -> tuple[UnhealthyBroker, ...]:
    """Those of the unhealthy brokers that lead a partition; the most partitions first, then by id.

    What helps begins with idle brokers that could lead partitions which no other may, and a demotion by hand, where it
    moves a leader.
    """
    led: dict[int, list[Partition]] = {broker.broker: [] for broker in judged.unhealthy}
    free = cluster.live.difference(judged.demoted, led)
    for partition in cluster.partitions:
        if partition.leader in led:
            led[partition.leader].append(partition)
    found = [_leader(one, tuple(led[one.broker]), free, judged) for one in judged.unhealthy if led[one.broker]]
    return tuple(sorted(found, key=lambda leader: (-len(leader.partitions), leader.broker)))


def _leader(
    broker: UnhealthyBroker, led: tuple[Partition, ...], free: frozenset[int], judged: JudgedBrokers
) -> UnhealthyBroker:
    stuck = [p for p in led if free.isdisjoint(p.isr)]
    able = {b for p in stuck for b in p.isr}
    idle = [remediation for b, remediation in judged.idle.items() if b in able]
    by_hand = [broker.by_hand] if broker.by_hand is not None and len(stuck) < len(led) else []
    return replace(broker, partitions=led, remediations=(*idle, *by_hand, *broker.remediations))


def slow_followers(cluster: Cluster, judged: JudgedBrokers) -> tuple[SlowBroker, ...]:
    """Slow brokers for which ``acks=all`` waits in at least one partition that others lead, by id."""
    slow = {one.broker for one in judged.slow}
    waiting = Counter(b for p in cluster.partitions for b in slow.intersection(p.isr) if p.leader not in (None, b))
    found = (replace(one, partitions=waiting[one.broker]) for one in judged.slow if waiting[one.broker])
    return tuple(sorted(found, key=lambda one: one.broker))


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
