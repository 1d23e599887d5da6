"""Risk of each partition to lose writes, reads or records, from metadata and a few settings.

In: a partition, the live brokers, ``RiskInputs``. Out: a ``Diagnosis``. Pure; used by ``reporting.report`` for a
policy's status and by ``bellwether doctor``; ``remediation`` lists what a person can do. The rules are Kafka's own: the
effective ``min.insync.replicas`` is at most the number of replicas, the high watermark stops below it, and replicas
that left the ISR below it are eligible to lead once the ISR is empty (KIP-966). A cluster without that feature is
recognised by its metadata: its last ISR member stays in the ISR after it has died.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from bellwether.core.model.cluster import Cluster, Partition, PartitionKey, TopicPartition

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


class Risk(StrEnum):
    """Risk class of a partition, the worst first. ``REMOVED_BROKER`` counts partitions of worse classes as well."""

    ALL_REPLICAS_LOST = "AllReplicasLost"
    LAST_ISR_MEMBER_LOST = "LastIsrMemberLost"
    LEADER_LOST = "LeaderLost"
    UNDER_MIN_ISR = "UnderMinIsr"
    AT_MIN_ISR = "AtMinIsr"
    REMOVED_BROKER = "RemovedBroker"
    UNDER_REPLICATED = "UnderReplicated"
    IN_SYNC = "InSync"


WORST_FIRST = tuple(Risk)
MIN_ISR_CACHE_SECONDS = 60
"""Seconds for which a topic setting is cached between reconciles."""

OFFLINE = frozenset({Risk.ALL_REPLICAS_LOST, Risk.LAST_ISR_MEMBER_LOST, Risk.LEADER_LOST})

RISK_DESCRIPTIONS: Mapping[Risk, str] = {
    Risk.ALL_REPLICAS_LOST: "no broker with a replica is live: no reads, no writes",
    Risk.LAST_ISR_MEMBER_LOST: "no replica that can lead without data loss is live: no reads, no writes",
    Risk.LEADER_LOST: "its leader is lost; another replica can lead without data loss and Kafka elects it",
    Risk.UNDER_MIN_ISR: "acks=all is refused; acks=1 is accepted but not visible to consumers",
    Risk.AT_MIN_ISR: "works now; losing one more broker stops acks=all",
    Risk.REMOVED_BROKER: "works, and cannot be evacuated: the replica list names a broker that is not registered",
    Risk.UNDER_REPLICATED: "works, with fewer replicas in sync than configured",
    Risk.IN_SYNC: "every replica is in sync",
}


@dataclass(frozen=True, slots=True)
class LogEndSample:
    """End of a partition's log on its leader when it was last sampled; ``end`` is an offset."""

    end: int
    at: datetime
    leader: int
    leader_epoch: int


@dataclass(frozen=True)
class RiskInputs:
    """Inputs in addition to metadata. What a mapping does not contain is unknown.

    ``floors`` is ``min.insync.replicas`` by topic, ``unclean`` whether Kafka elects uncleanly by itself, ``samples``
    the last samples, ``ends`` the current log ends of live replicas, by partition and broker.
    """

    floors: Mapping[str, int] = field(default_factory=dict)
    unclean: Mapping[str, bool] = field(default_factory=dict)
    samples: Mapping[PartitionKey, LogEndSample] = field(default_factory=dict)
    ends: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    removed: frozenset[int] = frozenset()
    """Brokers that are not registered (``Cluster.removed``)."""


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Records that an unclean election would lose, in offsets, which count records and transaction markers.

    The loss is everything in the lost log from ``candidate_end`` on. That log reached at least ``sample.end``, where
    its last leader was sampled in its term; later writes are in no sample.
    """

    candidate: int
    candidate_end: int | None
    sample: LogEndSample | None
    last_term: bool = True
    """Whether the sample is of the leader that was lost; the end of an earlier one may have been truncated since."""

    @property
    def least(self) -> int | None:
        """Minimum loss in offsets; None if unknown."""
        if self.candidate_end is None or self.sample is None or not self.last_term:
            return None
        return max(0, self.sample.end - self.candidate_end)

    def __str__(self) -> str:
        known = self.candidate_end is not None
        where = f"broker {self.candidate}'s log ends at offset {self.candidate_end if known else 'unknown'}"
        if self.sample is None:
            return f"the loss is unknown: {where}, and the end of the lost log was never sampled"
        at = f"{self.sample.at:%Y-%m-%d %H:%M:%SZ}"
        seen = f"broker {self.sample.leader}'s log had reached offset {self.sample.end} at {at}"
        if not self.last_term:
            return f"the loss is unknown: {where}; {seen}, and other brokers have led since"
        if self.least is None:
            return f"the loss is unknown: {where}; {seen}"
        return f"at least {self.least} offsets are lost, and everything written after the sample: {where}; {seen}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Risk of one partition.

    ``floor`` is the effective ``min.insync.replicas``, None while unknown. ``missing`` are the replicas outside the
    ISR, ``awaited`` those of which any one brings a leaderless partition back without loss, ``loss`` the loss of an
    unclean election, None where none is possible or needed.
    """

    partition: Partition
    risk: Risk
    floor: int | None
    missing: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()
    loss: DataLoss | None = None
    unclean: bool | None = None
    further: tuple[int, int] | None = None
    """A live replica whose log ends after the candidate's, and where: electing it instead loses less."""
    removed: tuple[int, ...] = ()
    """Replicas on brokers that are not registered: Kafka refuses each new order."""
    repaired: tuple[int, ...] = ()
    """A replica list without them (``repaired_orders``), where one was looked for."""

    @property
    def lacking(self) -> tuple[int, ...]:
        """Missing replicas that can come back: their brokers are registered."""
        return tuple(r for r in self.missing if r not in self.removed)

    @property
    def designed(self) -> bool:
        """Whether the settings alone leave no spare replica: every replica is in sync."""
        return self.risk is Risk.AT_MIN_ISR and not self.missing

    @property
    def at_risk(self) -> bool:
        """Whether there is a fault that a person may want to fix."""
        return self.risk is not Risk.IN_SYNC and not self.designed


