"""Load plans as values, approved and ready to be applied, without loads and without a planner."""

from __future__ import annotations

from collections.abc import Collection
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

DIGEST = "0123456789abcdef"


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
