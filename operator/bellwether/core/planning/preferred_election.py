"""Periodic preferred leader election: partitions not led by their preferred replica, and which to elect now.

In: snapshot, verdicts, decisions and plan, and the state kept between reconciles. Out: moves that elect without a
reorder, and the new state. Pure; called after the plan, which takes precedence. Kafka's
``auto.leader.rebalance.enable`` does the same without checking whether the preferred leader is healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.cluster import Partition
from bellwether.core.planning.guards import wait_after_refusal
from bellwether.core.planning.plan import Move, MoveKind, Plan

AUTO_REBALANCE_CONFIG = "auto.leader.rebalance.enable"
BROKERS_QUERIED = 3
"""How many brokers are queried for ``AUTO_REBALANCE_CONFIG``; if they differ, that is reported."""

QUERY_INTERVAL = timedelta(hours=1)
"""The setting cannot change without a restart."""

READ_AFTER = timedelta(seconds=1)
"""Delay after which metadata is expected to show an election."""


class AutoRebalance(StrEnum):
    """Value of ``auto.leader.rebalance.enable``. In a KRaft cluster the active controller's value is effective."""

    ENABLED = "Enabled"
    DISABLED = "Disabled"
    MIXED = "Mixed"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, configs: Iterable[Mapping[str, str]]) -> AutoRebalance:
        """From the settings of some brokers; a missing setting is unknown."""
        values = {settings[AUTO_REBALANCE_CONFIG].lower() for settings in configs if AUTO_REBALANCE_CONFIG in settings}
        if len(values) > 1:
            return cls.MIXED
        return {"true": cls.ENABLED, "false": cls.DISABLED}.get("".join(values), cls.UNKNOWN)


@dataclass(frozen=True, slots=True)
class LastRun:
    """A periodic election that moved leaders: number of partitions not led by their preferred replica before and after.

    ``after`` is None until metadata has been read again.
    """

    at: datetime
    before: int
    elected: int
    after: int | None = None


@dataclass(frozen=True, slots=True)
class PreferredElectionState:
    """State kept between reconciles: start of the interval, the brokers' setting, the last election.

    A process starts with a full interval, so that signals have arrived before the first election.
    """

    since: datetime
    auto: AutoRebalance = AutoRebalance.UNKNOWN
    asked_at: datetime | None = None
    last: LastRun | None = None

    def asks(self, now: datetime) -> bool:
        """Whether brokers should be queried for their setting."""
        return self.asked_at is None or now - self.asked_at >= QUERY_INTERVAL


@dataclass(frozen=True, slots=True)
class PreferredElectionPlan:
    """Number of partitions not led by their preferred replica, what to elect, and seconds until the next check."""

    rounds: PreferredElectionState
    imbalance: int
    moves: tuple[Move, ...] = ()
    again_seconds: float = 0.0

    def done(self, elected: int, now: datetime) -> PreferredElectionStatus:
        """The status after the moves were made; ``elected`` leaders have moved."""
        last = LastRun(now, self.imbalance, elected) if self.moves and elected else self.rounds.last
        state = replace(self.rounds, last=last)
        return PreferredElectionStatus(self.imbalance, state.auto, last, self.again_seconds, state)


@dataclass(frozen=True, slots=True)
class PreferredElectionStatus:
    """Status of the periodic election. What is only for the next check does not count as a change: ``again_seconds``,
    the time until then, and ``state``.
    """

    imbalance: int
    auto: AutoRebalance = AutoRebalance.UNKNOWN
    last: LastRun | None = None
    again_seconds: float = field(default=0.0, compare=False)
    state: PreferredElectionState | None = field(default=None, compare=False)


def plan_preferred_election(
    rounds: PreferredElectionState | None, context: Context, plan: Plan
) -> PreferredElectionPlan | None:
    """Plan the elections of this reconcile; None where the policy has no periodic election.

    While the plan has moves, or what ``Context.deferral`` names goes on, the election waits.
    """
    snapshot, policy = context.snapshot, context.policy
    interval = policy.election.interval_seconds
    if not interval:
        return None
    now = snapshot.now
    rounds = rounds or PreferredElectionState(now)
    imbalanced = context.managed.without_preferred_leader
    if rounds.last is not None and rounds.last.after is None and now - rounds.last.at >= READ_AFTER:
        rounds = replace(rounds, last=replace(rounds.last, after=len(imbalanced)))
    left = interval - (now - rounds.since).total_seconds()
    due = left <= 0
    moves: tuple[Move, ...] = ()
    if due and plan.empty and context.deferral is None:
        moves = _elections(imbalanced, context, plan)
        if policy.acts:
            rounds = replace(rounds, since=now)
    unread = rounds.last is not None and rounds.last.after is None
    if unread or (moves and policy.acts):
        return PreferredElectionPlan(rounds, len(imbalanced), moves, READ_AFTER.total_seconds())
    # An election that is held or only reported has no timer of its own: the regular reconciles are enough.
    return PreferredElectionPlan(rounds, len(imbalanced), moves, float(interval) if due else max(left, 1.0))


def leaders_of_released(context: Context, plan: Plan) -> tuple[Move, ...]:
    """Elections that give brokers their leaders back which were held in quarantine, once they are healthy.

    No order was changed for it, so nothing else restores them; Kafka itself takes up to five minutes.
    """
    released = {broker for broker, order in context.snapshot.quarantine_orders.items() if not order.active}
    if not released or plan.moves or context.deferral is not None:
        return ()
    return _elections([p for p in context.managed.without_preferred_leader if p.replicas[0] in released], context, plan)


def _elections(imbalanced: Iterable[Partition], context: Context, plan: Plan) -> tuple[Move, ...]:
    """Elections of preferred leaders that are in sync, healthy and not kept from leading."""
    electable = _electable_brokers(context, plan) if not context.snapshot.cluster.immovable else frozenset()
    refused, now = context.snapshot.refused, context.snapshot.now
    found = []
    for partition in imbalanced:
        first = partition.replicas[0]
        wave = plan.decisions.returning.get(first)
        if (
            first in electable
            and first in partition.isr
            and not partition.reassigning
            and partition.key not in plan.targets
            and wait_after_refusal(refused.get(partition.key), partition, partition.replicas, now) is None
            and (wave is None or not wave.withholds(partition.key))
        ):
            found.append(Move.of(partition, MoveKind.BALANCE, partition.replicas, partition.replicas, elect=True))
    return tuple(sorted(found, key=lambda m: (m.internal, m.key)))


def _electable_brokers(context: Context, plan: Plan) -> frozenset[int]:
    """Healthy brokers; without any prober, those in state Unknown as well."""
    well = {HealthState.HEALTHY} | (set() if context.has_health_evidence else {HealthState.UNKNOWN})
    kept, live = {*plan.decisions.demoted, *context.snapshot.maintenance}, context.snapshot.cluster.live
    return frozenset(b for b, v in context.verdicts.items() if v.state in well and b not in kept) & live
