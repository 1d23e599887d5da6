"""``status`` of a LeadershipPolicy: counts, plan digest, conditions, and why partitions do not move.

Everything is bounded: a cluster has more partitions than an object may have bytes.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import Reported, as_map
from bellwether.api.v1alpha1.status.rebalance_status import RebalanceStatus
from bellwether.api.v1alpha1.status.status_conditions import Conditions
from bellwether.core.planning.preferred_election import AutoRebalance

SAMPLE_LIMIT = 20
BROKER_LIMIT = 100
REASON_LIMIT = 64
MESSAGE_LIMIT = 1024

Message = Annotated[str, Field(max_length=MESSAGE_LIMIT)]
ReasonName = Annotated[str, Field(min_length=1, max_length=128, pattern="^[A-Za-z][A-Za-z0-9]*$")]
BrokerId = Annotated[int, Field(ge=0, le=2147483647)]
Count = Annotated[int, Field(ge=0)]


class BrokerCounts(Reported):
    """Brokers by verdict, and how many are demoted."""

    healthy: Count = Field(default=0, description="Brokers judged Healthy.")
    suspect: Count = Field(default=0, description="Brokers judged Suspect.")
    sick: Count = Field(default=0, description="Brokers judged Sick.")
    down: Count = Field(default=0, description="Brokers judged Down.")
    recovering: Count = Field(default=0, description="Brokers judged Recovering.")
    unknown: Count = Field(default=0, description="Brokers without enough fresh evidence.")
    demoted: Count = Field(default=0, description="Brokers kept from leading, whatever their verdict.")
    restoring: Count | None = Field(
        default=None, description="Getting their leaders back in waves; absent while none is."
    )


class PeriodicElection(Reported):
    """What the periodic election found and did."""

    auto_rebalance: AutoRebalance = Field(
        description="What brokers say of Kafka's own auto.leader.rebalance.enable; in a KRaft cluster the active"
        " controller's counts."
    )
    last_run: AwareDatetime | None = Field(default=None, description="When leaders were last moved by it.")
    imbalance_before: Count | None = Field(
        default=None, description="Partitions that were led by another than the first in their order, before that."
    )
    elected: Count | None = Field(default=None, description="How many leaders it moved.")
    imbalance_after: Count | None = Field(default=None, description="The same afterwards, as metadata shows it.")


class PlanSummary(Reported):
    """The current plan as counts and a digest."""

    digest: str = Field(default="", max_length=64, description="Fingerprint of the plan's moves; empty without any.")
    moves: Count = Field(default=0, description="Partitions whose order or leader is to change.")
    elections: Count = Field(default=0, description="Moves among them that elect another leader.")
    blocked: Count = Field(default=0, description="Partitions whose move is held back.")
    message: Message = Field(default="", description="The plan in one sentence.")


class PartitionAtRisk(Reported):
    """One partition that a demoted or sick broker still leads, or that nobody else can lead."""

    topic: str = Field(max_length=249, description="Topic.")
    partition: Count = Field(description="Partition.")
    reason: ReasonName = Field(description="Why its leader cannot move.")


class PartitionsAtRisk(Reported):
    """Partitions that stay with a broker that should not lead them."""

    total: Count = Field(default=0, description="How many there are.")
    sample: tuple[PartitionAtRisk, ...] = Field(
        default=(),
        max_length=SAMPLE_LIMIT,
        description="The first of them, by topic and partition.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class RiskCount(Reported):
    """How many partitions are in one class of risk."""

    risk: ReasonName = Field(description="The class.")
    count: Count = Field(description="How many partitions are in it.")
    message: Message = Field(default="", description="What the class means.")


class RiskyPartition(Reported):
    """One partition whose replicas are not all in sync, or that has no leader."""

    topic: str = Field(max_length=249, description="Topic.")
    partition: Count = Field(description="Partition.")
    risk: ReasonName = Field(description="Its class.")


class PartitionRisks(Reported):
    """How near partitions are to losing writes, reads or records, whoever leads them."""

    total: Count = Field(description="How many are at risk.")
    classes: tuple[RiskCount, ...] = Field(
        default=(), max_length=REASON_LIMIT, description="How many of each class.", json_schema_extra=as_map("risk")
    )
    sample: tuple[RiskyPartition, ...] = Field(
        default=(),
        max_length=SAMPLE_LIMIT,
        description="The worst of them, then by topic and partition.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class HeldReason(Reported):
    """How many moves one reason holds back."""

    reason: ReasonName = Field(description="The reason.")
    count: Count = Field(description="How many moves it holds back.")
    message: Message = Field(default="", description="What the reason means.")


class LastElection(Reported):
    """The last time that leaders moved."""

    time: AwareDatetime = Field(description="When it ended.")
    partitions: Count = Field(description="How many partitions got another leader.")


class WouldDemote(Reported):
    """A broker that an enforcing policy would demote."""

    broker_id: BrokerId = Field(description="The broker.")
    reason: ReasonName = Field(description="Why.")
    message: Message = Field(default="", description="Why, in one sentence.")
    since: AwareDatetime = Field(description="Since when.")


class StrimziStatus(Reported):
    """The Strimzi cluster that was found, and what goes on there."""

    namespace: str = Field(max_length=63, description="Namespace of the Kafka resource.")
    listener: str = Field(max_length=64, description="The listener that is connected to.")
    user: str = Field(default="", max_length=253, description="The KafkaUser that it is connected as; empty without.")
    paused: bool = Field(default=False, description="Whether its reconciliation is paused.")
    rebalancing: tuple[Annotated[str, Field(max_length=253)], ...] = Field(
        default=(), max_length=SAMPLE_LIMIT, description="The KafkaRebalances that are running."
    )


class LeadershipPolicyStatus(Reported):
    """What Bellwether last saw, thought and did."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation of the policy that this status is about."
    )
    conditions: Conditions = Field(
        default=(),
        description="Ready sums up: the policy does its work. Connected: the pinned Kafka cluster answers."
        " Settled: nothing is left to move. Contested: somebody"
        " else reorders what the policy displaced. DemotionBlocked: a broker's demotion or promotion is held back."
        " RebalanceProposed: a load plan waits for approval. Rebalancing: one is being applied."
        " PlacementFits: the racks that it prefers are there. PlacementMet: they lead.",
    )
    cluster_id: str = Field(
        default="", max_length=64, description="Id of the Kafka cluster that the policy is pinned to once seen."
    )
    cluster: str = Field(
        default="",
        max_length=317,
        description="What people call the Kafka cluster that was found: the name of Strimzi's Kafka resource, with its"
        " namespace where that is not the policy's own; else its id.",
    )
    strimzi: StrimziStatus | None = Field(
        default=None, description="What was found of it. Absent unless spec.kafka.strimzi names it."
    )
    epoch: Count | None = Field(default=None, description="Epoch of the undo record's writer.")
    brokers: BrokerCounts | None = Field(default=None, description="Brokers by verdict.")
    displaced_partitions: Count | None = Field(
        default=None, description="Partitions whose replica order is not the one that they had before."
    )
    leaders_out_of_place: Count | None = Field(
        default=None, description="Partitions led by another broker than the one that should lead them now."
    )
    periodic_election: PeriodicElection | None = Field(
        default=None, description="What the periodic election found and did; absent unless the policy asks for one."
    )
    plan: PlanSummary | None = Field(default=None, description="The current plan.")
    partitions_at_risk: PartitionsAtRisk | None = Field(
        default=None, description="Partitions that stay with a broker that should not lead them."
    )
    partition_risks: PartitionRisks | None = Field(
        default=None,
        description="Partitions that miss replicas in sync, or a leader. Absent when none does. `bellwether doctor`"
        " says what to do.",
    )
    blocked_by_reason: tuple[HeldReason, ...] = Field(
        default=(),
        max_length=REASON_LIMIT,
        description="Moves held back, by reason.",
        json_schema_extra=as_map("reason"),
    )
    last_election: LastElection | None = Field(default=None, description="The last time that leaders moved.")
    would_demote: tuple[WouldDemote, ...] = Field(
        default=(),
        max_length=BROKER_LIMIT,
        description="Brokers that the policy would demote if its mode were Enforce.",
        json_schema_extra=as_map("brokerId"),
    )
    rebalance: RebalanceStatus | None = Field(
        default=None, description="How the rebalance by load stands. Absent where the policy asks for none."
    )
    message: Message = Field(default="", description="The news in one sentence.")
