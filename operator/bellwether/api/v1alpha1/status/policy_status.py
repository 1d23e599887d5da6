"""``status`` of a LeadershipPolicy: counts, plan digest, conditions, and why partitions do not move.

All lists are bounded, because the details of all partitions of a cluster do not fit into one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import ATOMIC, Reported, as_map
from bellwether.api.v1alpha1.core_models import Of, StatusModel
from bellwether.api.v1alpha1.status.status_conditions import (
    REASON_LIMIT,
    BrokerId,
    Conditions,
    Count,
    Message,
    ReasonName,
)
from bellwether.core.doctor.risks import Diagnosis
from bellwether.core.model.history.harm_history import EPISODES_KEPT, HarmCause, HarmHistory
from bellwether.core.model.history.move_cost import MOVES_KEPT, MoveCost
from bellwether.core.model.refusals import Hold
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.planning.preferred_election import AutoRebalance, PreferredElectionStatus
from bellwether.core.reporting.report import Report
from bellwether.core.reporting.topic_impact import TopicImpact
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS

SAMPLE_LIMIT = 20
BROKER_LIMIT = 100
TOPIC_LIMIT = 50


class BrokerCounts(Reported):
    """Number of brokers by health state, and number of demoted brokers."""

    healthy: Count = 0
    """Number of Healthy brokers."""
    suspect: Count = 0
    """Number of Suspect brokers."""
    sick: Count = 0
    """Number of Sick brokers."""
    down: Count = 0
    """Number of Down brokers."""
    recovering: Count = 0
    """Number of Recovering brokers."""
    unknown: Count = 0
    """Number of Unknown brokers: their signals are missing or stale."""
    demoted: Count = 0
    """Number of demoted brokers, whatever their health state."""
    restoring: Count | None = None
    """Number of brokers whose leaders are being restored in waves. Unset if there is none."""


class PeriodicElection(StatusModel[PreferredElectionStatus]):
    """Last run of the periodic preferred leader election. Unset unless spec.election.intervalSeconds is set."""

    auto_rebalance: Annotated[AutoRebalance, Of("auto")]
    """Value of auto.leader.rebalance.enable in the broker configuration; in a KRaft cluster that of the active
    controller.
    """
    last_run: Annotated[AwareDatetime | None, Of("last.at")] = None
    """Time when it last moved leaders."""
    imbalance_before: Annotated[Count | None, Of("last.before")] = None
    """Number of partitions not led by their preferred leader before the last run."""
    elected: Annotated[Count | None, Of("last.elected")] = None
    """Number of leaders that the last run moved."""
    imbalance_after: Annotated[Count | None, Of("last.after")] = None
    """Number of partitions not led by their preferred leader after the last run."""


class PlanSummary(Reported):
    """Current plan as counts and a digest."""

    digest: str = Field(default="", max_length=64)
    """Digest of the plan's moves. Empty if there are none."""
    moves: Count = 0
    """Number of partitions whose replica order or leader will change."""
    elections: Count = 0
    """Number of these partitions that get another leader."""
    blocked: Count = 0
    """Number of partitions whose move is blocked."""
    message: Message = ""
    """Summary of the plan in one sentence."""


class Mode(StrEnum):
    """What the policy does now: its mode, or that it is suspended."""

    OBSERVE = "Observe"
    ENFORCE = "Enforce"
    SUSPENDED = "Suspended"

    @staticmethod
    def of(mode: str, *, suspend: bool) -> Mode:
        """From the spec."""
        return Mode.SUSPENDED if suspend else Mode(mode)


class BlockedPartition(StatusModel[Hold]):
    """A partition whose leader or order should change and may not."""

    topic: str = Field(max_length=249)
    """Name of the topic."""
    partition: Annotated[Count, Of("key.partition")]
    """Number of the partition."""
    reason: ReasonName
    """Why the leader cannot move, in CamelCase."""


class BlockedPartitions(Reported):
    """Partitions whose leader or order should change and may not; blockedByReason counts them."""

    total: Count = 0
    """Number of these partitions."""
    sample: tuple[BlockedPartition, ...] = Field(default=(), max_length=SAMPLE_LIMIT, json_schema_extra=ATOMIC)
    """First partitions, by topic and partition."""


class RiskCount(Reported):
    """Number of partitions in one risk class."""

    risk: ReasonName
    """Risk class."""
    count: Count
    """Number of partitions in the class."""
    message: Message = ""
    """Meaning of the class."""


