"""Dwell time: how long the harm of a Sick broker is known before it is demoted, so that a common cause can be seen.

In: a verdict and what the decisions rest on. Out: seconds left, and when to look again. Called by ``decisions`` and by
reports. Why half of the time can be enough: docs/decisions/0052.
"""

from __future__ import annotations

from bellwether.core.detection.context import Context
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.flap_damping import FlapCounter, stabilization
from bellwether.core.model.known_good import MOST_BETWEEN_READS
from bellwether.core.settings.policy import Policy

SOONEST_SECONDS = 0.05


def dwell_left(verdict: Verdict, context: Context) -> float:
    """Seconds until a Sick broker may be demoted; 0 once it may.

    Half of the policy's time is enough for counted harm while every other broker is Healthy, which takes fresh
    evidence: harm by a cause that they share would be reported by then. Sources without figures report in their own
    time.
    """
    counted = any(lost for _, lost in verdict.harm)
    alone = counted and context.not_healthy <= {verdict.broker}
    wait = context.policy.demotion.dwell_seconds / (2 if alone else 1)
    noticed = verdict.noticed or verdict.since
    return max(0.0, wait - (context.snapshot.now - noticed).total_seconds())


def requeue_after(
    verdict: Verdict, *, dwell_left: float | None, flaps: FlapCounter | None, policy: Policy
) -> float | None:
    """Seconds until a broker has been sick, or healthy, for long enough; None if neither timer runs."""
    if dwell_left is not None:
        left = dwell_left
    elif verdict.state is HealthState.RECOVERING:
        # Read again while the time since this reconcile counts in full.
        left = min(stabilization(flaps, policy) - verdict.known_good.seconds, MOST_BETWEEN_READS)
    else:
        return None
    return max(SOONEST_SECONDS, left)
