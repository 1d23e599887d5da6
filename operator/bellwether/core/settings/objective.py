"""Objective of a rebalance: which statistic counts as load, what leading and following cost, and the limits of a plan.

Part of a policy, and of ``problem.json``, whose format is also defined here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WHOLE = 100
"""100 percent: the unit of weights, and the default capacity of a broker. With both, a relative load is in bytes/s."""


class Statistic(StrEnum):
    """Statistic of a partition's history that counts as its load."""

    MEDIAN = "Median"
    P95 = "P95"
    PEAK = "Peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Cost weights in percent, and the limits of a plan.

    Leading a partition of rf replicas costs ``produce * P + replication * P * (rf - 1) + consume * C``, following it
    ``follow * P``; P and C are the bytes/s that come in from producers and go out to consumers. ``preferred_racks`` are
    in order of preference. ``max_moves`` caps the leader changes; leaders that must move are not counted. A request/s
    counts as ``request_bytes`` bytes/s, against a capacity of its own; with 0 requests do not count.
    """

    statistic: Statistic = Statistic.P95
    produce_weight: int = WHOLE
    replication_weight: int = WHOLE
    consume_weight: int = WHOLE
    follow_weight: int = WHOLE
    preferred_racks: tuple[str, ...] = ()
    max_moves: int | None = None
    request_bytes: int = 0

    def following(self, produced: int) -> int:
        """Cost of following a partition, in hundredths of a byte/s; ``produced`` is P in bytes/s."""
        return self.follow_weight * produced

    def leading(self, produced: int, consumed: int, replicas: int) -> int:
        """Additional cost of leading over following, in hundredths of a byte/s: the load of a plan's moves."""
        led = self.produce_weight * produced + self.replication_weight * produced * (replicas - 1)
        return led + self.consume_weight * consumed - self.following(produced)