class RiskyPartition(StatusModel[Diagnosis]):
    """A partition with replicas out of sync, or without a leader."""

    topic: Annotated[str, Of("partition.topic")] = Field(max_length=249)
    """Name of the topic."""
    partition: Annotated[Count, Of("partition.index")]
    """Number of the partition."""
    risk: ReasonName
    """Risk class of the partition."""


class PartitionsAtRisk(Reported):
    """Partitions with replicas out of sync, or without a leader. 'bellwether doctor' shows what to do."""

    total: Count
    """Number of partitions at risk."""
    classes: tuple[RiskCount, ...] = Field(default=(), max_length=REASON_LIMIT, json_schema_extra=as_map("risk"))
    """Number of partitions in each risk class."""
    sample: tuple[RiskyPartition, ...] = Field(default=(), max_length=SAMPLE_LIMIT, json_schema_extra=ATOMIC)
    """Partitions with the highest risk, then by topic and partition."""


class AffectedTopic(StatusModel[TopicImpact]):
    """Partitions of one topic that clients miss, or would miss with the next lost broker."""

    topic: str = Field(max_length=249)
    """Name of the topic."""
    partitions: Count
    """Number of partitions of the topic."""
    offline: Count = 0
    """Number of partitions without a leader."""
    unhealthy_leader: Count = 0
    """Number of partitions whose leader is unreachable for clients, or slow: Sick or Down, Suspect while its probes
    lose requests, or with the replica in a slow log directory.
    """
    under_min_isr: Count = 0
    """Number of partitions that refuse acks=all writes."""
    at_min_isr: Count = 0
    """Number of partitions that refuse acks=all writes once one more broker is lost."""


class AffectedTopics(Reported):
    """Topics that clients have trouble with, or soon may have. Unset if there are none."""

    total: Count
    """Number of these topics."""
    worst: tuple[AffectedTopic, ...] = Field(default=(), max_length=TOPIC_LIMIT, json_schema_extra=as_map("topic"))
    """Topics with the most offline partitions, then with the most unhealthy leaders."""


class BlockedReason(Reported):
    """Number of moves that one reason blocks."""

    reason: ReasonName
    """Reason, in CamelCase."""
    count: Count
    """Number of moves that it blocks."""
    message: Message = ""
    """Meaning of the reason."""


class LastElection(Reported):
    """Last time that leaders were moved."""

    time: AwareDatetime
    """Time when the election ended."""
    partitions: Count
    """Number of partitions that got another leader."""


class MoveCostStatus(Reported):
    """What moving a broker's leaders away and back costs its clients. Unset until a move was measured."""

    milliseconds: Count
    """Cost in milliseconds of lost service; more for internal topics."""
    election_milliseconds: tuple[Annotated[int, Field(ge=0, le=3_600_000)], ...] = Field(
        default=(), max_length=MOVES_KEPT, json_schema_extra=ATOMIC
    )
    """Duration of the longest batch of each of the last elections, in milliseconds."""

    @staticmethod
    def of(elections: Sequence[float]) -> MoveCostStatus:
        """From the durations of the last elections in seconds."""
        cost = round(MoveCost.measured(elections).seconds * 1000)
        return MoveCostStatus(milliseconds=cost, election_milliseconds=tuple(round(s * 1000) for s in elections))

    @property
    def elections(self) -> tuple[float, ...]:
        """Durations of the last elections in seconds."""
        return tuple(ms / 1000 for ms in self.election_milliseconds)


class HarmEpisodes(Reported):
    """What past disturbances of one cause lost in all, by which the limit of harm is learned."""

    cause: HarmCause
    """Reachability: a listener. Storage: a disk, by writes, reads or the canary."""
    lost_milliseconds: tuple[Annotated[int, Field(ge=0, le=round(LARGEST_LOST_SECONDS * 1000))], ...] = Field(
        min_length=1, max_length=EPISODES_KEPT, json_schema_extra=ATOMIC
    )
    """Lost service of the last disturbances in milliseconds, the oldest first; 600000 means at least so much."""

    @staticmethod
    def of(history: HarmHistory) -> tuple[HarmEpisodes, ...]:
        """From the history; what is under way is not stored."""
        kept = sorted(history.ended.items())
        return tuple(HarmEpisodes(cause=c, lost_milliseconds=tuple(round(s * 1000) for s in lost)) for c, lost in kept)

    @staticmethod
    def to_core(entries: Iterable[HarmEpisodes]) -> HarmHistory:
        """The history to continue with after a take-over."""
        return HarmHistory({entry.cause: tuple(ms / 1000 for ms in entry.lost_milliseconds) for entry in entries})


