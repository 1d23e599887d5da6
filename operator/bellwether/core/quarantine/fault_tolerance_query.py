"""What has to be read of the cluster before a slow broker's cure is decided: its fault tolerance, and who keeps up.

In: the cluster, signals and quarantine orders. Out: a query of the cluster, or None where nothing needs to be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.model.harm_history import SHORTEST_SECONDS
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.settings.policy import Policy, QuarantineMode
from bellwether.core.signals import Reading, Signal, SignalType

MAX_PARTITIONS_COMPARED = 200
"""How many partitions of a broker are compared with their leaders."""


@dataclass(frozen=True, slots=True)
class FaultToleranceQuery:
    """What to read of a slow broker: min.insync.replicas of topics, and whether peers answer.

    ``followed`` are some partitions of each broker in question, with their leaders, to find out whether it lags.
    """

    topics: frozenset[str]
    peers: frozenset[int]
    followed: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)


def fault_tolerance_query(
    cluster: Cluster, signals: tuple[Signal, ...], orders: Mapping[int, QuarantineOrder], policy: Policy
) -> FaultToleranceQuery | None:
    """Inputs to read in this reconcile; None where no disk is slow and no broker freezes or is held, so that nothing is
    read needlessly. A policy without quarantine only needs to know who keeps up as a follower.
    """
    slow = {s.broker for s in signals if s.type == SignalType.STORAGE_LATENCY and s.reading is Reading.FAILING}
    frozen = {s.broker for s in signals if s.harm is not None and s.harm.frozen_seconds >= SHORTEST_SECONDS}
    ordered = {b for b, c in orders.items() if c.active}
    about = ordered | ((slow | frozen) & cluster.named)
    if not about:
        return None
    quarantines = bool(ordered) or policy.quarantine.mode is not QuarantineMode.OFF
    held = [p for p in cluster.partitions if quarantines and not about.isdisjoint(p.replicas)]
    # A held broker does not answer; of several in question each is another's peer.
    unasked = about if len(about) == 1 else ordered
    peers = {r for p in held for r in p.replicas} & cluster.live - unasked
    asked = about & slow - ordered  # one that freezes may not answer, and what it lags does not matter
    return FaultToleranceQuery(
        frozenset(p.topic for p in held), frozenset(peers), {b: followed_by(cluster, b) for b in sorted(asked)}
    )


def followed_by(cluster: Cluster, broker: int) -> Mapping[TopicPartition, int]:
    """Partitions in whose ISR a broker follows, up to the limit, with their leaders."""
    followed = islice(cluster.followed_in_sync_by(broker), MAX_PARTITIONS_COMPARED)
    return {p.name: p.leader for p in followed if p.leader is not None}
