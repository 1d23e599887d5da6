"""The figures of a plan as a LeaderRebalance reports them: whole numbers, and percentages in words."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from bellwether.api.v1alpha1.status import rebalance_status as reported
from bellwether.api.v1alpha1.status.rebalance_status import PlanFigures
from bellwether.api.v1alpha1.status.status_conditions import MESSAGE_LIMIT
from bellwether_load.plan.plan_losses import WorstLoss
from bellwether_load.plan.rebalance_plan import RebalancePlan


def plan_figures(plan: RebalancePlan, summary: Iterable[str] = ()) -> PlanFigures:
    """The figures of a plan. ``summary``: the plan in sentences."""
    gap = plan.gap
    what, share = improvement(plan)
    return PlanFigures(
        summary=tuple(line[:MESSAGE_LIMIT] for line in summary),
        load_before=round(plan.before.max),
        load_after=round(plan.after.max),
        bound=round(plan.certificate.bound),
        gap_percent=None if gap is None else f"{max(0.0, gap) * 100:.3f}",
        moves=plan.moved.partitions,
        reorders=plan.moved.reordered,
        improvement=f"{what} {'falls' if share >= 0 else 'rises'} by {abs(share):.1%}",
    )


def improvement(plan: RebalancePlan) -> tuple[str, float]:
    """What falls, and by how much, 0 to 1: the busiest broker-hour where that is bounded, else the highest load."""
    what, before, after = "the highest load", plan.before.max, plan.after.max
    if plan.forecast is not None and plan.certificate.hourly is not None:
        what = "the load of the busiest hour"
        before, after = plan.forecast.highest(plan.objective.request_bytes)
    return what, 1 - after / before if before > 0 else 0.0


def losses(plan: RebalancePlan, limit_percent: int, max_load: int | None) -> reported.Losses | None:
    """The losses of a plan by kind; None where no broker survives another, or nothing has a load.

    ``limit_percent`` of the busiest broker, and ``max_load`` in bytes/s per 100 of capacity, if any: the lower one is
    the limit.
    """
    found = {loss.kind: loss for loss in plan.losses.kinds} if plan.losses else {}
    now, planned = plan.before.max, plan.after.max
    if "broker" not in found or not now or not planned:
        return None
    kinds = {
        kind: reported.LossRatios(
            now=_loss(loss.before, now), planned=_loss(loss.after, planned), bound=f"{loss.bound / planned:.2f}"
        )
        for kind, loss in found.items()
    }
    limit, planned_limit = (
        f"{min(limit_percent / 100, inf if max_load is None else max_load / top):.2f}" for top in (now, planned)
    )
    return reported.Losses(
        broker=kinds["broker"],
        rack=kinds.get("rack"),
        limit=limit,
        planned_limit=planned_limit,
        measured_at=plan.made_at,
    )


def _loss(found: WorstLoss, busiest: float) -> reported.ReportedLoss:
    return reported.ReportedLoss(lost=found.lost, busiest=found.broker, ratio=f"{found.load / busiest:.2f}")
