"""Periodic preferred leader election: partitions not led by the first of their order, and which to elect now.

In: a turn's snapshot, verdicts, decisions and plan, and what is remembered from turn to turn. Out: moves that elect and
reorder nothing, and what to remember. Pure; called by ``cycle`` once the plan is made, as whatever the plan has in hand
is its own. Kafka's ``auto.leader.rebalance.enable`` does the same and asks nobody whether the first is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.demotion.restoration import has_health_evidence
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Partition
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.planning.plan import Move, MoveKind, Plan
from bellwether.core.settings.policy import Policy

AUTO_REBALANCE_CONFIG = "auto.leader.rebalance.enable"
BROKERS_QUERIED = 3
"""How many brokers are asked for ``AUTO``: they are configured alike, or it is said that they are not."""

QUERY_INTERVAL = timedelta(hours=1)
"""It cannot change without a restart."""

READ_AFTER = timedelta(seconds=1)
"""How long metadata is given to show what was elected."""


class AutoRebalance(StrEnum):
    """What brokers say of ``auto.leader.rebalance.enable``. In a KRaft cluster the active controller's counts."""

    ENABLED = "Enabled"
    DISABLED = "Disabled"
    MIXED = "Mixed"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, told: Iterable[Mapping[str, str]]) -> AutoRebalance:
        """From the settings of some brokers; what nobody tells is unknown."""
        values = {settings[AUTO_REBALANCE_CONFIG].lower() for settings in told if AUTO_REBALANCE_CONFIG in settings}
        if len(values) > 1:
            return cls.MIXED
        return {"true": cls.ENABLED, "false": cls.DISABLED}.get("".join(values), cls.UNKNOWN)


@dataclass(frozen=True, slots=True)
class LastRun:
    """A periodic election that moved something: how many leaders were not the first in their order before and after.

    ``after`` is None until metadata has been read again.
    """

    at: datetime
    before: int
    elected: int
    after: int | None = None


@dataclass(frozen=True, slots=True)
class PreferredElectionState:
    """What is remembered from turn to turn: since when the interval runs, what brokers are set to, the last election.

    A process begins with an interval's wait, so that signals have come in before anybody is elected.
    """

    since: datetime
    auto: AutoRebalance = AutoRebalance.UNKNOWN
    asked_at: datetime | None = None
    last: LastRun | None = None

    def asks(self, now: datetime) -> bool:
        """Whether brokers are to be asked what they are set to."""
        return self.asked_at is None or now - self.asked_at >= QUERY_INTERVAL


@dataclass(frozen=True, slots=True)
class PreferredElectionPlan:
    """How many leaders are not the first in their order now, what to elect, and how long to wait for the next look."""

    rounds: PreferredElectionState
    imbalance: int
    moves: tuple[Move, ...] = ()
    again_seconds: float = 0.0

    def done(self, elected: int, now: datetime) -> PreferredElectionState:
        """What to remember once the moves were made, of which so many moved a leader."""
        if not self.moves or not elected:
            return self.rounds
        return replace(self.rounds, last=LastRun(now, self.imbalance, elected))


@dataclass(frozen=True, slots=True)
class PreferredElectionStatus:
    """What is to be said of the periodic election. ``again_seconds``, the wait for the next look, is no news."""

    imbalance: int
    auto: AutoRebalance = AutoRebalance.UNKNOWN
    last: LastRun | None = None
    again_seconds: float = field(default=0.0, compare=False)


def plan_preferred_election(
    rounds: PreferredElectionState | None,
    snapshot: Snapshot,
    plan: Plan,
    decisions: Decisions,
    verdicts: Mapping[int, Verdict],
    policy: Policy,
) -> PreferredElectionPlan | None:
    """What is out of balance, and what to elect in this turn; None where the policy asks for no periodic election.

    While the plan moves anything, or others work on the cluster, the election waits.
    """
    interval = policy.election.interval_seconds
    if not interval:
        return None
    now = snapshot.now
    rounds = rounds or PreferredElectionState(now)
    astray = [p for p in snapshot.cluster.partitions if p.leader != p.replicas[0]]
    if rounds.last is not None and rounds.last.after is None and now - rounds.last.at >= READ_AFTER:
        rounds = replace(rounds, last=replace(rounds.last, after=len(astray)))
    left = interval - (now - rounds.since).total_seconds()
    due = left <= 0
    moves: tuple[Move, ...] = ()
    if due and plan.empty and snapshot.external_operation is None:
        moves = _elections(astray, snapshot, plan, decisions, verdicts)
        if policy.acts:
            rounds = replace(rounds, since=now)
    unread = rounds.last is not None and rounds.last.after is None
    if unread or (moves and policy.acts):
        return PreferredElectionPlan(rounds, len(astray), moves, READ_AFTER.total_seconds())
    # What is due and held back, or only said, comes by nobody's clock: the loop's own looks are enough.
    return PreferredElectionPlan(rounds, len(astray), moves, float(interval) if due else max(left, 1.0))


def _elections(
    astray: Iterable[Partition],
    snapshot: Snapshot,
    plan: Plan,
    decisions: Decisions,
    verdicts: Mapping[int, Verdict],
) -> tuple[Move, ...]:
    """Elections of whoever stands first, is in sync and well, and is kept from leading by nothing."""
    fit = _fit(snapshot, decisions, verdicts)
    found = []
    for partition in astray:
        first = partition.replicas[0]
        wave = decisions.returning.get(first)
        if (
            first in fit
            and first in partition.isr
            and not partition.reassigning
            and partition.key not in plan.targets
            and (wave is None or not wave.withholds(partition.key))
        ):
            found.append(
                Move(
                    key=partition.key,
                    topic=partition.topic,
                    kind=MoveKind.BALANCE,
                    seen=partition.replicas,
                    order=partition.replicas,
                    baseline=partition.replicas,
                    leader=partition.leader,
                    elect=True,
                    internal=partition.internal,
                )
            )
    return tuple(sorted(found, key=lambda m: (m.internal, m.key)))


def _fit(snapshot: Snapshot, decisions: Decisions, verdicts: Mapping[int, Verdict]) -> frozenset[int]:
    """Brokers that are well; where nobody is judged, those of which nothing is known, too."""
    well = {HealthState.HEALTHY} | (set() if has_health_evidence(snapshot, verdicts) else {HealthState.UNKNOWN})
    kept = {*decisions.demoted, *snapshot.maintenance}
    return frozenset(b for b, v in verdicts.items() if v.state in well and b not in kept) & snapshot.cluster.live
