"""Load plans without loads and without a planner: as values that are approved and ready to be applied, and written."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from bellwether.core.model.cluster import Partition
from bellwether.core.model.undo_record import PlanApplication
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.settings.rebalance import Rebalance, RebalanceWaves
from bellwether.core.waves.approved_plan import ApprovedPlan, RebalanceMove
from bellwether.simulation.memory_world import START
from bellwether_load.plan.problem import NO_BROKER
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.columns import table_of
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files
from bellwether_load.store.plans.problem_files import ORDER

DIGEST = "0123456789abcdef"


def write_plan(store: Store, plan: RebalancePlan, moves: Iterable[RebalanceMove]) -> str:
    """Write a plan with these moves, put into order, as the job does; its path in the store."""
    return plan_files.write_plan(store, plan, table_of(moves, plan_files.SCHEMA).sort_by(ORDER))


def loadmove(of: Partition, to: int | None = None, load: int = 100) -> RebalanceMove:
    """Leadership to ``to``, by default the second replica."""
    first = of.replicas[1] if to is None else to
    order = (first, *(b for b in of.replicas if b != first))
    leader = NO_BROKER if of.leader is None else of.leader
    return RebalanceMove(of.topic, of.topic_id, of.index, of.replicas, order, leader, first, load)


def accepted(
    *moves: RebalanceMove, digest: str = DIGEST, made_at: datetime = START, closed: Collection[int] = ()
) -> ApprovedPlan:
    """An approved plan, made at the start of every test while every broker was healthy, in the order given."""
    return ApprovedPlan(digest, made_at, frozenset(closed), moves)


def settings(partitions: int = 500, pause_seconds: int = 0, **more: Any) -> Rebalance:
    """No pause between waves by default."""
    return Rebalance(waves=RebalanceWaves(partitions=partitions, pause_seconds=pause_seconds), **more)


def policy(given: Rebalance | None = None, **more: Any) -> Policy:
    """One that acts and rebalances."""
    return Policy(name="main", mode=Mode.ENFORCE, rebalance=given or settings(), **more)


def application(moves: int = 1, **more: Any) -> PlanApplication:
    """Begun at the start of every test, and nothing taken up yet."""
    return replace(PlanApplication(DIGEST, moves, START, START), **more)
