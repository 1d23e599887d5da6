"""Cost of a move: seconds of service that clients lose when a broker's leaders move away and come back.

In: how long elections took in past moves. Out: the cost, in the unit of ``Harm``. Called by ``gather``, used by the
detection package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from bellwether.core.settings.harm import LARGEST_LOST_SECONDS

ELECTION_SECONDS = 0.5
"""Assumed until moves were measured: 1,000 leaders are elected in 0.4 to 0.7 s on two cores."""

CLIENT_SECONDS = 0.5
"""What a client adds per move: one failed request, retry.backoff.ms (100 ms), new metadata and a new connection."""

COORDINATOR_SECONDS = 1.0
"""What a broker adds that holds internal topics: group and transaction coordinators load their state elsewhere."""

COLD_START_SECONDS = 1.0
"""What both moves together cost after the election: caches of the new leaders are cold."""

MOVES_KEPT = 9
"""So many past moves make the median."""

_STEP = 0.5


@dataclass(frozen=True, slots=True)
class MoveCost:
    """Cost of moving leaders away and back. ``moves`` is how many past moves it was measured from; 0: assumed."""

    seconds: float = 2 * (ELECTION_SECONDS + CLIENT_SECONDS) + COLD_START_SECONDS
    moves: int = 0
    syncs: str = ""
    """What slow syncs add, in words."""

    @staticmethod
    def measured(election_seconds: Sequence[float]) -> MoveCost:
        """The cost by the median of past elections, in steps that keep texts from changing with every move."""
        if not election_seconds:
            return MoveCost()
        cost = 2 * (median(election_seconds) + CLIENT_SECONDS) + COLD_START_SECONDS
        return MoveCost(max(_STEP, round(cost / _STEP) * _STEP), len(election_seconds))

    def with_coordinators(self) -> MoveCost:
        """The cost for a broker that holds internal topics."""
        return replace(self, seconds=self.seconds + COORDINATOR_SECONDS)

    def with_syncs(self, leaders: int, sync_seconds: float) -> MoveCost:
        """The cost where each of so many moved leaders waits for a sync on the broker; there is no harm above the most
        that is counted.
        """
        added = min(leaders * sync_seconds, LARGEST_LOST_SECONDS - self.seconds)
        text = f", {added:.0f} s of it for a sync of {sync_seconds:.1f} s for each of {leaders} leaders"
        return replace(self, seconds=self.seconds + added, syncs=text) if added > 0 else self

    def __str__(self) -> str:
        return f"about {self.seconds:g} s{'' if self.moves else ' (assumed)'}{self.syncs}"
