"""Choose the orders of a plan so that losses stay low, and state them with a proof.

In: a case before the plan, and the leaders of the plan. Out: who comes next in each changed order, and what the plan
says of losses. Leaders change where orders alone leave a worst loss too high, and only as far as the busiest broker
stays within its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.balancing.blocks import Int32s, Int64s
from bellwether_load.losses.loss_bounds import LossBound, LossProof
from bellwether_load.losses.loss_input import RACK, LossInput
from bellwether_load.losses.loss_loads import Loss, busiest, losses, worst
from bellwether_load.losses.order_descent import HourLimits, OrderDescent
from bellwether_load.plan.plan_losses import PlanLoss, PlanLosses, WorstLoss

_ORDERS = 1.02
"""How far above its bound a worst loss may be without other leaders."""
_SHARE, _FEWEST = 4, 200
"""Leaders that change for losses: up to a quarter of those that change for the load, or so many."""
_AIM, _NEAR = 1.01, 1.015
"""Where the search ends, and up to where leaders and orders are given back: the last per cent takes most of them."""


@dataclass(frozen=True)
class PlannedOrders:
    """``leader``: of all partitions. ``second``: by partition who comes next after the leader, the number of brokers
    where the others keep their order. ``losses``: None where no broker survives another."""

    leader: Int32s
    second: Int32s
    losses: PlanLosses | None


def planned_orders(
    case: LossInput,
    leader: Int32s,
    ids: Sequence[int],
    racks: Sequence[str | None],
    limit: Fraction | None = None,
    most: int | None = None,
    hours: Callable[[], HourLimits] | None = None,
    tight: Int64s | None = None,
) -> PlannedOrders:
    """The orders for these leaders. ``ids`` and ``racks`` of the brokers, by index.

    ``limit``: relative load up to which leaders may be others, at most ``most`` of them than before the plan; None:
    they stay. ``hours``: limits by hour, made if leaders are to change. ``tight``: weights of brokers
    that prove how low the busiest one can be.
    """
    none = np.full(len(leader), case.brokers, np.int32)
    after = replace(case, leader=leader)
    start = np.where((leader == case.leader)[:, None], case.takers, case.ordered(none, leader))
    before = {kind: loss for kind in case.domains if (loss := worst(losses(case, kind, case.leader, case.takers)))}
    top, second = busiest(after, leader), none
    if not before or not top:
        return PlannedOrders(leader, none, None)
    allowed = top if limit is None else max(top, limit)
    bounds = {kind: LossProof(after, kind, allowed, tight).best(leader, start) for kind in before}
    changed = int((leader != case.leader).sum())
    allowance = changed + max(_FEWEST, changed // _SHARE)
    # A leader that is no taker cannot be chosen with its order.
    home = (case.takers == leader[:, None]).any(axis=1)
    movable = replace(after, stays=after.stays | ~home)
    if movable.free.any():
        goals = {kind: float(bound.value) for kind, bound in bounds.items()}
        descent = OrderDescent(
            movable, start, goals, allowed, case.leader, allowance if most is None else min(most, allowance)
        )
        descent.run(leaders=False, stop=_AIM)
        if limit is not None and max(descent.scores.values()) > _ORDERS:
            descent.hours = hours() if hours else None
            descent.run(leaders=True, stop=_AIM)
        descent.undo(_NEAR)
        leader, second, _ = descent.result()
        back = (leader == case.leader) & (case.ordered(second, leader) == case.takers).all(axis=1)
        second[back] = case.brokers
    order = np.where((leader == after.leader)[:, None], start, case.ordered(none, leader))
    order = np.where((second < case.brokers)[:, None], case.ordered(second, leader), order)
    found = []
    for kind, known in bounds.items():
        proof = LossProof(after, kind, busiest(after, leader), tight)
        again = proof.bound(known.lost, known.normal, known.threshold)
        last = worst(losses(after, kind, leader, order))
        if last is not None:
            best = max((again, proof.best(leader, order)), key=lambda bound: bound.value)
            names = [str(i) for i in ids] if kind != RACK else sorted({rack for rack in racks if rack})
            found.append(_stated(kind, before[kind], last, best, ids, names))
    return PlannedOrders(leader, second, PlanLosses(tuple(found)))


def _stated(
    kind: str, before: Loss, after: Loss, bound: LossBound, ids: Sequence[int], names: Sequence[str]
) -> PlanLoss:
    lost: dict[str, Mapping[int, int]] = {}
    for domain, row in enumerate(bound.lost.tolist()):
        if any(row):
            lost[names[domain]] = {int(ids[b]): weight for b, weight in enumerate(row) if weight}
    normal = {int(ids[b]): weight for b, weight in enumerate(bound.normal.tolist()) if weight}
    threshold = None if bound.threshold is None else float(bound.threshold)
    first, last = (WorstLoss(names[loss.domain], int(ids[loss.broker]), float(loss.load)) for loss in (before, after))
    return PlanLoss(kind, first, last, float(bound.value), lost, normal, threshold)
