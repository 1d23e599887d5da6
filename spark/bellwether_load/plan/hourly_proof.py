"""Proof of how low the busiest broker can be in its busiest hour of the week, and what a plan for the hours costs.

Part of a plan's certificate: made by the plan job, verified by the verifier, shown in status, terminal and on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatisticPlan:
    """The plan that balances the statistic alone, for comparison: its busiest broker-hour, and how many leaders it
    changes."""

    load: float
    partitions: int


@dataclass(frozen=True)
class HourlyProof:
    """No plan has a lower busiest broker-hour than ``bound``.

    ``weights``: by hour of the week and broker; ``move_weight``: of a changed leader. ``partition``: row of the problem
    of a partition whose leader, whichever it is, reaches the bound in an hour; None unless that decides the bound.
    ``statistic_plan``: None unless leaders were chosen for the hours.
    """

    weights: Mapping[int, Mapping[int, int]]
    move_weight: int
    partition: int | None
    bound: float
    statistic_plan: StatisticPlan | None = None

    def gap(self, load: float) -> float | None:
        """How far a busiest broker-hour is above the bound, as a ratio minus 1; None where the bound is 0."""
        return load / self.bound - 1 if self.bound else None
