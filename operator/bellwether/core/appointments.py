"""When time alone changes what is to be done about a broker, so that nobody has to look all the time.

In: a verdict, and what was decided. Out: seconds. Called by whoever takes one turn after another: the policy loops, and
simulations.
"""

from __future__ import annotations

from datetime import datetime

from bellwether.core.flapping import Flaps, stabilization
from bellwether.core.policies import Policy
from bellwether.core.transitions import Standing
from bellwether.core.verdicts import Verdict

SOONEST_SECONDS = 0.05


def appointment(
    verdict: Verdict, *, dwelling: bool, flaps: Flaps | None, policy: Policy, now: datetime
) -> float | None:
    """In how many seconds a broker has been sick, or well, for long enough; None when it waits for neither."""
    if dwelling:
        wait = policy.demotion.dwell_seconds
    elif verdict.standing is Standing.RECOVERING:
        wait = stabilization(flaps, policy)
    else:
        return None
    return max(SOONEST_SECONDS, wait - (now - verdict.since).total_seconds())
