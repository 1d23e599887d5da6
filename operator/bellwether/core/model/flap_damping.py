"""Flap damping: count how often a broker was demoted lately, and make it stay well for longer each time.

In: who was demoted before a turn and after it. Out: counters, which stand in status and outlive a take-over. Only what
signals demoted counts; a person may change their mind as often as they like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.settings.policy import Policy


@dataclass(frozen=True, slots=True)
class FlapCounter:
    """``demotions`` in short succession; ``at`` is when the last one ended, or began while it lasts."""

    demotions: int
    at: datetime


def stabilization(flaps: FlapCounter | None, policy: Policy) -> int:
    """How many seconds a demoted broker must stay well before it is promoted; more for one that flaps."""
    return policy.promotion.stabilization(flaps.demotions if flaps is not None else 1)


def count_flaps(
    flaps: Mapping[int, FlapCounter],
    before: Mapping[int, DemotedBroker],
    after: Mapping[int, DemotedBroker],
    now: datetime,
    window_seconds: int,
) -> dict[int, FlapCounter]:
    """The counters after a turn. A ``window_seconds`` of 0 counts nothing."""
    window = timedelta(seconds=window_seconds)
    counted = {}
    for broker in flaps.keys() | before.keys() | after.keys():
        known = flaps.get(broker)
        recent = known is not None and window_seconds > 0 and (broker in before or now - known.at <= window)
        begins = broker in after and broker not in before and after[broker].cause is Cause.SIGNALS
        ends = broker in before and broker not in after
        if begins:
            counted[broker] = FlapCounter(known.demotions + 1 if known is not None and recent else 1, now)
        elif ends and known is not None:
            counted[broker] = FlapCounter(known.demotions, now)
        elif known is not None and recent:
            counted[broker] = known
    return counted
