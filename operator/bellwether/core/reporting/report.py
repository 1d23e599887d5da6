"""Report of one reconcile: what was seen, judged, moved and held, as values. The same input makes the same report.

Built last in every reconcile. The Kubernetes adapter writes it as status, the controllers turn it into events and
metrics, the command line prints it; its reasons and messages come from the decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bellwether.core.condition import Condition, of_type
from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.doctor.risks import RiskSummary, partitions_at_risk
from bellwether.core.execution.recovery import RecoveryNote
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.history.harm_history import HarmHistory
from bellwether.core.model.refusals import Hold
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.planning.plan import Plan
from bellwether.core.planning.preferred_election import PreferredElectionStatus
from bellwether.core.quarantine.hold_decision import QuarantineDecisions
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport, broker_reports
from bellwether.core.reporting.policy_conditions import policy_conditions
from bellwether.core.reporting.topic_impact import TopicImpact, topic_impacts
from bellwether.core.settings.policy import Mode
from bellwether.core.waves.rebalance_waves import WaveResult

SAMPLE_SIZE = 20
"""How many held partitions a status names; the others are counted."""


@dataclass(frozen=True)
class Report:
    """Report of one reconcile for a policy."""

    now: datetime
    cluster_id: str
    epoch: int
    conditions: tuple[Condition, ...]
    brokers: tuple[BrokerReport, ...]
    states: Mapping[HealthState, int]
    partitions: int
    leaderless: int
    displaced: int
    leaders_out_of_place: int
    plan: Plan
    held: tuple[Hold, ...]
    would_demote: tuple[int, ...]
    mode: Mode
    suspended: bool
    notes: tuple[RecoveryNote, ...] = ()
    result: ExecutionResult = field(default_factory=ExecutionResult)
    election: PreferredElectionStatus | None = None
    """Status of the periodic election; None where the policy has none."""
    progress: WaveResult | None = None
    """Progress of the rebalance plan, and why it does not go on now."""
    strimzi: Strimzi | None = None
    """State of the Strimzi cluster, where Strimzi runs the cluster."""
    risk_summary: RiskSummary = field(default_factory=lambda: RiskSummary(()))
    """Partitions that are not led by a full ISR, each with its risk."""
    affected_topics: tuple[TopicImpact, ...] = ()
    """Topics whose clients notice something, or would with the next lost broker; the worst first."""
    displaced_for_racks: int = 0
    """How many of the displaced stay so permanently, as the racks of the policy want it."""
    elections: tuple[float, ...] = ()
    """How long the last elections took, in seconds: the cost of a move."""
    harm_history: HarmHistory = field(default_factory=HarmHistory)
    """What past disturbances lost in all: the limit of harm."""

    @property
    def blocked_by_reason(self) -> dict[Reason, int]:
        """How many partitions are held, by reason."""
        return dict(sorted(Counter(h.reason for h in self.held).items()))

    @property
    def held_sample(self) -> tuple[Hold, ...]:
        """The first few held partitions, in a stable order."""
        return tuple(sorted(self.held, key=lambda h: (h.topic, h.key.partition))[:SAMPLE_SIZE])

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do: no move planned, none accepted by Kafka in this reconcile."""
        return self.plan.empty and not self.result.changed

    def condition(self, type_: str) -> Condition:
        """The condition of that type. Raises KeyError if there is none."""
        return of_type(self.conditions, type_)


