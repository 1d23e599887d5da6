"""Build the optimisation problem of a rebalance from a snapshot and its verdicts.

Pure. Moving leaders off an unhealthy broker is the task of demotion, with its cap and its guards; so a rebalance gives
such a broker nothing and takes nothing from it: it is ineligible, and the partitions that it leads are pinned. Called
when a rebalance starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
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
    stay = _PinnedPartitions(cluster, record, ineligible, settings.excluded_topics, internal, rankings, scope)
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


class _PinnedPartitions:
    """Which partitions must stay, and why: the first reason counts."""

    def __init__(
        self,
        cluster: Cluster,
        record: UndoRecord,
        ineligible: Mapping[int, str],
        excluded: Collection[str],
        internal: bool,
        rankings: RackRankings | None,
        scope: Scope,
    ) -> None:
        # A tombstone marks an order that is back: nothing is displaced any more.
        self._displaced = {k: e for k, e in record.entries.items() if e.state is not EntryState.RESTORED}
        self._removed = cluster.removed
        self._rankings = rankings
        self._ineligible = ineligible
        self._patterns = tuple(excluded)
        self._internal = internal
        self._scope = scope
        self._by_topic: dict[str, str] = {}

    def why(self, partition: Partition) -> str:
        if partition.leader_unknown:
            return PinnedReason.LEADER_UNKNOWN
        if partition.reassigning:
            return PinnedReason.REASSIGNING
        if not self._removed.isdisjoint(partition.replicas):
            return PinnedReason.REMOVED_BROKER
        if partition.key in self._displaced and not self._rests(partition):
            return PinnedReason.DISPLACED
        if partition.internal and not self._internal:
            return PinnedReason.INTERNAL
        if by_topic := self._of_topic(partition.topic):
            return by_topic
        return "" if partition.leader is None else self._ineligible.get(partition.leader, "")

    def _rests(self, partition: Partition) -> bool:
        """Whether it is displaced only for preferred racks: a plan may choose another leader in the same rack."""
        ranking = self._rankings.of(partition.topic) if self._rankings is not None else None
        entry = self._displaced[partition.key]
        return ranking is not None and stands_for_racks(partition, entry, ranking)

    def _of_topic(self, topic: str) -> str:
        """Why all partitions of a topic must stay; empty where they need not."""
        if topic not in self._by_topic:
            excluded = any(fnmatchcase(topic, pattern) for pattern in self._patterns)
            outside = "" if self._scope.covers(topic) else PinnedReason.OUT_OF_SCOPE
            self._by_topic[topic] = outside or (PinnedReason.EXCLUDED if excluded else "")
        return self._by_topic[topic]


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
