"""``status.rebalance``: phase, plan figures, and what was left out.

Made from a ``core.rebalance.lifecycle.Run`` and read back into one, so that an operator that takes over knows where
things stand. Numbers are whole, and percentages text, as API conventions have no floating point numbers.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import Reported, as_map
from bellwether.core.model import undo_record
from bellwether.core.reasons import reason_named
from bellwether.core.rebalance import lifecycle
from bellwether.core.rebalance.waves import SAMPLE_SIZE

MESSAGE_LIMIT = 1024
REASON_LIMIT = 64
REQUEST_LIMIT = 256

Count = Annotated[int, Field(ge=0)]
ReasonName = Annotated[str, Field(min_length=1, max_length=128, pattern="^[A-Za-z][A-Za-z0-9]*$")]
Percent = Annotated[str, Field(max_length=32, pattern=r"^-?[0-9]+(\.[0-9]+)?$")]


class SkippedReason(Reported):
    """How many partitions of the plan one reason left out."""

    reason: ReasonName = Field(description="The reason.")
    count: Count = Field(description="How many partitions it left out.")


class SkippedPartition(Reported):
    """One partition of the plan that was left out."""

    topic: str = Field(max_length=249, description="Topic.")
    partition: Count = Field(description="Partition.")
    reason: ReasonName = Field(description="Why.")


class PlanFigures(Reported):
    """A load plan in sum. Loads are those of the busiest broker, in bytes/s per 100 of capacity."""

    load_before: Count = Field(description="The highest relative load before.")
    load_after: Count = Field(description="The highest relative load that the plan leads to.")
    bound: Count = Field(description="Below this no plan can bring it: the certificate proves that.")
    gap_percent: Percent | None = Field(
        default=None, description="By how much loadAfter exceeds the bound. Absent where the bound is 0."
    )
    spread_percent_before: Percent = Field(description="By how much the highest load exceeds the mean before.")
    spread_percent_after: Percent = Field(description="And after.")
    moves: Count = Field(description="Leaders that move.")
    reorders: Count = Field(description="Partitions of which only the replica order changes.")
    moved_bytes_per_second: Count = Field(description="Load of the leaders that move.")
    least_moved_bytes_per_second: Count = Field(description="What any plan to loadAfter must move at least.")

    @classmethod
    def of(cls, figures: lifecycle.RebalanceFigures) -> PlanFigures:
        """The figures as status has them."""
        return cls(
            load_before=round(figures.before),
            load_after=round(figures.after),
            bound=round(figures.bound),
            gap_percent=None if figures.gap is None else f"{figures.gap * 100:.3f}",
            spread_percent_before=f"{figures.spread_before * 100:.1f}",
            spread_percent_after=f"{figures.spread_after * 100:.1f}",
            moves=figures.moves,
            reorders=figures.reorders,
            moved_bytes_per_second=figures.load,
            least_moved_bytes_per_second=figures.least_load,
        )

    def to_core(self) -> lifecycle.RebalanceFigures:
        """The figures as a value of the core, rounded as they stand here."""
        return lifecycle.RebalanceFigures(
            before=float(self.load_before),
            after=float(self.load_after),
            spread_before=float(self.spread_percent_before) / 100,
            spread_after=float(self.spread_percent_after) / 100,
            bound=float(self.bound),
            gap=None if self.gap_percent is None else float(self.gap_percent) / 100,
            moves=self.moves,
            reorders=self.reorders,
            load=self.moved_bytes_per_second,
            least_load=self.least_moved_bytes_per_second,
        )


class RebalanceStatus(Reported):
    """How the rebalance by load stands."""

    state: lifecycle.RunState = Field(
        description="Idle: nothing is proposed. Running: a job makes a plan. Proposed: a plan waits for approval."
        " Approved, Applying, Done: its orders become baselines. Failed: there is no plan. Stale: too much has changed,"
        " or it is too old. Superseded: another one was asked for."
    )
    reason: ReasonName = Field(description="Why it stands so.")
    message: str = Field(default="", max_length=MESSAGE_LIMIT, description="The same in a sentence.")
    run: str = Field(default="", max_length=63, description="Name of the run: of its problem, its loads and its job.")
    request: str = Field(default="", max_length=REQUEST_LIMIT, description="The last word of a person that was served.")
    started_at: AwareDatetime | None = Field(default=None, description="When the run began.")
    next_at: AwareDatetime | None = Field(default=None, description="When the schedule begins the next one.")
    digest: str = Field(default="", max_length=64, description="The plan's digest, which an approval names.")
    made_at: AwareDatetime | None = Field(default=None, description="What moment of the cluster the plan is for.")
    plan: PlanFigures | None = Field(default=None, description="The plan in figures.")
    applied: Count = Field(default=0, description="Partitions of the plan that got its order, or had it.")
    skipped: Count = Field(default=0, description="Partitions of the plan that were left out.")
    skipped_by_reason: tuple[SkippedReason, ...] = Field(
        default=(), max_length=REASON_LIMIT, description="The same by reason.", json_schema_extra=as_map("reason")
    )
    skipped_sample: tuple[SkippedPartition, ...] = Field(
        default=(),
        max_length=SAMPLE_SIZE,
        description="The first of them.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )

    @classmethod
    def of(cls, run: lifecycle.RebalanceRun) -> RebalanceStatus:
        """A run as status has it."""
        skipped = sum(run.left.values())
        return cls(
            state=run.state,
            reason=str(run.reason),
            message=run.message[:MESSAGE_LIMIT],
            run=run.name,
            request=run.request[:REQUEST_LIMIT],
            started_at=run.started_at,
            next_at=run.next_at,
            digest=run.digest,
            made_at=run.made_at,
            plan=PlanFigures.of(run.figures) if run.figures is not None else None,
            applied=run.taken_up - skipped,
            skipped=skipped,
            skipped_by_reason=tuple(SkippedReason(reason=reason, count=n) for reason, n in sorted(run.left.items())),
            skipped_sample=tuple(
                SkippedPartition(topic=one.topic, partition=one.partition, reason=one.reason) for one in run.sample
            ),
        )

    def to_core(self) -> lifecycle.RebalanceRun:
        """The run, as it was last said to stand."""
        return lifecycle.RebalanceRun(
            state=self.state,
            reason=reason_named(self.reason),
            message=self.message,
            name=self.run,
            request=self.request,
            started_at=self.started_at,
            next_at=self.next_at,
            digest=self.digest,
            made_at=self.made_at,
            figures=self.plan.to_core() if self.plan is not None else None,
            taken_up=self.applied + self.skipped,
            left={one.reason: one.count for one in self.skipped_by_reason},
            sample=tuple(
                undo_record.SkippedPartition(one.topic, one.partition, one.reason) for one in self.skipped_sample
            ),
        )
