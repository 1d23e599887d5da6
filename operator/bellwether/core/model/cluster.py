"""Kafka cluster metadata at one moment: brokers and partitions, immutable.

Built by the adapters from cluster metadata; read by every later stage. A broker that metadata does not name is not in
``Cluster.brokers``, though replica lists may still name it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from bellwether.core.settings.placement import Scope


class PartitionKey(NamedTuple):
    """Identity of a partition that survives topic re-creation: a topic id is never reused (KIP-516)."""

    topic_id: str
    partition: int


class TopicPartition(NamedTuple):
    """Name of a partition in Kafka's admin requests."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. A ``fenced`` broker is registered but the controller lets it lead nothing."""

    id: int
    rack: str | None = None
    host: str = ""
    port: int = 0
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as metadata describes it; ``replicas`` is in replica order, the first is the preferred leader.

    ``last_known_elr`` is set for a partition whose ISR and ELR are empty: its last leader (KIP-966).
    ``leader_unknown``: it has a leader that metadata does not name, as that broker lacks the listener that was asked;
    ``leader`` is None then. ``offline`` are replicas that cannot serve, on a live broker because of a failed log
    directory.
    """

    topic: str
    topic_id: str
    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int = -1
    elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    internal: bool = False
    last_known_elr: tuple[int, ...] = ()
    leader_unknown: bool = False
    offline: tuple[int, ...] = ()

    @property
    def leaderless(self) -> bool:
        """Whether Kafka says that no broker leads it."""
        return self.leader is None and not self.leader_unknown

    @property
    def leader_text(self) -> str:
        """Who leads it, in words."""
        if self.leader is not None:
            return f"led by broker {self.leader}"
        return "led by a broker that Kafka does not name" if self.leader_unknown else "no leader"

    @property
    def key(self) -> PartitionKey:
        """The partition's identity: topic id and index."""
        return PartitionKey(self.topic_id, self.index)

    @property
    def name(self) -> TopicPartition:
        """The name that admin requests use."""
        return TopicPartition(self.topic, self.index)

    @property
    def reassigning(self) -> bool:
        """Whether replicas are being added or removed at this moment (KIP-455)."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The order once the current reassignment has completed."""
        return tuple(r for r in self.replicas if r not in self.removing)


