"""``status.rebalance``: state, plan figures, and partitions that were skipped.

Converted from a ``core.rebalance.lifecycle.RebalanceRun`` and back, so that an operator that takes over continues the
run. Numbers are integers and percentages are strings, because Kubernetes APIs do not use floating point numbers.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import Reported, as_map
from bellwether.api.v1alpha1.core_models import Of, StatusModel
from bellwether.core.model import undo_record
from bellwether.core.reasons import reason_named
from bellwether.core.rebalance import forecast, hourly_proof, lifecycle
from bellwether.core.waves.rebalance_waves import SAMPLE_SIZE

MESSAGE_LIMIT = 1024
REASON_LIMIT = 64
REQUEST_LIMIT = 256

Count = Annotated[int, Field(ge=0)]
ReasonName = Annotated[str, Field(min_length=1, max_length=128, pattern="^[A-Za-z][A-Za-z0-9]*$")]
Percent = Annotated[str, Field(max_length=32, pattern=r"^-?[0-9]+(\.[0-9]+)?$")]


class SkippedReason(Reported):
    """Number of partitions of the plan that one reason skipped."""

    reason: ReasonName = Field(description="Reason, in CamelCase.")
    count: Count = Field(description="Number of partitions that were skipped for this reason.")


class SkippedPartition(StatusModel[undo_record.SkippedPartition]):
    """A partition of the plan that was skipped."""

    topic: str = Field(max_length=249, description="Name of the topic.")
    partition: Count = Field(description="Number of the partition.")
    reason: ReasonName = Field(description="Why it was skipped, in CamelCase.")


class PlanWithoutCap(StatusModel[lifecycle.UncappedFigures]):
    """A plan that was found without maxMoves, for comparison. Loads are those of the busiest broker."""

    load_after: Annotated[Count, Of("after", 1)] = Field(
        description="Highest relative load after such a plan, which the planner has found."
    )
    bound: Annotated[Count, Of("bound", 1)] = Field(
        description="Lower bound of the highest relative load of all plans without maxMoves."
    )
    moves: Count = Field(description="Number of leaders that this plan moves.")


class BrokerHour(StatusModel[forecast.BrokerHour]):
    """The busiest broker in its busiest hour of the week."""

    broker: Count = Field(description="Id of the broker.")
    hour: Annotated[str, Of("moment")] = Field(
        max_length=32,
        pattern=r"^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day ([01][0-9]|2[0-3]):00 UTC$",
        description="The hour that begins then, such as Tuesday 14:00 UTC.",
    )
    load: Annotated[Count, Of("load", 1)] = Field(
        description="Its mean load in that hour, in bytes/s per 100 of capacity."
    )

    def to_core(self, **_: Any) -> forecast.BrokerHour:
        """Convert to one of the core, rounded as in status."""
        return forecast.BrokerHour.at(self.broker, self.hour, float(self.load))


class StatisticPlan(StatusModel[hourly_proof.StatisticPlan]):
    """The plan that balances the statistic alone, for comparison."""

    load: Annotated[Count, Of("load", 1)] = Field(
        description="Its busiest broker-hour, in bytes/s per 100 of capacity."
    )
    moves: Annotated[Count, Of("partitions")] = Field(description="Number of leaders that it moves.")


class Forecast(StatusModel[lifecycle.RebalanceFigures]):
    """The busiest broker-hours of the week, from the loads by hour."""

    hours: Annotated[int, Field(ge=1, le=forecast.WEEK), Of("forecast.hours")] = Field(
        description="Number of hours of the week of which the history has samples. Nothing is known about the others."
    )
    before: Annotated[BrokerHour, Of("forecast.before")] = Field(description="The busiest broker-hour before the plan.")
    after: Annotated[BrokerHour, Of("forecast.after")] = Field(description="The busiest broker-hour after the plan.")
    bound: Annotated[Count | None, Of("hourly.bound", 1)] = Field(
        default=None,
        description="Lower bound of the busiest broker-hour that any plan can reach, as proved by the certificate."
        " Unset if the plan is not made for the hours.",
    )
    gap_percent: Annotated[Percent | None, Of("hourly.gap", percent=3)] = Field(
        default=None,
        description="Percentage by which the load after the plan exceeds the bound. Unset if the bound is 0.",
    )
    statistic_plan: Annotated[StatisticPlan | None, Of("hourly.statistic_plan")] = Field(
        default=None,
        description="The plan that balances the statistic alone. Unset unless other leaders were chosen for the hours.",
    )

    def to_core(self, **_: Any) -> Any:
        """The forecast of the core, rounded as in status."""
        return forecast.Forecast(self.hours, self.before.to_core(), self.after.to_core())

    def proved(self) -> lifecycle.HourlyFigures | None:
        """What is proved of it, rounded as in status."""
        if self.bound is None:
            return None
        gap, other = self.gap_percent, self.statistic_plan
        return lifecycle.HourlyFigures(
            float(self.bound),
            None if gap is None else float(gap) / 100,
            None if other is None else other.to_core(),
        )


class PlanFigures(StatusModel[lifecycle.RebalanceFigures]):
    """Figures of a load plan. Loads are those of the busiest broker, in bytes/s per 100 of capacity."""

    load_before: Annotated[Count, Of("before", 1)] = Field(description="Highest relative load before the plan.")
    load_after: Annotated[Count, Of("after", 1)] = Field(description="Highest relative load after the plan.")
    bound: Annotated[Count, Of("bound", 1)] = Field(
        description="Lower bound of the highest relative load that any plan can reach, as proved by the certificate."
    )
    gap_percent: Annotated[Percent | None, Of("gap", percent=3)] = Field(
        default=None, description="Percentage by which loadAfter exceeds the bound. Unset if the bound is 0."
    )
    spread_percent_before: Annotated[Percent, Of("spread_before", percent=1)] = Field(
        description="Percentage by which the highest load exceeds the mean before the plan."
    )
    spread_percent_after: Annotated[Percent, Of("spread_after", percent=1)] = Field(
        description="Percentage by which the highest load exceeds the mean after the plan."
    )
    moves: Count = Field(description="Number of leaders that move.")
    reorders: Count = Field(description="Number of partitions whose replica order changes but not their leader.")
    moved_bytes_per_second: Annotated[Count, Of("load")] = Field(
        description="Load of the leaders that move, in bytes per second."
    )
    least_moved_bytes_per_second: Annotated[Count, Of("least_load")] = Field(
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
    without_cap: Annotated[PlanWithoutCap | None, Of("uncapped")] = Field(
        default=None, description="What is possible without maxMoves. Unset if the cap does not make the plan worse."
    )
    forecast: Forecast | None = Field(
        default=None,
        description="The busiest broker in its busiest hour, before and after the plan. Unset if the history has no"
        " hour with enough samples.",
    )

    @classmethod
    def of(cls, core: lifecycle.RebalanceFigures, /, **others: Any) -> Self:
        """Convert figures of the core."""
        return super().of(core, forecast=None if core.forecast is None else Forecast.of(core), **others)

    def to_core(self, **others: Any) -> lifecycle.RebalanceFigures:
        """Convert to figures of the core, rounded as in status."""
        return super().to_core(hourly=None if self.forecast is None else self.forecast.proved(), **others)


class RebalanceStatus(StatusModel[lifecycle.RebalanceRun]):
    """State of the load rebalance."""

    state: lifecycle.RunState = Field(
        description="Idle: there is no plan. Running: a job computes a plan. Proposed: the plan is ready for"
        " approval. Approved: the plan is about to be applied. Applying: its waves are being applied."
        " Done: it has been applied, and its orders are the baselines. Failed: the plan could not be computed or"
        " verified. Stale: the plan is too old, or the cluster has changed too much. Superseded: a new plan was"
        " requested."
    )
    reason: ReasonName = Field(description="Reason for the state, in CamelCase.")
    message: str = Field(
        default="", max_length=MESSAGE_LIMIT, description="Explanation of the reason, in one sentence."
    )
    run: Annotated[str, Of("name")] = Field(
        default="", max_length=63, description="Name of the run, its files and its job."
    )
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
    plan: Annotated[PlanFigures | None, Of("figures")] = Field(default=None, description="Figures of the plan.")
    applied: Count = Field(default=0, description="Number of partitions that have the order of the plan.")
    skipped: Count = Field(default=0, description="Number of partitions of the plan that were skipped.")
    skipped_by_reason: tuple[SkippedReason, ...] = Field(
        default=(),
        max_length=REASON_LIMIT,
        description="Skipped partitions by reason.",
        json_schema_extra=as_map("reason"),
    )
    skipped_sample: Annotated[tuple[SkippedPartition, ...], Of("sample")] = Field(
        default=(),
        max_length=SAMPLE_SIZE,
        description="First skipped partitions.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )

    @classmethod
    def of(cls, core: lifecycle.RebalanceRun, /, **others: Any) -> Self:
        """Convert a run of the core."""
        skipped = sum(core.left.values())
        return super().of(
            core,
            request=core.request[:REQUEST_LIMIT],
            applied=core.taken_up - skipped,
            skipped=skipped,
            skipped_by_reason=[SkippedReason(reason=reason, count=n) for reason, n in sorted(core.left.items())],
            **others,
        )

    def to_core(self, **others: Any) -> lifecycle.RebalanceRun:
        """Convert to the run that the next reconcile continues from."""
        return super().to_core(
            reason=reason_named(self.reason),
            taken_up=self.applied + self.skipped,
            left={one.reason: one.count for one in self.skipped_by_reason},
            **others,
        )
