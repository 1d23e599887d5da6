"""Proof of how low the busiest broker can be in its busiest hour of the week, and what a plan for the hours costs.

Part of a plan's certificate: made by the plan job, verified by the verifier, shown in status, terminal and on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bellwether.core.strict_json import InvalidDocument, StrictObject, json_by_broker
from bellwether_load.plan.forecast import WEEK


@dataclass(frozen=True, slots=True)
class StatisticPlan:
    """The plan that balances the statistic alone, for comparison: its busiest broker-hour, and how many leaders it
    changes."""

    load: float
    partitions: int

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"load": self.load, "partitions": self.partitions}

    @classmethod
    def read(cls, fields: StrictObject) -> StatisticPlan:
        """Read from JSON. Raises InvalidDocument, which names the field."""
        made = cls(fields.number("load"), fields.integer("partitions"))
        fields.finish()
        return made


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

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "weights": {str(hour): json_by_broker(of) for hour, of in sorted(self.weights.items())},
            "moveWeight": self.move_weight,
            "partition": self.partition,
            "bound": self.bound,
            "statisticPlan": None if self.statistic_plan is None else self.statistic_plan.document(),
        }

    @classmethod
    def read(cls, fields: StrictObject) -> HourlyProof:
        """Read from JSON. Raises InvalidDocument, which names the field."""
        raw, where = fields.mapping("weights"), "certificate.hourly.weights"
        hours = StrictObject(raw, where)
        if not all(hour.isdecimal() and int(hour) < WEEK for hour in raw):
            raise InvalidDocument(f"{where}: each name must be an hour of the week, 0 to {WEEK - 1}")
        other = fields.nested_or_none("statisticPlan")
        made = cls(
            {int(hour): hours.by_broker(hour) for hour in sorted(raw, key=int)},
            fields.integer("moveWeight"),
            fields.integer_or_none("partition"),
            fields.number("bound"),
            None if other is None else StatisticPlan.read(other),
        )
        fields.finish()
        return made
