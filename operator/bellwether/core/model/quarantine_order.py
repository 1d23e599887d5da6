"""Quarantine order: which broker is to be paused, since when, until when, and how the pause ended.

Stored as a Lease, which the operator writes and the quarantine agent reads. An order that is not renewed expires: the
agent counts on its own clock from when it saw a renewal. Used by ``quarantine.hold_decision`` (gives orders) and
``quarantine.agent`` (obeys them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

RENEW_SECONDS = 3.0
"""How often the operator renews an order."""

EXPIRES_AFTER_SECONDS = 12.0
"""Seconds after which an order expires if no renewal is seen: the duration of its Lease."""

MAX_PAUSE_SECONDS = 600
"""Default ceiling of a quarantine agent: the longest pause, in seconds, whatever an order says."""


@dataclass(frozen=True, slots=True)
class QuarantineOrder:
    """One order to pause a broker, identified by ``epoch`` and ``number``; ``ended_at`` is None while it is active.

    ``paused_at`` is when the agent was first seen to have paused the broker. ``reason`` and ``message`` say why the
    order was given and, once it has ended, why it ended.
    """

    broker: int
    epoch: int
    number: int
    since: datetime
    until: datetime
    renewed_at: datetime
    reason: str
    message: str
    paused_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def active(self) -> bool:
        """Whether the order has not ended."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True)
class QuarantineChange:
    """An order that was given, or that ended, with the reason.

    ``paused``: for how many seconds the broker was paused by an order that ended; None if its agent never paused it.
    """

    broker: int
    ended: bool
    reason: str
    message: str
    paused: float | None = None


def quarantine_changes(
    before: Mapping[int, QuarantineOrder], now: Mapping[int, QuarantineOrder]
) -> tuple[QuarantineChange, ...]:
    """The orders that were given or ended between two reconciles, by broker."""
    changed = []
    for broker, order in sorted(now.items()):
        was = before.get(broker)
        known = was is not None and (was.epoch, was.number) == (order.epoch, order.number)
        if order.active and not known:
            changed.append(QuarantineChange(broker, False, order.reason, order.message))
        elif order.ended_at is not None and known and was is not None and was.active:
            paused = None if order.paused_at is None else (order.ended_at - order.paused_at).total_seconds()
            changed.append(QuarantineChange(broker, True, order.reason, order.message, paused))
    return tuple(changed)
