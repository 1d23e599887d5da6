"""Refused and held partition moves with their reasons, and the back-off before the next attempt.

Created by ``planning.guards`` and by the execution of a plan; ``reporting`` counts them by reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.reasons import Reason

CONTEST_FIRST_SECONDS = 5
CONTEST_LONGEST_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason why something cannot proceed now, and a message with what is missing and the remedy.

    ``again_seconds`` is set where time alone ends the wait.
    """

    reason: Reason
    message: str
    again_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """A partition whose move is held, and why."""

    key: PartitionKey
    topic: str
    reason: Reason
    message: str


def back_off(times: int) -> timedelta:
    """Delay after an order was refused, or overwritten by another tool, ``times`` times; exponential, bounded."""
    return timedelta(seconds=min(CONTEST_LONGEST_SECONDS, CONTEST_FIRST_SECONDS * 2 ** min(times - 1, 16)))


@dataclass(frozen=True, slots=True)
class BrokerHold:
    """A broker whose demotion or promotion is held, with the reason."""

    broker: int
    reason: Reason
    message: str