@dataclass(frozen=True)
class RiskSummary:
    """Diagnoses of a cluster's partitions."""

    diagnoses: tuple[Diagnosis, ...]

    @cached_property
    def at_risk(self) -> tuple[Diagnosis, ...]:
        """Those at risk: the worst first, then by topic and partition."""
        found = (d for d in self.diagnoses if d.at_risk)
        return tuple(sorted(found, key=lambda d: (WORST_FIRST.index(d.risk), d.partition.name)))

    @cached_property
    def counts(self) -> Mapping[Risk, int]:
        """Number of partitions at risk per class, the worst first; empty classes are omitted."""
        return _counts(self.at_risk)

    @cached_property
    def classes(self) -> Mapping[Risk, int]:
        """The same of all partitions, those that are in sync included."""
        return _counts(self.diagnoses)


@dataclass(frozen=True, slots=True)
class MinIsrCache:
    """``min.insync.replicas`` by topic, when it was last read; a topic in ``asked`` without a value is unknown."""

    values: Mapping[str, int] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    at: datetime | None = None

    def stale(self, topics: frozenset[str], now: datetime) -> bool:
        """Whether to read again for these topics: a person may have lowered the setting to get writes back."""
        if not topics:
            return False
        return self.at is None or not topics <= self.asked or (now - self.at).total_seconds() >= MIN_ISR_CACHE_SECONDS


def partitions_at_risk(cluster: Cluster, floors: Mapping[str, int]) -> RiskSummary:
    """Diagnoses of the partitions that are not led by a full ISR: only these can be at risk."""
    live, facts = cluster.live, RiskInputs(floors, removed=cluster.removed)
    short: Iterable[Partition] = cluster.without_full_isr
    if not live.issuperset(leader for leader in cluster.leader_counts if leader is not None):
        lost = (p.leader not in live and not p.leader_unknown for p in cluster.partitions)
        short = (p for p, gone in zip(cluster.partitions, lost, strict=True) if gone or len(p.isr) < len(p.replicas))
    return RiskSummary(tuple(diagnose(p, live, facts) for p in short))


def diagnose_cluster(cluster: Cluster, facts: RiskInputs, silent: Collection[int] = ()) -> RiskSummary:
    """Diagnose every partition; ``silent`` are brokers that are alive by metadata and do not answer."""
    live, facts = cluster.live.difference(silent), replace(facts, removed=cluster.removed)
    found = tuple(diagnose(p, live, facts) for p in cluster.partitions)
    if orders := repaired_orders(cluster, live):
        found = tuple(replace(d, repaired=orders.get(d.partition.key, ())) for d in found)
    return RiskSummary(found)


