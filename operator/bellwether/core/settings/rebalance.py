"""Settings of load-based leader rebalancing: schedule, objective, approval and waves. Off unless a policy sets them.

The Kubernetes models take their defaults from here and are converted to these values. Where the history is stored and
what runs the job is not the core's concern. Read by ``bellwether_load.controller.lifecycle`` and ``core.waves``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from bellwether.core.settings.objective import Objective
from bellwether.core.settings.schedule import Schedule
from bellwether.core.settings.setting import Setting


class Approval(StrEnum):
    """Whether a plan needs the approval of a person, who names its digest."""

    MANUAL = "Manual"
    AUTOMATIC = "Automatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceWaves:
    """How an approved plan is applied."""

    partitions: Annotated[int, Setting(1, 100_000)] = 500
    """Maximum number of partitions that are reordered in one wave."""
    pause_seconds: Annotated[int, Setting(0, 86400)] = 30
    """Minimum seconds between two waves. The next wave also waits until the previous one is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """When a plan is computed, its objective, its approval, and how it is applied.

    Without a ``schedule`` plans are computed on request only. ``capacities`` holds those that differ from ``WHOLE``,
    ``request_capacities`` those for requests that differ from these. A plan that lowers the highest relative load by
    less than ``minimum_improvement_percent`` is not proposed, nor is one that rests on less than ``minimum_hours`` of
    the week or ``minimum_measured_percent`` of the bytes. The loss of one broker may bring another to
    ``maximum_loss_percent`` of the busiest broker before an alert fires. A plan that is older than ``valid_seconds`` is
    not started, and is stopped if it is running.
    """

    schedule: Schedule | None = None
    approval: Approval = Approval.MANUAL
    objective: Objective = field(default_factory=Objective)
    capacities: Mapping[int, int] = field(default_factory=dict)
    request_capacities: Mapping[int, int] = field(default_factory=dict)
    excluded_topics: tuple[str, ...] = ()
    minimum_improvement_percent: int = 5
    minimum_hours: int = 24
    minimum_measured_percent: int = 95
    maximum_loss_percent: int = 160
    valid_seconds: int = 86400
    waves: RebalanceWaves = field(default_factory=RebalanceWaves)

    def expired(self, made_at: datetime, now: datetime) -> bool:
        """Whether a plan for a problem built at ``made_at`` is too old to start or to continue."""
        return now - made_at > timedelta(seconds=self.valid_seconds)