class WouldDemote(Reported):
    """A broker that would be demoted if mode were Enforce."""

    broker_id: BrokerId
    """Node id of the broker."""
    reason: ReasonName
    """Reason, in CamelCase."""
    message: Message = ""
    """Explanation of the reason, in one sentence."""
    since: AwareDatetime | None = None
    """Time since which the broker is Sick. Unset where a person or its pod asks for it."""


class StrimziStatus(StatusModel[Strimzi]):
    """Connection and operations of the Strimzi cluster. Unset unless spec.kafka.strimzi is set."""

    namespace: str = Field(max_length=63)
    """Namespace of the Kafka resource."""
    listener: str = Field(max_length=64)
    """Name of the listener that is used."""
    user: str = Field(default="", max_length=253)
    """Name of the KafkaUser that is used. Empty without authentication by a KafkaUser."""
    paused: bool = False
    """Whether Strimzi's reconciliation of the cluster is paused."""
    rebalancing: tuple[Annotated[str, Field(max_length=253)], ...] = Field(default=(), max_length=SAMPLE_LIMIT)
    """Names of the KafkaRebalances that are running."""


class LeadershipPolicyStatus(StatusModel[Report]):
    """State of the policy at the last reconcile."""

    observed_generation: int | None = Field(default=None, ge=0)
    """metadata.generation that this status is based on."""
    conditions: Conditions = ()
    """Ready: the policy is working; its reason and message name the worst thing that is so. Connected: the Kafka
    cluster is reachable. CredentialsCurrent: the credentials in use are up to date. Settled: no leader has to move now.
    Contested: another tool changes the replica order of managed partitions. DemotionBlocked: a demotion or promotion is
    blocked. WaitingForExternalOperation: an operation of another tool must end first. RestartDetection: False if pod
    restarts cannot be detected. SourcesUsable: False if a SignalSource of spec.detection cannot be used. OrdersSettled:
    False while a former operator process may still send orders that it had prepared. SoleInstallation: False if another
    installation has a policy for the same Kafka cluster. RebalanceUsable: False if the policy's LeaderRebalance is
    invalid, or none can be read. LoadsAvailable: False if loads are unknown. CanaryAvailable: False if the canary topic
    cannot be used. ProducerAcksFit: False if measurements contradict spec.demotion.producerAcks. RebalanceProposed: a
    load plan is ready for approval. Rebalancing: a load plan is being applied. PlacementFits: the preferred racks
    exist. PlacementMet: the preferred racks lead.
    """
    cluster_id: str = Field(default="", max_length=64)
    """Id of the Kafka cluster. The policy is pinned to it once it has been seen."""
    cluster: str = Field(default="", max_length=317)
    """Name of the Kafka resource of Strimzi, with its namespace if that is not the policy's; otherwise the cluster id.
    """
    strimzi: StrimziStatus | None = None
    mode: Mode | None = None
    """What the policy does now: Observe, Enforce, or Suspended (spec.suspend)."""
    operator: str = Field(default="", max_length=317)
    """Operator that holds the Lease of the Kafka cluster: the namespace of the Lease, and the pod."""
    epoch: Count | None = None
    """Epoch of the undo record that the operator writes."""
    brokers: BrokerCounts | None = None
    displaced_partitions: Annotated[Count | None, Of("displaced")] = None
    """Number of partitions whose replica order differs from the baseline."""
    leaders_out_of_place: Count | None = None
    """Number of partitions led by another broker than the first of their baseline, such as those that left a demoted
    broker; with spec.placement: by another broker than the racks want now.
    """
    periodic_election: Annotated[PeriodicElection | None, Of("election")] = None
    plan: PlanSummary | None = None
    blocked_partitions: BlockedPartitions | None = None
    partitions_at_risk: PartitionsAtRisk | None = None
    affected_topics: AffectedTopics | None = None
    blocked_by_reason: tuple[BlockedReason, ...] = Field(
        default=(), max_length=REASON_LIMIT, json_schema_extra=as_map("reason")
    )
    """Blocked moves by reason."""
    last_election: LastElection | None = None
    move_cost: MoveCostStatus | None = None
    harm_episodes: tuple[HarmEpisodes, ...] = Field(
        default=(), max_length=len(HarmCause), json_schema_extra=as_map("cause")
    )
    """What past disturbances lost in all, whether leaders moved or not. The limit of harm is learned from it: half,
    once or twice the cost of a move.
    """
    would_demote: tuple[WouldDemote, ...] = Field(
        default=(), max_length=BROKER_LIMIT, json_schema_extra=as_map("brokerId")
    )
    """Brokers that would be demoted if mode were Enforce."""
    message: Message = ""
    """Summary of the policy's state in one sentence."""