def diagnose(partition: Partition, live: Collection[int], facts: RiskInputs) -> Diagnosis:
    """Diagnose one partition; ``live`` are the brokers that can lead."""
    found = _diagnose(partition, live, facts)
    removed = tuple(r for r in partition.replicas if r in facts.removed) if facts.removed else ()
    if not removed:
        return found
    return replace(
        found, removed=removed, risk=Risk.REMOVED_BROKER if found.risk is Risk.UNDER_REPLICATED else found.risk
    )


def _diagnose(p: Partition, live: Collection[int], facts: RiskInputs) -> Diagnosis:
    floor = effective_min_isr(p, facts.floors.get(p.topic))
    missing = tuple(r for r in p.replicas if r not in p.isr and r not in p.adding)
    unclean = facts.unclean.get(p.topic)
    if p.leader_unknown or (p.leader is not None and p.leader in live):
        return Diagnosis(p, _led(p, floor, missing), floor, missing, unclean=unclean)
    # Kafka takes from the ELR once the ISR is empty, which it is as soon as its last member is fenced.
    if any(r in live for r in (*p.isr, *p.elr)):
        eligible = tuple(r for r in p.replicas if r in live and (r in p.isr or r in p.elr))
        return Diagnosis(p, Risk.LEADER_LOST, floor, missing, eligible, unclean=unclean)
    awaited = (*p.isr, *p.elr) or p.last_known_elr
    candidate = next((r for r in p.replicas if r in live), None)
    if candidate is None:
        return Diagnosis(p, Risk.ALL_REPLICAS_LOST, floor, missing, awaited, unclean=unclean)
    sample, ends = facts.samples.get(p.key), facts.ends.get(p.name, {})
    # The epoch rises by one as the leader is lost.
    last_term = sample is not None and sample.leader_epoch >= p.leader_epoch - (p.leader is None)
    loss = DataLoss(candidate, ends.get(candidate), sample, last_term)
    best = max(ends, key=lambda b: ends[b], default=candidate)
    further = (best, ends[best]) if candidate in ends and ends[best] > ends[candidate] else None
    return Diagnosis(p, Risk.LAST_ISR_MEMBER_LOST, floor, missing, awaited, loss, unclean, further)


def _counts(diagnoses: Iterable[Diagnosis]) -> dict[Risk, int]:
    counted = Counter[Risk]()
    for found in diagnoses:
        counted[found.risk] += 1
        counted[Risk.REMOVED_BROKER] += bool(found.removed) and found.risk is not Risk.REMOVED_BROKER
    return {risk: counted[risk] for risk in WORST_FIRST if counted[risk]}


def _led(p: Partition, floor: int | None, missing: tuple[int, ...]) -> Risk:
    if floor is not None and len(p.isr) < floor:
        return Risk.UNDER_MIN_ISR
    if floor is not None and len(p.isr) == floor:
        return Risk.AT_MIN_ISR
    return Risk.UNDER_REPLICATED if missing else Risk.IN_SYNC


def effective_min_isr(partition: Partition, configured: int | None) -> int | None:
    """``min.insync.replicas`` as the leader applies it: at most the number of replicas."""
    return None if configured is None else min(configured, len(partition.replicas))


def repaired_orders(cluster: Cluster, live: Collection[int]) -> dict[PartitionKey, tuple[int, ...]]:
    """Orders without brokers that are not registered any more, of each partition that names one: Kafka takes such an
    order for ``kafka-reassign-partitions.sh``, since only the new list is checked.

    The others in their order, then a live broker in place of each removed one, as far as there is one.

    It is the broker with the fewest replicas, in a rack that the partition is not in where there is one. Partitions
    whose brokers are all removed, or that are being reassigned, are left out.
    """
    counts = {broker: cluster.replica_counts[broker] for broker in live} if cluster.removed else {}
    racks = {broker.id: broker.rack for broker in cluster.brokers.values()}
    found = {}
    for partition in cluster.partitions if cluster.removed else ():
        order = [r for r in partition.replicas if r not in cluster.removed]
        if partition.reassigning or not 0 < len(order) < len(partition.replicas):
            continue
        while len(order) < len(partition.replicas) and (free := counts.keys() - set(order)):
            used = {racks.get(r) for r in order}
            order.append(min(free, key=lambda b: (racks.get(b) in used, counts[b], b)))
            counts[order[-1]] += 1
        found[partition.key] = tuple(order)
    return found


def topics_short_of_replicas(partitions: Iterable[Partition]) -> frozenset[str]:
    """Topics with a partition that is not led by a full ISR: their settings are read."""
    return frozenset(p.topic for p in partitions if p.leaderless or len(p.isr) < len(p.replicas))