def report(
    context: Context,
    plan: Plan,
    result: ExecutionResult,
    notes: tuple[RecoveryNote, ...] = (),
    progress: WaveResult | None = None,
    quarantines: QuarantineDecisions | None = None,
    election: PreferredElectionStatus | None = None,
    last: Report | None = None,
    elections: tuple[float, ...] = (),
) -> Report:
    """Build the report. Pure, and without anything that changes from one reconcile to the next by itself.

    What rests on the plan alone is taken from the ``last`` report where the plan is the same.
    """
    snapshot = context.snapshot
    held = tuple({h.key: h for h in (*plan.holds, *result.holds)}.values())
    acting = context.policy.acts
    demoted = plan.decisions.demoted if acting else snapshot.record.demoted
    would = () if acting else tuple(sorted(set(plan.decisions.demoted) - set(snapshot.record.demoted)))
    if last is not None and plan.inputs is not None and plan.inputs is last.plan.inputs:
        found = PlacementCounts(last.displaced, last.displaced_for_racks, last.leaders_out_of_place)
    else:
        found = count_placements(context, plan)
    known = last.brokers if last is not None else ()
    brokers = broker_reports(context, plan, demoted, would, quarantines or QuarantineDecisions(), known)
    risks = partitions_at_risk(snapshot.cluster, snapshot.floors)
    return Report(
        now=snapshot.now,
        cluster_id=snapshot.cluster.cluster_id,
        epoch=snapshot.record.epoch,
        conditions=policy_conditions(context, plan, result, held, would, brokers, risks, progress),
        brokers=brokers,
        states={s: sum(1 for v in context.verdicts.values() if v.state is s) for s in HealthState},
        partitions=len(snapshot.cluster.partitions),
        leaderless=sum(p.leaderless for p in snapshot.cluster.without_full_isr),
        displaced=found.displaced,
        displaced_for_racks=found.for_racks,
        leaders_out_of_place=found.leaders_out_of_place,
        plan=plan,
        held=held,
        would_demote=would,
        mode=context.policy.mode,
        suspended=context.policy.suspend,
        notes=notes,
        result=result,
        election=election,
        progress=progress,
        strimzi=snapshot.strimzi,
        risk_summary=risks,
        affected_topics=topic_impacts(context, risks),
        elections=elections,
        harm_history=snapshot.harm_history.after({broker: one.harm for broker, one in context.verdicts.items()}),
    )


@dataclass(frozen=True, slots=True)
class PlacementCounts:
    """Partitions whose order is not their baseline, those of them kept so by racks, leaders other than planned."""

    displaced: int
    for_racks: int
    leaders_out_of_place: int


def count_placements(context: Context, plan: Plan) -> PlacementCounts:
    """The counts of a reconcile."""
    cluster, entries, targets = context.snapshot.cluster, context.snapshot.record.entries, plan.targets
    by_key = cluster.by_key
    # Only an entry or a target makes another broker than the first of the order the one that is to lead.
    out_of_place = len(cluster.without_preferred_leader)
    if context.policy.placement is not None:
        homes: Iterable[tuple[PartitionKey, tuple[int, ...]]] = targets.items()
    else:
        homes = ((key, entry.baseline) for key, entry in entries.items())
    for key, order in homes:
        partition = by_key.get(key)
        if partition is not None and order[0] != partition.replicas[0]:
            out_of_place += (partition.leader != order[0]) - (partition.leader != partition.replicas[0])
    displaced = [
        (key, partition)
        for key, entry in entries.items()
        if (partition := by_key.get(key)) is not None and partition.replicas != entry.baseline
    ]
    stays = _stays_for_racks(context, plan)
    for_racks = sum([stays(partition, key) for key, partition in displaced if key in targets])
    return PlacementCounts(len(displaced), plan.resting + for_racks, out_of_place)


def _stays_for_racks(context: Context, plan: Plan) -> Callable[[Partition, PartitionKey], bool]:
    """Function that returns whether only the racks keep a displaced partition so, and permanently.

    They do if the plan wants its current order, its first replica leads, and none of its replicas is demoted or waits
    for a later wave. A policy that is being deleted restores everything.
    """
    decisions, targets, rankings = plan.decisions, plan.targets, context.rankings
    if rankings is None or decisions.policy_deleted:
        return lambda _partition, _key: False
    held = {hold.key for hold in plan.holds}
    demoted, returning, impaired = decisions.demoted.keys(), decisions.returning, decisions.partly

    def waits(key: PartitionKey, replicas: tuple[int, ...]) -> bool:
        return any(returning[b].withholds(key) for b in returning.keys() & replicas)

    def stays(partition: Partition, key: PartitionKey) -> bool:
        replicas = partition.replicas
        return (
            rankings.of(partition.topic) is not None
            and targets.get(key, replicas) == replicas
            and partition.leader == replicas[0]
            and not partition.reassigning
            and key not in held
            and key not in impaired
            and demoted.isdisjoint(replicas)
            and (returning.keys().isdisjoint(replicas) or not waits(key, replicas))
        )

    return stays
