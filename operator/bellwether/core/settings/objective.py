"""Objective of a rebalance: which statistic counts as load, which bytes count, and the limits of a plan.

Part of a policy, and of ``problem.json``, whose format is also defined here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WHOLE = 100
"""Hundredths of a byte/s to a byte/s, and the default capacity of a broker: with it a relative load is in bytes/s."""


class Statistic(StrEnum):
    """Statistic of a partition's history that counts as its load."""

    MEDIAN = "Median"
    P95 = "P95"
    PEAK = "Peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What counts as load, and the limits of a plan.

    Each of the rf replicas of a partition receives P bytes/s, whichever leads; the leader also sends P to each of the
    others and C to consumers, if ``consumption`` counts. ``preferred_racks`` are in order of preference. ``max_moves``
    caps the leader changes; leaders that must move are not counted. A request/s counts as ``request_bytes`` bytes/s,
    against a capacity of its own; with 0 requests do not count.
    """

    statistic: Statistic = Statistic.P95
    consumption: bool = True
    preferred_racks: tuple[str, ...] = ()
    max_moves: int | None = None
    request_bytes: int = 0

    def following(self, produced: int) -> int:
        """Cost of following a partition, in hundredths of a byte/s; ``produced`` is P in bytes/s."""
        return WHOLE * produced

    def leading(self, produced: int, consumed: int, replicas: int) -> int:
        """Additional cost of leading over following, in hundredths of a byte/s: the load of a plan's moves."""
        return WHOLE * (produced * (replicas - 1) + consumed * self.consumption)
