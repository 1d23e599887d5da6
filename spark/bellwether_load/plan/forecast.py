"""Forecast of a rebalance plan: the busiest broker in its busiest hour of the week, before and after the plan.

Made by the plan job from the loads by hour, verified by the verifier, shown in status, in the terminal and on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellwether.core.strict_json import InvalidDocument, StrictObject

WEEK = 168
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class BrokerHour:
    """A broker in an hour of the week (0: Monday from 00:00 UTC), with its relative load in bytes/s."""

    broker: int
    hour: int
    load: float

    @classmethod
    def at(cls, broker: int, moment: str, load: float) -> BrokerHour:
        """From the hour in words. Raises ValueError."""
        day, _, rest = moment.partition(" ")
        return cls(broker, 24 * _DAYS.index(day) + int(rest[:2]), load)

    @property
    def moment(self) -> str:
        """The hour in words: ``Tuesday 14:00 UTC``."""
        return f"{_DAYS[self.hour // 24]} {self.hour % 24:02}:00 UTC"

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"broker": self.broker, "hour": self.hour, "load": self.load}

    @classmethod
    def read(cls, fields: StrictObject) -> BrokerHour:
        """Read from JSON. Raises InvalidDocument, which names the field."""
        made = cls(fields.integer("broker"), fields.integer("hour"), fields.number("load"))
        fields.finish()
        if made.hour >= WEEK:
            raise InvalidDocument(f"forecast: hour is {made.hour}: expected 0 to {WEEK - 1}")
        return made


@dataclass(frozen=True, slots=True)
class Forecast:
    """The busiest broker-hours, and how many hours of the week the history knows."""

    hours: int
    before: BrokerHour
    after: BrokerHour

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"hours": self.hours, "before": self.before.document(), "after": self.after.document()}

    @classmethod
    def read(cls, fields: StrictObject) -> Forecast:
        """Read from JSON. Raises InvalidDocument, which names the field."""
        hours = fields.integer("hours", 1)
        made = cls(hours, BrokerHour.read(fields.nested("before")), BrokerHour.read(fields.nested("after")))
        fields.finish()
        if hours > WEEK:
            raise InvalidDocument(f"forecast: hours is {hours}: a week has {WEEK}")
        return made


def hours_unknown(known: int) -> str:
    """What a forecast of so many hours does not cover, in a sentence; empty where all hours of the week are known."""
    return f"Only {known} of {WEEK} hours of the week are known: in the others a broker may be busier." * (known < WEEK)
