"""What each loss of a broker and of a rack does to a cluster as it is, and what other orders of followers would do.

In: a case. Out: each loss with the partitions whose fall decides it, and the worst loss of each kind that reorders
alone reach. Called by ``bellwether losses``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bellwether_load.losses.loss_input import LossInput
from bellwether_load.losses.loss_loads import Loss, busiest, losses, worst
from bellwether_load.losses.order_descent import OrderDescent

_NAMED = 3
"""Partitions that are named for a loss."""
_AIM = 0.5
"""Of the worst loss: lower than any order reaches, so that the search goes on as long as it gains."""


@dataclass(frozen=True)
class LossReport:
    """``normal``: the busiest broker while none is lost. ``losses`` and ``deciding`` by kind: of each loss the rows of
    the partitions that fall to its busiest survivor, the heaviest first. ``reachable``: worst loss by kind with other
    orders of followers; ``reorders``: how many partitions that takes."""

    normal: Fraction
    losses: dict[str, list[Loss]]
    deciding: dict[str, list[list[int]]]
    reachable: dict[str, Fraction]
    reorders: int


def loss_report(case: LossInput) -> LossReport:
    """The losses of a cluster with its present leaders and orders."""
    found = {kind: losses(case, kind, case.leader, case.takers) for kind in case.domains}
    deciding = {kind: [_deciding(case, kind, loss) for loss in of] for kind, of in found.items()}
    normal, reachable, reorders = busiest(case, case.leader), {}, 0
    tops = {kind: top for kind, of in found.items() if (top := worst(of)) is not None}
    # A leader that is no taker (it is closed, or has left the ISR) keeps its partition's order.
    home = (case.takers == case.leader[:, None]).any(axis=1)
    movable = replace(case, stays=case.stays | ~home)
    if tops and movable.free.any():
        goals = {kind: float(top.load) * _AIM for kind, top in tops.items()}
        descent = OrderDescent(movable, case.takers, goals, normal)
        descent.run(leaders=False)
        descent.undo()
        _, second, rows = descent.result()
        order = np.where((second < case.brokers)[:, None], case.ordered(second, case.leader), case.takers)
        after = {kind: worst(losses(case, kind, case.leader, order)) for kind in tops}
        reachable = {kind: loss.load for kind, loss in after.items() if loss is not None}
        reorders = len(rows)
    return LossReport(normal, found, deciding, reachable, reorders)


def _deciding(case: LossInput, kind: str, loss: Loss) -> list[int]:
    heir = case.heirs(kind, case.leader, case.takers)
    lost = np.append(case.domains[kind], -1)[case.leader]
    rows = np.flatnonzero((lost == loss.domain) & (heir == loss.broker) & (case.loads > 0))
    heaviest = rows[np.argsort(-case.loads[rows], kind="stable")]
    return [int(row) for row in heaviest[:_NAMED]]
