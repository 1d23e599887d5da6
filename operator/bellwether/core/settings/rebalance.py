"""Settings of load-based leader rebalancing: schedule, objective, approval and waves. Off unless a policy has them.

The Kubernetes models take their defaults from here and turn into these values at the edge. Where the history lies and
what runs the job is not the core's concern. ``rebalance.lifecycle`` and ``rebalance.waves`` read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from bellwether.core.settings.objective import Objective
from bellwether.core.settings.schedule import Schedule


class Approval(StrEnum):
    """Whether a plan waits for a person who names its digest."""

    MANUAL = "Manual"
    AUTOMATIC = "Automatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceWaves:
    """How an approved plan is applied: so many partitions at a time, so many seconds from one wave to the next."""

    partitions: int = 500
    pause_seconds: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """When a plan is made, what it is to achieve, who approves it, and how it is applied.

    Without a ``schedule`` plans are made when a person asks. ``capacities`` holds those of brokers that are not as
    strong as the others (``WHOLE``). A plan that lowers the highest relative load by less than
    ``minimum_improvement_percent`` is not proposed. One that is older than ``valid_seconds`` is neither begun nor gone
    on with.
    """

    schedule: Schedule | None = None
    approval: Approval = Approval.MANUAL
    objective: Objective = field(default_factory=Objective)
    capacities: Mapping[int, int] = field(default_factory=dict)
    excluded_topics: tuple[str, ...] = ()
    minimum_improvement_percent: int = 5
    valid_seconds: int = 86400
    waves: RebalanceWaves = field(default_factory=RebalanceWaves)

    def expired(self, made_at: datetime, now: datetime) -> bool:
        """Whether a plan of a problem that was posed then is too old to be begun or gone on with."""
        return now - made_at > timedelta(seconds=self.valid_seconds)
