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

    lost: str = Field(max_length=256, description="Id of the broker, or name of the rack, that is lost.")
    busiest: Count = Field(description="Id of the broker that carries most then.")
    ratio: Ratio = Field(
        description="Load of that broker then, as a multiple of the busiest broker while none is lost."
    )


class LossRatios(Reported):
    """The worst loss of one kind, now and after a plan."""

    now: ReportedLoss = Field(
        description="With the present leaders and orders, as last measured or, once a plan is applied completely, as"
        " it computed them."
    )
    planned: ReportedLoss = Field(description="After the last plan; a multiple of the busiest broker after it.")
    bound: Ratio = Field(
        description="Lower bound of planned.ratio for all plans whose busiest broker is as low, as proved by the"
        " certificate."
    )


class Losses(Reported):
    """What the loss of one broker or of a rack would do, by the last run that measured enough, whether or not its plan
    was proposed.
    """

    broker: LossRatios = Field(description="Loss of one broker.")
    rack: LossRatios | None = Field(default=None, description="Loss of a rack. Unset with fewer than two racks.")
    limit: Ratio = Field(
        description="Alert BellwetherBrokerLossOverload fires while broker.now.ratio is above it:"
        " spec.maximumLossPercent, or less where spec.demotion.capacity.maxBytesPerSecond of the policy is lower."
    )
    planned_limit: Ratio | None = Field(
        default=None,
        description="The same for planned.ratio, which is a multiple of the busiest broker after the plan.",
    )
    measured_at: AwareDatetime = Field(description="Time of the cluster state that was measured.")


class SkippedReason(Reported):
    """Number of partitions of the plan that one reason skipped."""

    reason: ReasonName = Field(description="Reason, in CamelCase.")
    count: Count = Field(description="Number of partitions that were skipped for this reason.")


class SkippedPartition(Reported):
    """A partition of the plan that was skipped."""

    topic: str = Field(max_length=249, description="Name of the topic.")
    partition: Count = Field(description="Number of the partition.")
    reason: ReasonName = Field(description="Why it was skipped, in CamelCase.")


class PlanWithoutCap(Reported):
    """What is possible without maxMoves. Unset if the cap does not make the plan worse."""

    load_after: Count = Field(description="Highest relative load after such a plan, as the planner claims.")
    bound: Count = Field(description="Lower bound of the highest relative load of all plans without maxMoves.")
    moves: Count = Field(description="Number of leaders that this plan moves, as the planner claims.")


Hour = Annotated[
    str, Field(max_length=32, pattern=r"^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day ([01][0-9]|2[0-3]):00 UTC$")
]


class BrokerHour(Reported):
    """The busiest broker in its busiest hour of the week."""

    broker: Count = Field(description="Id of the broker.")
    hour: Hour = Field(description="The hour that begins then, such as Tuesday 14:00 UTC.")
    load: Count = Field(description="Its mean load in that hour, in bytes/s per 100 of capacity.")


class StatisticPlan(Reported):
    """The plan that balances the statistic alone, as the planner claims. Unset unless leaders were chosen for hours."""

    load: Count = Field(description="Its busiest broker-hour, in bytes/s per 100 of capacity.")
    moves: Count = Field(description="Number of leaders that it moves.")


class RequestHour(Reported):
    """The busiest broker by requests, in its busiest hour of the week."""

    broker: Count = Field(description="Id of the broker.")
    hour: Hour = Field(description="The hour that begins then.")
    per_second: Count = Field(description="Its mean requests per second in that hour, per 100 of its requestCapacity.")


class BusiestRequests(Reported):
    """The busiest broker by requests, before and after the plan. Unset unless requests count."""

    before: RequestHour = Field(description="Before the plan.")
    after: RequestHour = Field(description="After the plan.")
    request_bytes: Count = Field(description="Bytes per second that one request per second counts as.")
    not_measured: Count = Field(
        default=0, description="Number of partitions whose requests are not measured. They count as 0."
    )


class Forecast(Reported):
    """The busiest broker in its busiest hour, before and after the plan. Unset if the history has no hour with enough
    samples.
    """

    hours: Annotated[int, Field(ge=1, le=168)] = Field(
        description="Number of hours of the week of which the history has samples. Nothing is known about the others."
    )
    before: BrokerHour = Field(description="The busiest broker-hour before the plan.")
    after: BrokerHour = Field(description="The busiest broker-hour after the plan.")
    bound: Count | None = Field(
        default=None,
        description="Lower bound of the busiest broker-hour that any plan can reach, by bytes and, where they count, by"
        " requests, as proved by the certificate. Unset if the plan is not made for the hours.",
    )
    gap_percent: Percent | None = Field(
        default=None,
        description="Percentage by which the load after the plan exceeds the bound. Unset if the bound is 0.",
    )
    statistic_plan: StatisticPlan | None = None
    requests: BusiestRequests | None = None

    @property
    def highest(self) -> tuple[int, int]:
        """The busiest broker-hour before and after, by bytes or by requests, whichever is more; in bytes/s."""
        found, of = (self.before.load, self.after.load), self.requests
        if of is None:
            return found
        before, after = (of.request_bytes * one.per_second for one in (of.before, of.after))
        return max(found[0], before), max(found[1], after)


