"""The status of a LeaderRebalance as the load side reports it."""

from __future__ import annotations

from typing import Any

from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus, PlanFigures
from bellwether.core.reasons import Reason
from bellwether.ports.rebalance import RunState


def rebalance(
    state: RunState, reason: Reason = Reason.NO_PLAN_PENDING, message: str = "", **more: Any
) -> LeaderRebalanceStatus:
    """A rebalance in that state."""
    return LeaderRebalanceStatus(state=state, reason=str(reason), message=message, **more)


def plan_figures(**more: Any) -> PlanFigures:
    """A plan that moves seven leaders and halves the highest load, by default."""
    given: dict[str, Any] = {
        "load_before": 200,
        "load_after": 100,
        "bound": 99,
        "gap_percent": "1.010",
        "moves": 7,
        "reorders": 2,
        "improvement": "the highest load falls by 50.0%",
    }
    return PlanFigures(**(given | more))