@dataclass(frozen=True)
class Cluster:
    """Cluster metadata. ``elr_enabled``: eligible leader replicas are enabled (KIP-966). ``immovable``: why no leader
    can be moved in it at all, as far as that is known. ``proving``: only until its brokers were asked what they hold.

    ``serving`` are brokers that metadata does not list and that follow the metadata log.
    ``removed`` are the brokers that replica lists name and that are not registered, not even fenced: Kafka refuses each
    order that names one. Both empty where Kafka does not list its registrations (before 4.0), or its quorum is unknown.

    What several steps need of all partitions is derived here, once: the readers return the same cluster while metadata
    does not change, so that a settled cluster is not counted again.
    """

    cluster_id: str
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    elr_enabled: bool = False
    immovable: str = ""
    proving: bool = False
    serving: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()

    @cached_property
    def by_key(self) -> Mapping[PartitionKey, Partition]:
        """Partitions by topic id and index."""
        return {partition.key: partition for partition in self.partitions}

    @cached_property
    def live(self) -> frozenset[int]:
        """Ids of brokers that are registered and not fenced: those that can lead."""
        return frozenset(b.id for b in self.brokers.values() if not b.fenced)

    @cached_property
    def unlisted(self) -> frozenset[int]:
        """Brokers that serve and that metadata does not list: they lack the listener that was asked.

        The controller removes a broker that it fences from every ISR of more than one, so one that is in such an ISR
        is alive; so is each that may be the leader that metadata does not name, and one that follows the metadata log.
        """
        absent = self.named.difference(self.brokers)
        proofs = ((b, p) for b in absent for p in self.held_by(b) if b in p.isr)
        return self.serving.union(b for b, p in proofs if p.leader_unknown or len(p.isr) > 1)

    def without_listener(self, broker: int) -> str:
        """What is so of an unlisted broker, and what to do."""
        known = next((f" ({b.host}:{b.port} of broker {b.id})" for b in self.brokers.values() if b.host), "")
        led = sum(p.leader_unknown and broker in p.isr for p in self.held_by(broker))
        leads = f", and Kafka does not name the leader of {led} partitions that it may lead" if led else ""
        return (
            f"it is alive and lacks the listener of the bootstrap servers{known}{leads}. Give broker {broker} that"
            " listener, or use bootstrap servers of a listener that every broker has"
        )

    @cached_property
    def offline_counts(self) -> Counter[int]:
        """How many replicas of each live broker are offline: its log directory has failed."""
        offline = Counter(chain.from_iterable([p.offline for p in self.partitions if p.offline]))
        return Counter({broker: count for broker, count in offline.items() if broker in self.live})

    def offline_message(self, broker: int) -> str:
        """What is so of a live broker with offline replicas, and what to do."""
        count, total = self.offline_counts[broker], self.replica_counts[broker]
        return (
            f"{count} of its {total} replicas are offline: a log directory has failed. Kafka has moved their leaders."
            " Find the directory in the broker's log, repair or replace its disk, and restart the broker"
        )

    @property
    def incomplete(self) -> tuple[str, ...]:
        """What metadata shows that the brokers' signals do not: missing listeners, failed log directories."""
        unlisted = [f"broker {b}: {self.without_listener(b)}" for b in sorted(self.unlisted)]
        return (*unlisted, *(f"broker {b}: {self.offline_message(b)}" for b in sorted(self.offline_counts)))

    @cached_property
    def named(self) -> frozenset[int]:
        """Ids of every broker that is registered or named in a replica list."""
        return frozenset(self.brokers).union(self.replica_counts)

    @cached_property
    def topics(self) -> Mapping[str, bool]:
        """The topics, and whether each is internal."""
        return {p.topic: p.internal for p in self.partitions}

    @cached_property
    def topic_sizes(self) -> Counter[str]:
        """How many partitions each topic has."""
        return Counter([p.topic for p in self.partitions])

    @cached_property
    def leader_counts(self) -> Counter[int | None]:
        """How many partitions each broker leads; under None, how many have none, or one that is not named."""
        return Counter([p.leader for p in self.partitions])

    @cached_property
    def preferred_counts(self) -> Counter[int]:
        """How many partitions have each broker as their preferred leader."""
        return Counter([p.replicas[0] for p in self.partitions])

    @cached_property
    def replica_counts(self) -> Counter[int]:
        """How many replicas each broker has."""
        return Counter(chain.from_iterable([p.replicas for p in self.partitions]))

    @cached_property
    def _held(self) -> Mapping[int, Sequence[Partition]]:
        held: defaultdict[int, list[Partition]] = defaultdict(list)
        for partition in self.partitions:
            for broker in partition.replicas:
                held[broker].append(partition)
        return held

    @cached_property
    def coordinators(self) -> frozenset[int]:
        """Brokers with replicas of internal topics; by replicas, as leaders change with every move."""
        return frozenset(chain.from_iterable([p.replicas for p in self.partitions if p.internal]))

    @cached_property
    def leaving(self) -> frozenset[int]:
        """Brokers that hold replicas but are in no ISR together with another replica.

        In a controlled shutdown the controller first removes the broker from every ISR (KIP-841).
        """
        apart = {r for p in self.without_full_isr for r in p.replicas if r not in p.isr}
        if not apart:
            return frozenset()
        return frozenset(apart).difference(*{p.isr for p in self.partitions if len(p.isr) > 1})

    @cached_property
    def without_full_isr(self) -> tuple[Partition, ...]:
        """Partitions that have no leader, or replicas outside the ISR."""
        return tuple(
            [p for p in self.partitions if len(p.isr) < len(p.replicas) or (p.leader is None and not p.leader_unknown)]
        )

    @cached_property
    def without_preferred_leader(self) -> tuple[Partition, ...]:
        """Partitions that are not led by the first of their order."""
        return tuple([p for p in self.partitions if p.leader != p.replicas[0] and not p.leader_unknown])

    @cached_property
    def reassigning(self) -> tuple[Partition, ...]:
        """Partitions whose replicas are being added or removed."""
        return tuple([p for p in self.partitions if p.adding or p.removing])

    @cached_property
    def _narrowed(self) -> dict[Scope | str, Cluster]:
        return {}

    def _narrow(self, by: Scope | str, kept: Iterable[Partition]) -> Cluster:
        partitions = tuple(kept)
        same = len(partitions) == len(self.partitions)
        return self._narrowed.setdefault(by, self if same else replace(self, partitions=partitions))

    def within(self, scope: Scope) -> Cluster:
        """The same cluster with the partitions of topics in scope alone, made once."""
        if scope.whole or scope in self._narrowed:
            return self._narrowed.get(scope, self)
        covered = {topic for topic in self.topics if scope.covers(topic)}
        return self._narrow(scope, [p for p in self.partitions if p.topic in covered])

    def without_pinned(self, topic: str) -> Cluster:
        """The same cluster without the partitions of a topic that have one replica, made once."""
        if topic not in self.topics or topic in self._narrowed:
            return self._narrowed.get(topic, self)
        return self._narrow(topic, [p for p in self.partitions if p.topic != topic or len(p.replicas) > 1])

    def including(self, fresh: Iterable[Partition]) -> Cluster:
        """The same cluster with some partitions replaced by a later read."""
        merged = {**self.by_key, **{p.key: p for p in fresh}}
        return replace(self, partitions=tuple(merged.values()))

    def leaders(self) -> dict[int, int]:
        """How many partitions each named broker leads."""
        named = dict.fromkeys(sorted(self.named), 0)
        return named | {leader: count for leader, count in self.leader_counts.items() if leader is not None}

    def held_by(self, broker: int) -> Sequence[Partition]:
        """Every partition that has a replica on the broker."""
        return self._held.get(broker, ())

    def followed_in_sync_by(self, broker: int) -> Iterator[Partition]:
        """Every partition that another broker leads and in whose ISR this one is: acks=all waits for it there."""
        return (p for p in self.held_by(broker) if broker in p.isr and p.leader not in (None, broker))