class PlanFigures(Reported):
    """Figures of a load plan. Loads are those of the busiest broker, in bytes/s per 100 of capacity."""

    evidence: str = Field(
        default="",
        max_length=MESSAGE_LIMIT,
        description="What the plan rests on: measured period, hours of the week, partitions, and share of the bytes.",
    )
    losses: str = Field(
        default="",
        max_length=MESSAGE_LIMIT,
        description=(
            "Load of the busiest survivor after the worst loss of one broker and of a rack, in multiples of the busiest"
            " broker after the plan."
        ),
    )
    load_before: Count = Field(description="Highest relative load before the plan.")
    load_after: Count = Field(description="Highest relative load after the plan.")
    bound: Count = Field(
        description="Lower bound of the highest relative load that any plan can reach, as proved by the certificate."
    )
    gap_percent: Percent | None = Field(
        default=None, description="Percentage by which loadAfter exceeds the bound. Unset if the bound is 0."
    )
    spread_percent_before: Percent = Field(
        description="Percentage by which the highest load exceeds the mean before the plan."
    )
    spread_percent_after: Percent = Field(
        description="Percentage by which the highest load exceeds the mean after the plan."
    )
    moves: Count = Field(description="Number of leaders that move.")
    reorders: Count = Field(description="Number of partitions whose replica order changes but not their leader.")
    moved_bytes_per_second: Count = Field(description="Load of the leaders that move, in bytes per second.")
    least_moved_bytes_per_second: Count = Field(
        description="Minimum load that any plan that reaches loadAfter has to move, in bytes per second."
    )
    without_consumption: Count = Field(
        default=0,
        description="Number of partitions whose consumption is not measured. It counts as 0, so brokers with many"
        " consumers seem less loaded than they are; run the sampler with Prometheus to measure it.",
    )
    bound_reason: str = Field(
        default="",
        max_length=MESSAGE_LIMIT,
        description="Why no plan can bring the highest load below the bound: the brokers that prove it, and their"
        " heaviest partitions.",
    )
    without_cap: PlanWithoutCap | None = None
    forecast: Forecast | None = None


class LeaderRebalanceStatus(Reported):
    """State of the load rebalance, written by the operator."""

    observed_generation: int | None = Field(default=None, ge=0, description="metadata.generation that was last used.")
    conditions: Conditions = Field(
        default=(),
        description="Ready: the policy's operator uses the object. RebalanceProposed: a plan is ready for approval."
        " Rebalancing: its waves are being applied.",
    )
    state: RunState = Field(
        default=RunState.IDLE,
        description="Idle: there is no plan. Running: a job computes a plan. Proposed: the plan is ready for"
        " approval. Approved: the plan is about to be applied. Applying: its waves are being applied."
        " Done: it has been applied, and its orders are the baselines. Failed: the plan could not be computed or"
        " verified. Stale: the plan is too old, or the cluster has changed too much. Superseded: a new plan was"
        " requested.",
    )
    reason: ReasonName = Field(default=str(Reason.NO_PLAN_PENDING), description="Reason for the state, in CamelCase.")
    message: str = Field(
        default="", max_length=MESSAGE_LIMIT, description="Explanation of the reason, in one sentence."
    )
    run: str = Field(default="", max_length=63, description="Name of the run, its files and its job.")
    request: str = Field(
        default="",
        max_length=REQUEST_LIMIT,
        description="The last processed value of the bellwether.dev/rebalance annotation.",
    )
    started_at: AwareDatetime | None = Field(default=None, description="Time when the run started.")
    next_at: AwareDatetime | None = Field(default=None, description="Time when the schedule starts the next run.")
    input_digest: str = Field(
        default="",
        max_length=64,
        description="Digest of the problem (brokers, partitions, objective) that the operator wrote for this run."
        " A plan for another problem is rejected.",
    )
    digest: str = Field(default="", max_length=64, description="Digest of the plan, required for its approval.")
    made_at: AwareDatetime | None = Field(
        default=None, description="Time of the cluster state for which the plan was computed."
    )
    plan: PlanFigures | None = None
    losses: Losses | None = None
    applied: Count = Field(default=0, description="Number of partitions that have the order of the plan.")
    skipped: Count = Field(default=0, description="Number of partitions of the plan that were skipped.")
    skipped_by_reason: tuple[SkippedReason, ...] = Field(
        default=(),
        max_length=REASON_LIMIT,
        description="Skipped partitions by reason.",
        json_schema_extra=as_map("reason"),
    )
    skipped_sample: tuple[SkippedPartition, ...] = Field(
        default=(),
        max_length=SAMPLE_SIZE,
        description="First skipped partitions.",
        json_schema_extra=ATOMIC,
    )

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
