"""Forecast of a rebalance plan: the busiest broker in its busiest hour of the week, before and after the plan.

Made by the plan job from the loads by hour, verified by the verifier, shown in status, in the terminal and on the page.
"""

from __future__ import annotations

from dataclasses import dataclass

WEEK = 168
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class BrokerHour:
    """A broker in an hour of the week (0: Monday from 00:00 UTC), with its relative load in bytes/s."""

    broker: int
    hour: int
    load: float

    @property
    def moment(self) -> str:
        """The hour in words: ``Tuesday 14:00 UTC``."""
        return f"{_DAYS[self.hour // 24]} {self.hour % 24:02}:00 UTC"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The busiest broker-hours, and how many hours of the week the history knows."""

    hours: int
    before: BrokerHour
    after: BrokerHour
