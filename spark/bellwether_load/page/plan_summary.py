"""Plan summary for the page of a rebalance plan, gathered in one pass through its moves.

In: the plan, its moves one by one, and former plans. Out: a value that holds the heaviest moves and the sums, however
many moves there are. Called by ``bellwether rebalance show``.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.verify.bound_reasons import BoundReasons
from bellwether_load.verify.plan_verifier import Report

HEAVIEST = 25
FORMER = 60


@dataclass(frozen=True)
class Story:
    """A plan, its heaviest moves, and the plans before it, oldest first (the plan itself among them).

    ``left`` and ``came`` count leaders by broker. ``problem`` and ``loads`` are the names of what
    it was made from, where that is still in the store; then the plan was verified from it: ``proof`` is what decides
    its bound, ``unmeasured`` the number of partitions without measured consumption by topic, ``faults`` what is wrong.
    """

    plan: RebalancePlan
    heaviest: tuple[RebalanceMove, ...] = ()
    left: dict[int, int] = field(default_factory=dict)
    came: dict[int, int] = field(default_factory=dict)
    history: tuple[RebalancePlan, ...] = ()
    store: str = ""
    problem: str = ""
    loads: str = ""
    proof: BoundReasons | None = None
    unmeasured: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    def verified(self, report: Report, *, problem: str = "", loads: str = "") -> Story:
        """The story with what the verification found; nothing of a plan that failed is explained."""
        found = replace(self, problem=problem, loads=loads, faults=report.faults)
        return found if report.faults else replace(found, proof=report.reasons, unmeasured=report.unmeasured)


def tell(
    plan: RebalancePlan, moves: Iterable[RebalanceMove], history: Iterable[RebalancePlan] = (), store: str = ""
) -> Story:
    """The story of a plan. ``history`` may hold plans of other policies: they are left out."""
    left: Counter[int] = Counter()
    came: Counter[int] = Counter()

    def counted() -> Iterator[RebalanceMove]:
        for move in moves:
            if move.moves_leader:
                left[move.from_leader] += 1
                came[move.to_leader] += 1
                yield move

    heaviest = heapq.nlargest(HEAVIEST, counted(), key=lambda move: move.load)  # of equal loads the first
    mine = [p for p in history if (p.cluster_id, p.policy) == (plan.cluster_id, plan.policy)]
    if all(p.digest != plan.digest for p in mine):
        mine.append(plan)
    mine.sort(key=lambda p: (p.made_at, p.digest))
    return Story(
        plan,
        tuple(heaviest),
        dict(left),
        dict(came),
        tuple(mine[-FORMER:]),
        store,
    )
