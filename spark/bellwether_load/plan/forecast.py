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
class BusiestRequests:
    """The busiest broker-hours by requests: the load is in requests/s per 100 of the capacity for requests."""

    before: BrokerHour
    after: BrokerHour


@dataclass(frozen=True, slots=True)
class Forecast:
    """The busiest broker-hours by bytes and, where they count, by requests; and how many hours of the week the history
    knows."""

    hours: int
    before: BrokerHour
    after: BrokerHour
    requests: BusiestRequests | None = None

    def highest(self, request_bytes: int) -> tuple[float, float]:
        """The higher relative load of both, before and after, in bytes/s; a request/s counts as so many."""
        found = self.before.load, self.after.load
        if self.requests is None:
            return found
        before, after = (request_bytes * one.load for one in (self.requests.before, self.requests.after))
        return max(found[0], before), max(found[1], after)
