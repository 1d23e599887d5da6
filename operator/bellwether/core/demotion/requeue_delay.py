"""Seconds until a dwell or stabilization timer of a broker expires, for requeueing.

In: a verdict and the decisions. Out: seconds. Called by the policy loops and by simulations.
"""

from __future__ import annotations

from datetime import datetime

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.flap_damping import FlapCounter, stabilization
from bellwether.core.settings.policy import Policy

SOONEST_SECONDS = 0.05


def requeue_after(
    verdict: Verdict, *, dwell_left: float | None, flaps: FlapCounter | None, policy: Policy, now: datetime
) -> float | None:
    """Seconds until a broker has been sick, or healthy, for long enough; None if neither timer runs."""
    if dwell_left is not None:
        left = dwell_left
    elif verdict.state is HealthState.RECOVERING:
        left = stabilization(flaps, policy) - (now - verdict.since).total_seconds()
    else:
        return None
    return max(SOONEST_SECONDS, left)
