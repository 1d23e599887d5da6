"""Weigh harm against the cost of a move: the ski-rental rule that decides when a failing signal demotes.

In: the seconds that clients of a broker lost, and what moving its leaders away and back costs. Out: whether moving is
worth it, with the figures as text. Called by ``reachability``, ``canary`` and ``storage``; the argument is in
docs/internals/harm.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellwether.core.detection.findings import SignalIndex
from bellwether.core.model.move_cost import MoveCost
from bellwether.core.settings.harm import NOTICEABLE_SHARE, REPORT_RATIO, SHARED_RATIO


@dataclass(frozen=True, slots=True)
class Weighing:
    """Seconds lost, and the cost of a move times the tolerance. ``ongoing``: whether the last requests were lost."""

    lost_seconds: float
    cost: MoveCost
    tolerance: int = 1
    ongoing: bool = True

    @property
    def limit_seconds(self) -> float:
        """Seconds lost at which moving is worth it.

        A source reports growing harm in steps of REPORT_RATIO, so what it reported may be so much more by now.
        """
        return self.cost.seconds * self.tolerance / REPORT_RATIO

    @property
    def worth_moving(self) -> bool:
        """Whether clients lost as much as a move costs, and still lose: a move cures only harm that goes on."""
        return self.ongoing and self.lost_seconds >= self.limit_seconds

    @property
    def noticeable(self) -> bool:
        """Whether the harm is close enough to the cost to make the broker Suspect."""
        return self.lost_seconds >= self.cost.seconds * self.tolerance * NOTICEABLE_SHARE

    @property
    def change(self) -> str:
        """What would make the broker Sick while moving is not worth it."""
        if self.lost_seconds >= self.limit_seconds:
            return "one more lost request makes it Sick"
        return f"clients losing {self.limit_seconds:.1f} s makes it Sick"

    def __str__(self) -> str:
        times = f", tolerated {self.tolerance} times" if self.tolerance > 1 else ""
        return f"moving its leaders away and back costs {self.cost}{times}"

    def shared_with(self, peers_lost_seconds: float) -> bool:
        """Whether the peers' clients lose about as much: the cause is shared, and moving would save too little."""
        excess = self.lost_seconds - peers_lost_seconds
        return excess < self.limit_seconds or self.lost_seconds < SHARED_RATIO * peers_lost_seconds


def weigh(lost_seconds: float, broker: int, index: SignalIndex, *, ongoing: bool = True) -> Weighing:
    """Weigh what clients of a broker lost. For a demoted broker it does not matter whether they lose any more."""
    ongoing = ongoing or broker in index.snapshot.record.demoted
    return Weighing(lost_seconds, index.move_cost(broker), index.detection.tolerance, ongoing)
