"""Conditions of a policy's rack preferences: whether they fit the cluster, and whether they are met.

In: the context. Out: conditions; none where the policy has no preference. Pure. Called by
``policy_conditions``.
"""

from __future__ import annotations

from bellwether.core.condition import Condition
from bellwether.core.detection.context import Context
from bellwether.core.model.rack_ranking import LeadersOutsidePreferredRacks
from bellwether.core.model.strimzi import Blocker
from bellwether.core.reasons import Reason

NAMED = 5
"""How many warnings a message contains; the others are counted."""


def placement_conditions(context: Context) -> tuple[Condition, ...]:
    """``PlacementFits`` and ``PlacementMet``."""
    rankings = context.rankings
    if rankings is None or not context.snapshot.cluster.partitions:
        return ()
    return (_fits(rankings.warnings), _met(rankings.leaders_outside))


def _fits(found: tuple[Blocker, ...]) -> Condition:
    if not found:
        text = "every preferred rack has brokers, and every rule has topics"
        return Condition("PlacementFits", True, Reason.UP_TO_DATE, text)
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return Condition("PlacementFits", False, found[0].reason, "; ".join(m.message for m in found[:NAMED]) + more)


def _met(found: LeadersOutsidePreferredRacks) -> Condition:
    if not found.leaders:
        text = "every partition is led from the most preferred rack that has a replica of it"
        return Condition("PlacementMet", True, Reason.UP_TO_DATE, text)
    text = (
        f"{found.leaders} of {found.of} partitions are led from a less preferred rack than one that has a replica of"
        f" them, for example {found.first}"
    )
    return Condition("PlacementMet", False, Reason.OTHER_RACKS_LEAD, text)
