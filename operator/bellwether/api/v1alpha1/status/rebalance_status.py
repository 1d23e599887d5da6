"""``status`` of a LeaderRebalance: state, plan figures, and partitions that were skipped.

Made by the load side, which continues from it after a take-over. Numbers are integers and percentages are strings,
because Kubernetes APIs do not use floating point numbers.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import ATOMIC, Reported, as_map
from bellwether.api.v1alpha1.status.status_conditions import (
    MESSAGE_LIMIT,
    REASON_LIMIT,
    Conditions,
    Count,
    ReasonName,
)
from bellwether.core.condition import Condition
from bellwether.core.reasons import Reason, reason_named
from bellwether.core.waves.rebalance_waves import SAMPLE_SIZE
from bellwether.ports.rebalance import RunState

REQUEST_LIMIT = 256

Percent = Annotated[str, Field(max_length=32, pattern=r"^-?[0-9]+(\.[0-9]+)?$")]


Ratio = Annotated[str, Field(max_length=32, pattern=r"^[0-9]+\.[0-9]{2}$")]


class ReportedLoss(Reported):
    """The worst loss of one kind: the one after which a broker carries most."""

    lost: str = Field(max_length=256)
    """Id of the broker, or name of the rack, that is lost."""
    busiest: Count
    """Id of the broker that carries most then."""
    ratio: Ratio
    """Load of that broker then, as a multiple of the busiest broker while none is lost."""


class LossRatios(Reported):
    """The worst loss of one kind, now and after a plan."""

    now: ReportedLoss
    """With the present leaders and orders, as last measured or, once a plan is applied completely, as it computed them.
    """
    planned: ReportedLoss
    """After the last plan; a multiple of the busiest broker after it."""
    bound: Ratio
    """Lower bound of planned.ratio for all plans whose busiest broker is as low, as proved by the certificate."""


class Losses(Reported):
    """What the loss of one broker or of a rack would do, by the last run that measured enough, whether or not its plan
    was proposed.
    """

    broker: LossRatios
    """Loss of one broker."""
    rack: LossRatios | None = None
    """Loss of a rack. Unset with fewer than two racks."""
    limit: Ratio
    """Alert BellwetherBrokerLossOverload fires while broker.now.ratio is above it: spec.maximumLossPercent, or less
    where spec.demotion.capacity.maxBytesPerSecond of the policy is lower.
    """
    planned_limit: Ratio | None = None
    """The same for planned.ratio, which is a multiple of the busiest broker after the plan."""
    measured_at: AwareDatetime
    """Time of the cluster state that was measured."""


class SkippedReason(Reported):
    """Number of partitions of the plan that one reason skipped."""

    reason: ReasonName
    """Reason, in CamelCase."""
    count: Count
    """Number of partitions that were skipped for this reason."""


class SkippedPartition(Reported):
    """A partition of the plan that was skipped."""

    topic: str = Field(max_length=249)
    """Name of the topic."""
    partition: Count
    """Number of the partition."""
    reason: ReasonName
    """Why it was skipped, in CamelCase."""


class PlanFigures(Reported):
    """Figures of a load plan. Loads are those of the busiest broker, in bytes/s per 100 of capacity."""

    summary: tuple[Annotated[str, Field(max_length=MESSAGE_LIMIT)], ...] = Field(
        default=(), max_length=16, json_schema_extra=ATOMIC
    )
    """The plan in sentences, as `bellwether rebalance show` prints them. The first says what it rests on: measured
    period, hours of the week, partitions, and share of the bytes.
    """
    load_before: Count
    """Highest relative load before the plan."""
    load_after: Count
    """Highest relative load after the plan."""
    bound: Count
    """Lower bound of the highest relative load that any plan can reach, as proved by the certificate."""
    gap_percent: Percent | None = None
    """Percentage by which loadAfter exceeds the bound. Unset if the bound is 0."""
    moves: Count
    """Number of leaders that move."""
    reorders: Count
    """Number of partitions whose replica order changes but not their leader."""
    improvement: str = Field(default="", max_length=64)
    """What falls, and by how much."""


class LeaderRebalanceStatus(Reported):
    """State of the load rebalance, written by the operator."""

    observed_generation: int | None = Field(default=None, ge=0)
    """metadata.generation that was last used."""
    conditions: Conditions = ()
    """Ready: the policy's operator uses the object. RebalanceProposed: a plan is ready for approval. Rebalancing: its
    waves are being applied.
    """
    state: RunState = RunState.IDLE
    """Idle: there is no plan. Running: a job computes a plan. Proposed: the plan is ready for approval. Approved: the
    plan is about to be applied. Applying: its waves are being applied. Done: it has been applied, and its orders are
    the baselines. Failed: the plan could not be computed or verified. Stale: the plan is too old, or the cluster has
    changed too much. Superseded: a new plan was requested.
    """
    reason: ReasonName = str(Reason.NO_PLAN_PENDING)
    """Reason for the state, in CamelCase."""
    message: str = Field(default="", max_length=MESSAGE_LIMIT)
    """Explanation of the reason, in one sentence."""
    run: str = Field(default="", max_length=63)
    """Name of the run, its files and its job."""
    request: str = Field(default="", max_length=REQUEST_LIMIT)
    """The last processed value of the bellwether.dev/rebalance annotation."""
    started_at: AwareDatetime | None = None
    """Time when the run started."""
    next_at: AwareDatetime | None = None
    """Time when the schedule starts the next run."""
    input_digest: str = Field(default="", max_length=64)
    """Digest of the problem (brokers, partitions, objective) that the operator wrote for this run. A plan for another
    problem is rejected.
    """
    digest: str = Field(default="", max_length=64)
    """Digest of the plan, required for its approval."""
    made_at: AwareDatetime | None = None
    """Time of the cluster state for which the plan was computed."""
    plan: PlanFigures | None = None
    losses: Losses | None = None
    applied: Count = 0
    """Number of partitions that have the order of the plan."""
    skipped: Count = 0
    """Number of partitions of the plan that were skipped."""
    skipped_by_reason: tuple[SkippedReason, ...] = Field(
        default=(), max_length=REASON_LIMIT, json_schema_extra=as_map("reason")
    )
    """Skipped partitions by reason."""
    skipped_sample: tuple[SkippedPartition, ...] = Field(default=(), max_length=SAMPLE_SIZE, json_schema_extra=ATOMIC)
    """First skipped partitions."""

    def said(self) -> tuple[Condition, ...]:
        """The conditions that follow from the state, which has no times yet."""
        reason = reason_named(self.reason)
        unusable = reason is Reason.INVALID_POLICY  # a failed plan is shown by the state, and holds up no GitOps tool
        ready = Condition("Ready", True, Reason.UP_TO_DATE, "the operator of the policy uses it")
        return (
            Condition("Ready", False, reason, self.message) if unusable else ready,
            Condition("RebalanceProposed", self.state is RunState.PROPOSED, reason, self.message),
            Condition("Rebalancing", self.state is RunState.APPLYING, reason, self.message),
        )
