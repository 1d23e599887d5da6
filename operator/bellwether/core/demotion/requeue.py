"""Seconds until a dwell or stabilization timer of a broker expires, for requeueing.

In: a verdict, and what was decided. Out: seconds. Called by whoever takes one turn after another: the policy loops, and
simulations.
"""

from __future__ import annotations

from datetime import datetime

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.flap_damping import FlapCounter, stabilization
from bellwether.core.settings.policy import Policy

SOONEST_SECONDS = 0.05


def requeue_after(
    verdict: Verdict, *, dwelling: bool, flaps: FlapCounter | None, policy: Policy, now: datetime
) -> float | None:
    """In how many seconds a broker has been sick, or well, for long enough; None when it waits for neither."""
    if dwelling:
        wait = policy.demotion.dwell_seconds
    elif verdict.state is HealthState.RECOVERING:
        wait = stabilization(flaps, policy)
    else:
        return None
    return max(SOONEST_SECONDS, wait - (now - verdict.since).total_seconds())
