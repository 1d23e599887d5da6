"""Quarantine order: which broker the agent must hold, since when, until when, and how the hold ended.

Stored as a Lease, which the operator writes and the quarantine agent reads. An order that is not renewed expires: the
agent counts on its own clock from when it saw a renewal. Used by ``quarantine.hold_decision`` (gives orders) and
``quarantine.agent`` (obeys them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

RENEW_SECONDS = 3.0
"""How often the operator renews an order."""

EXPIRES_AFTER_SECONDS = 12.0
"""Seconds after which an order expires if no renewal is seen: the duration of its Lease."""

RELEASE_AFTER = timedelta(seconds=2 * EXPIRES_AFTER_SECONDS)
"""Time since the last renewal after which a broker runs again without confirmation, by its agent or watchdog."""

MAX_HOLD_SECONDS = 600
"""Default ceiling of a quarantine agent: the longest hold, in seconds, whatever an order says."""

RETURN_SECONDS = 150
"""What a broker's liveness probe tolerates beyond a hold, until the broker answers again. Injection by the chart and
the doctor use it.
"""


@dataclass(frozen=True, slots=True)
class QuarantineOrder:
    """One order to hold a broker, identified by ``epoch`` and ``number``; ``ended_at`` is None while it is active.

    ``held_at`` is when the agent was first seen to hold the broker. ``reason`` and ``message`` say why the
    order was given and, once it has ended, why it ended. ``freezes``: the broker froze again and again, so that nothing
    but its start shows whether it is well.
    """

    broker: int
    epoch: int
    number: int
    since: datetime
    until: datetime
    renewed_at: datetime
    reason: str
    message: str
    held_at: datetime | None = None
    ended_at: datetime | None = None
    freezes: bool = False

    @property
    def active(self) -> bool:
        """Whether the order has not ended."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True)
class QuarantineChange:
    """An order that was given, or that ended, with the reason.

    ``held``: for how many seconds the broker was held by an order that ended; None if its agent never held it.
    """

    broker: int
    ended: bool
    reason: str
    message: str
    held: float | None = None


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
            held = None if order.held_at is None else (order.ended_at - order.held_at).total_seconds()
            changed.append(QuarantineChange(broker, True, order.reason, order.message, held))
    return tuple(changed)
