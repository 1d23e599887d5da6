"""Build the optimisation problem of a rebalance from a snapshot and its verdicts.

Pure. Moving leaders off an unhealthy broker is the task of demotion, with its cap and its guards; so a rebalance gives
such a broker nothing and takes nothing from it: it is ineligible, and the partitions that it leads are pinned. Called
when a rebalance starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.rack_ranking import RackRankings
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import DemotedBroker, EntryState, UndoRecord
from bellwether.core.settings.objective import WHOLE
from bellwether.core.settings.placement import EVERY_TOPIC, Scope
from bellwether.core.settings.policy import Policy
from bellwether.core.settings.rebalance import Rebalance
from bellwether.core.waves.ineligible_brokers import ineligible_brokers, stands_for_racks
from bellwether_load.plan.problem import NO_BROKER, BrokerInput, PartitionInput, Problem, ProblemHeader


class PinnedReason(StrEnum):
    """Why a partition must stay as it is. A partition of an ineligible leader has that broker's reason instead."""

    LEADER_UNKNOWN = "LeaderUnknown"
    REASSIGNING = "Reassigning"
    REMOVED_BROKER = "RemovedBroker"
    DISPLACED = "Displaced"
    INTERNAL = "Internal"
    EXCLUDED = "Excluded"
    OUT_OF_SCOPE = "OutOfScope"


def build_problem(
    cluster: Cluster,
    record: UndoRecord,
    ineligible: Mapping[int, str],
    settings: Rebalance,
    *,
    policy: str,
    made_at: datetime,
    internal: bool = False,
    rankings: RackRankings | None = None,
    scope: Scope = EVERY_TOPIC,
) -> Problem:
    """The problem of a cluster in its current state.

    ``ineligible`` says which brokers must not lead, and why; ``internal`` lets Kafka's internal topics move, too.
    ``rankings`` are the preferred racks: only the ISR members that may then lead are listed, so that no plan can work
    against it. Topics out of ``scope`` stay.
    """
    slots = []
    for broker in sorted(cluster.named):
        seen = cluster.brokers.get(broker)
        why = ineligible.get(broker, "")
        capacity = settings.capacities.get(broker, WHOLE)
        requests = settings.request_capacities.get(broker, capacity)
        slots.append(BrokerInput(broker, seen.rack if seen else None, capacity, not why, why, requests))
    by_topic = {}
    for topic in {partition.topic for partition in cluster.partitions}:
        if not scope.covers(topic):
            by_topic[topic] = PinnedReason.OUT_OF_SCOPE
        elif any(fnmatchcase(topic, pattern) for pattern in settings.excluded_topics):
            by_topic[topic] = PinnedReason.EXCLUDED
    stay = _Pinned(cluster, record, ineligible, by_topic, internal, rankings)
    partitions = sorted(_slot(p, stay.why(p), _free(p, ineligible, rankings)) for p in cluster.partitions if p.replicas)
    terms = ProblemHeader(cluster.cluster_id, policy, made_at, settings.objective, tuple(slots))
    return Problem(terms, tuple(partitions))


def problem_by_hand(
    cluster: Cluster, record: UndoRecord, settings: Rebalance, *, policy: str, made_at: datetime, internal: bool = False
) -> Problem:
    """The problem of a cluster whose brokers nothing watches: their state is all that makes one ineligible."""
    verdicts = judge(Snapshot(made_at, cluster, record), Policy(name="command"), {})
    ineligible = ineligible_brokers(cluster, record, verdicts)
    return build_problem(cluster, record, ineligible, settings, policy=policy, made_at=made_at, internal=internal)


def rebalance_problem(context: Context, demoted: Mapping[int, DemotedBroker], settings: Rebalance) -> Problem:
    """The problem of one reconcile.

    ``demoted`` are that reconcile's decisions, which the undo record does not contain yet.
    """
    snapshot, policy = context.snapshot, context.policy
    record, probed = replace(snapshot.record, demoted=demoted), context.has_health_evidence
    return build_problem(
        snapshot.cluster,
        record,
        ineligible_brokers(
            snapshot.cluster, record, context.verdicts, probed=probed, maintenance=snapshot.maintenance.keys()
        ),
        settings,
        policy=f"{policy.namespace}/{policy.name}",
        made_at=snapshot.now.replace(microsecond=0),
        rankings=context.rankings,
        scope=policy.scope,
    )


def _free(partition: Partition, ineligible: Collection[int], rankings: RackRankings | None) -> tuple[int, ...]:
    """ISR members that racks allow to lead: those in the best rack with an eligible broker, or with weights the
    leader's rack.

    The weight of a rack determines how many leaders it has, so a plan does not change that.
    """
    members = tuple(b for b in partition.isr if b in partition.replicas)
    ranking = rankings.of(partition.topic) if rankings is not None else None
    if ranking is None:
        return members
    open_ = tuple(b for b in members if b not in ineligible)
    if ranking.weights and partition.leader is not None:
        return tuple(b for b in open_ if ranking.racks.get(b) == ranking.racks.get(partition.leader))
    return ranking.best(open_)


@dataclass(frozen=True)
class _Pinned:
    """Which partitions must stay, and why: the first reason counts."""

    cluster: Cluster
    record: UndoRecord
    ineligible: Mapping[int, str]
    by_topic: Mapping[str, str]
    internal: bool
    rankings: RackRankings | None

    def why(self, partition: Partition) -> str:
        if partition.leader_unknown:
            return PinnedReason.LEADER_UNKNOWN
        if partition.reassigning:
            return PinnedReason.REASSIGNING
        if not self.cluster.removed.isdisjoint(partition.replicas):
            return PinnedReason.REMOVED_BROKER
        if self._displaced(partition):
            return PinnedReason.DISPLACED
        if partition.internal and not self.internal:
            return PinnedReason.INTERNAL
        if partition.topic in self.by_topic:
            return self.by_topic[partition.topic]
        return "" if partition.leader is None else self.ineligible.get(partition.leader, "")

    def _displaced(self, partition: Partition) -> bool:
        """Whether it is; not if it is displaced only for preferred racks: a plan may choose another leader in the same
        rack."""
        entry = self.record.entries.get(partition.key)
        # A tombstone marks an order that is back: nothing is displaced any more.
        if entry is None or entry.state is EntryState.RESTORED:
            return False
        ranking = self.rankings.of(partition.topic) if self.rankings is not None else None
        return ranking is None or not stands_for_racks(partition, entry, ranking)


def _slot(partition: Partition, held: str, free: tuple[int, ...]) -> PartitionInput:
    leader = NO_BROKER if partition.leader is None else partition.leader
    return PartitionInput(
        partition.topic,
        partition.topic_id,
        partition.index,
        partition.replicas,
        free,
        leader if leader in partition.replicas else NO_BROKER,
        str(held),
    )
