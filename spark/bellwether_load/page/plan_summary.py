"""Plan summary: a rebalance plan with its heaviest moves, the plans before it, and what its verification found."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.rebalance_plan import RebalancePlan

if TYPE_CHECKING:  # numpy is for policies that rebalance
    from bellwether_load.verify.plan_verifier import Report

HEAVIEST = 25
FORMER = 10


@dataclass(frozen=True)
class Story:
    """A plan, its heaviest moves, and the newest plans of its policy, oldest first (the plan itself among them).

    ``problem``: name of the problem and the loads that it was made from, where these are still in the store; then the
    plan was verified from them: ``proof`` is what decides its bound, ``unmeasured`` the number of partitions without
    measured consumption by topic, ``faults`` what is wrong.
    """

    plan: RebalancePlan
    heaviest: tuple[RebalanceMove, ...] = ()
    history: tuple[RebalancePlan, ...] = ()
    store: str = ""
    problem: str = ""
    proof: str = ""
    unmeasured: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    def verified(self, report: Report, problem: str = "") -> Story:
        """The story with what the verification found; nothing of a plan that failed is explained."""
        found = replace(self, problem=problem, faults=report.faults)
        return found if report.faults else replace(found, proof=report.reasons, unmeasured=report.unmeasured)


def tell(
    plan: RebalancePlan, moves: Iterable[RebalanceMove], history: Iterable[RebalancePlan] = (), store: str = ""
) -> Story:
    """The story of a plan, in one pass through its moves. ``history`` may hold plans of other policies."""
    leaders = (move for move in moves if move.moves_leader)
    heaviest = heapq.nlargest(HEAVIEST, leaders, key=lambda move: move.load)  # of equal loads the first
    mine = [p for p in history if (p.cluster_id, p.policy) == (plan.cluster_id, plan.policy)]
    if all(p.digest != plan.digest for p in mine):
        mine.append(plan)
    mine.sort(key=lambda p: (p.made_at, p.digest))
    return Story(plan, tuple(heaviest), tuple(mine[-FORMER:]), store)
