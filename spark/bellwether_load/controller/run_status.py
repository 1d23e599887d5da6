"""A rebalance run as a LeaderRebalance reports it, and back: an operator that takes over continues the run."""

from __future__ import annotations

from bellwether.api.v1alpha1.status import rebalance_status as reported
from bellwether.api.v1alpha1.status.rebalance_status import REQUEST_LIMIT, LeaderRebalanceStatus
from bellwether.api.v1alpha1.status.status_conditions import MESSAGE_LIMIT
from bellwether.core.model.undo_record import SkippedPartition
from bellwether.core.reasons import reason_named
from bellwether_load.controller.lifecycle import RebalanceRun


def status_of(run: RebalanceRun) -> LeaderRebalanceStatus:
    """The run, as it is reported."""
    skipped = sum(run.left.values())
    return LeaderRebalanceStatus(
        state=run.state,
        reason=str(run.reason),
        message=run.message[:MESSAGE_LIMIT],
        run=run.name,
        request=run.request[:REQUEST_LIMIT],
        started_at=run.started_at,
        next_at=run.next_at,
        input_digest=run.input_digest,
        digest=run.digest,
        made_at=run.made_at,
        plan=run.figures,
        applied=run.taken_up - skipped,
        skipped=skipped,
        skipped_by_reason=tuple(reported.SkippedReason(reason=why, count=n) for why, n in sorted(run.left.items())),
        skipped_sample=tuple(
            reported.SkippedPartition(topic=one.topic, partition=one.partition, reason=one.reason) for one in run.sample
        ),
    )


def run_of(status: LeaderRebalanceStatus) -> RebalanceRun:
    """The run that the next reconcile continues from."""
    return RebalanceRun(
        state=status.state,
        reason=reason_named(status.reason),
        message=status.message,
        name=status.run,
        request=status.request,
        started_at=status.started_at,
        next_at=status.next_at,
        input_digest=status.input_digest,
        digest=status.digest,
        made_at=status.made_at,
        figures=status.plan,
        taken_up=status.applied + status.skipped,
        left={one.reason: one.count for one in status.skipped_by_reason},
        sample=tuple(SkippedPartition(one.topic, one.partition, one.reason) for one in status.skipped_sample),
    )
