"""Fault tolerance of a cluster: min.insync.replicas, KRaft voters and lagging replicas, read while a disk is slow.

``fault_tolerance_query`` says what has to be read. Adapters read it from topic settings, controllers and a broker's
peers, because metadata does not contain it. Used by ``quarantine.hold_decision`` and ``demotion.cure_choice``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice

from bellwether.core.model.cluster import Cluster, TopicPartition
from bellwether.core.model.history.harm_history import SHORTEST_SECONDS
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.settings.policy import Policy, QuarantineMode
from bellwether.core.signals import Reading, Signal, SignalType


@dataclass(frozen=True, slots=True)
class Quorum:
    """KRaft voters, the voters that keep up with the active controller (itself included), and the active controller."""

    voters: frozenset[int]
    current: frozenset[int]
    active: int | None = None

    def shortage_without(self, node: int, spare: int = 0, others: Collection[int] = ()) -> str | None:
        """Why fewer than a majority and ``spare`` voters would keep up without this node and ``others``; None if there
        would be enough, or if the node is not a voter.
        """
        majority, left = len(self.voters) // 2 + 1, len((self.current & self.voters) - {node, *others})
        if node not in self.voters or left >= majority + spare:
            return None
        gone = sorted({node, *others} & self.voters)
        lost = "it" if gone == [node] else f"brokers {', '.join(map(str, gone))}"
        return (
            f"it is one of {len(self.voters)} controller voters, {len(self.current & self.voters)} of them in sync:"
            f" without {lost} {left} would be, and a majority is {majority}"
        )


@dataclass(frozen=True)
class FaultTolerance:
    """Fault tolerance inputs. ``minimum_isr`` is min.insync.replicas by topic, ``silent`` are peers that did not answer
    now.

    ``trailing`` are followers that had not come, within 0.2 s, to where their leaders were: the high watermark,
    and with it ``acks=all``, waits for them. ``keeping_up`` are those that had; of others it is unknown. ``problem``
    says why the inputs could not be read; what was not read is unknown. ``lasting``: waiting does not end it.
    """

    minimum_isr: Mapping[str, int] = field(default_factory=dict)
    quorum: Quorum | None = None
    silent: frozenset[int] = frozenset()
    trailing: frozenset[int] = frozenset()
    keeping_up: frozenset[int] = frozenset()
    problem: str = ""
    lasting: bool = False


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
