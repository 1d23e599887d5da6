"""What is to be said of the racks that a policy prefers: whether the wish fits the cluster, and whether it is met.

In: a policy's placement and a cluster. Out: words of conditions; none where the policy prefers nothing. Pure. Called by
``statuses``.
"""

from __future__ import annotations

from typing import NamedTuple

from bellwether.core.clusters import Cluster
from bellwether.core.racks import Placement, Rankings, abroad, misfits
from bellwether.core.reasons import SENTENCES, Reason

NAMED = 5
"""How many misfits a message names; the rest is a number."""


class Word(NamedTuple):
    """A condition's type, status, reason and message."""

    type: str
    status: bool
    reason: Reason
    message: str


def words(placement: Placement | None, cluster: Cluster) -> tuple[Word, ...]:
    """``PlacementFits`` and ``PlacementMet``."""
    if placement is None or not cluster.partitions:
        return ()
    return (_fits(placement, cluster), _met(placement, cluster))


def _fits(placement: Placement, cluster: Cluster) -> Word:
    found = misfits(placement, cluster)
    if not found:
        return Word("PlacementFits", True, Reason.PLACEMENT_FITS, SENTENCES[Reason.PLACEMENT_FITS])
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return Word("PlacementFits", False, found[0].reason, "; ".join(m.message for m in found[:NAMED]) + more)


def _met(placement: Placement, cluster: Cluster) -> Word:
    found = abroad(Rankings(placement, cluster), cluster)
    if not found.leaders:
        return Word("PlacementMet", True, Reason.PREFERRED_RACKS_LEAD, SENTENCES[Reason.PREFERRED_RACKS_LEAD])
    text = (
        f"{found.leaders} of {found.of} partitions are led from a less preferred rack than one that holds a replica of"
        f" them, {found.first} among them"
    )
    return Word("PlacementMet", False, Reason.OTHER_RACKS_LEAD, text)
