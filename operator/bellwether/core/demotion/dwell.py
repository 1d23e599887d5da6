"""Dwell time: how long the harm of a Sick broker is known before it is demoted, so that a common cause can be seen.

In: a verdict and what the decisions rest on. Out: seconds left. Called by ``decisions`` and ``broker_report``. Why half
of the time can be enough: docs/decisions/0052.
"""

from __future__ import annotations

from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import Verdict


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
