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
    verdict: Verdict, *, dwelling: bool, flaps: FlapCounter | None, policy: Policy, now: datetime
) -> float | None:
    """Seconds until a broker has been sick, or healthy, for long enough; None if neither timer runs."""
    since = verdict.since
    if dwelling:
        wait, since = policy.demotion.dwell_seconds, verdict.noticed or since
    elif verdict.state is HealthState.RECOVERING:
        wait = stabilization(flaps, policy)
    else:
        return None
    return max(SOONEST_SECONDS, wait - (now - since).total_seconds())
