"""Choose the orders of followers of a plan whose leaders are chosen, and state its losses with a proof.

In: a case before the plan, and the leaders of the plan. Out: who comes next in each changed order, and what the plan
says of losses. Leaders stay as planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.losses.loss_bounds import LossBound, LossProof
from bellwether_load.losses.loss_input import RACK, Int32s, LossInput
from bellwether_load.losses.loss_loads import Loss, busiest, losses, worst
from bellwether_load.losses.order_descent import OrderDescent
from bellwether_load.plan.plan_losses import LIMIT, PlanLoss, PlanLosses, WorstLoss

_NEAR = 1.005
"""How close to its bound the worst loss of each kind may stay."""


@dataclass(frozen=True)
class PlannedOrders:
    """``second``: by partition who comes next after the leader, the number of brokers where the others keep their
    order. ``losses``: None where no broker survives another."""

    second: Int32s
    losses: PlanLosses | None


def planned_orders(case: LossInput, leader: Int32s, ids: Sequence[int], racks: Sequence[str | None]) -> PlannedOrders:
    """The orders for these leaders. ``ids`` and ``racks`` of the brokers, by index."""
    none = np.full(len(leader), case.brokers, np.int32)
    after = replace(case, leader=leader)
    start = np.where((leader == case.leader)[:, None], case.takers, case.ordered(none, leader))
    before = {kind: worst(losses(case, kind, case.leader, case.takers)) for kind in case.domains}
    kinds = [kind for kind, found in before.items() if found is not None]
    top = busiest(after, leader)
    if not kinds or not top:
        return PlannedOrders(none, None)
    limit = float(top) * LIMIT
    proofs = {kind: LossProof(after, kind, Fraction(limit)) for kind in kinds}
    bounds = {kind: proof.best(leader, start) for kind, proof in proofs.items()}
    second = none
    # A leader that is no taker cannot be chosen with its order.
    home = (case.takers == leader[:, None]).any(axis=1)
    movable = replace(after, stays=after.stays | ~home)
    if movable.free.any():
        descent = OrderDescent(movable, leader, start, {k: float(b.value) for k, b in bounds.items()}, top)
        descent.run(leaders=False, stop=_NEAR)
        descent.undo(_NEAR)
        _, second, _ = descent.result()
    order = np.where((second < case.brokers)[:, None], case.ordered(second, leader), start)
    found = []
    for kind, proof in proofs.items():
        last = worst(losses(after, kind, leader, order))
        first = before[kind]
        if first is not None and last is not None:
            best = max((bounds[kind], proof.best(leader, order)), key=lambda bound: bound.value)
            names = [str(i) for i in ids] if kind != RACK else sorted({rack for rack in racks if rack})
            found.append(_stated(kind, first, last, best, ids, names))
    return PlannedOrders(second, PlanLosses(limit, tuple(found)))


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
