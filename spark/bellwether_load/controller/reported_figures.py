"""The figures of a plan as a LeaderRebalance reports them: whole numbers, and percentages in words."""

from __future__ import annotations

from math import inf

from bellwether.api.v1alpha1.status import rebalance_status as reported
from bellwether.api.v1alpha1.status.rebalance_status import PlanFigures
from bellwether.api.v1alpha1.status.status_conditions import MESSAGE_LIMIT
from bellwether_load.plan.forecast import BrokerHour
from bellwether_load.plan.plan_losses import WorstLoss
from bellwether_load.plan.rebalance_plan import RebalancePlan


def plan_figures(plan: RebalancePlan, bound_reason: str = "") -> PlanFigures:
    """The figures of a plan. ``bound_reason``: what decides its bound, in words."""
    free = plan.certificate.without_cap
    return PlanFigures(
        evidence=plan.evidence_line[:MESSAGE_LIMIT],
        losses=plan.losses_line[:MESSAGE_LIMIT],
        load_before=round(plan.before.max),
        load_after=round(plan.after.max),
        bound=round(plan.certificate.bound),
        gap_percent=_percent(plan.certificate.gap),
        spread_percent_before=f"{plan.before.spread * 100:.1f}",
        spread_percent_after=f"{plan.after.spread * 100:.1f}",
        moves=plan.moved.partitions,
        reorders=plan.moved.reordered,
        moved_bytes_per_second=plan.moved.load // 100,
        least_moved_bytes_per_second=plan.moved.lower_bound // 100,
        without_consumption=plan.unmeasured,
        bound_reason=bound_reason[:MESSAGE_LIMIT],
        without_cap=None
        if free is None
        else reported.PlanWithoutCap(load_after=round(free.load), bound=round(free.bound), moves=free.partitions),
        forecast=_forecast(plan),
    )


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


def _forecast(plan: RebalancePlan) -> reported.Forecast | None:
    found, proof = plan.forecast, plan.certificate.hourly
    if found is None:
        return None
    other, requests, unit = None if proof is None else proof.statistic_plan, None, plan.objective.request_bytes
    if found.requests is not None:
        before, after = (_request_hour(one) for one in (found.requests.before, found.requests.after))
        requests = reported.BusiestRequests(
            before=before, after=after, request_bytes=unit, not_measured=plan.without_requests
        )
    return reported.Forecast(
        hours=found.hours,
        before=_broker_hour(found.before),
        after=_broker_hour(found.after),
        bound=None if proof is None else round(proof.bound),
        gap_percent=None if proof is None else _percent(proof.gap(found.highest(unit)[1])),
        statistic_plan=None
        if other is None
        else reported.StatisticPlan(load=round(other.load), moves=other.partitions),
        requests=requests,
    )


def _broker_hour(found: BrokerHour) -> reported.BrokerHour:
    return reported.BrokerHour(broker=found.broker, hour=found.moment, load=round(found.load))


def _request_hour(found: BrokerHour) -> reported.RequestHour:
    return reported.RequestHour(broker=found.broker, hour=found.moment, per_second=round(found.load))


def _percent(gap: float | None) -> str | None:
    return None if gap is None else f"{max(0.0, gap) * 100:.3f}"
