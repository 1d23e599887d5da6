"""Flap damping: count recent demotions and quarantines of a broker, and require a longer stabilization each time.

In: the brokers kept from leading before and after a reconcile. Out: counters, which are kept in status and survive a
take-over. Only what signals or a pod caused counts; a person may change their mind at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.model.undo_record import Cause, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Policy


@dataclass(frozen=True, slots=True)
class FlapCounter:
    """``demotions`` in short succession; ``at`` is the end of the last one, or its start while it lasts."""

    demotions: int
    at: datetime


def stabilization(flaps: FlapCounter | None, policy: Policy) -> int:
    """Seconds for which a demoted broker must stay healthy before it is promoted; more for a broker that flaps."""
    return policy.promotion.stabilization(flaps.demotions if flaps is not None else 1)


def kept_from_leading(record: UndoRecord, orders: Mapping[int, QuarantineOrder]) -> Mapping[int, bool]:
    """Brokers that are demoted or quarantined, as a whole or a log directory of theirs, and whether signals or a
    restart of the pod caused it.
    """
    quarantined = [broker for broker, order in orders.items() if order.active]
    kept = dict.fromkeys([*quarantined, *(log_dir.broker for log_dir in record.log_dirs)], True)
    for broker, one in record.demoted.items():
        by_pod = (one.cause, one.reason) == (Cause.MAINTENANCE, Reason.RESTARTING)
        kept[broker] = by_pod or one.cause is Cause.SIGNALS
    return kept


def count_flaps(
    flaps: Mapping[int, FlapCounter],
    before: Mapping[int, bool],
    after: Mapping[int, bool],
    now: datetime,
    window_seconds: int,
) -> dict[int, FlapCounter]:
    """The counters after a reconcile. With a ``window_seconds`` of 0 nothing is counted."""
    window = timedelta(seconds=window_seconds)
    counted = {}
    for broker in flaps.keys() | before.keys() | after.keys():
        known = flaps.get(broker)
        recent = known is not None and window_seconds > 0 and (broker in before or now - known.at <= window)
        begins = broker not in before and after.get(broker, False)
        ends = broker in before and broker not in after
        if begins:
            counted[broker] = FlapCounter(known.demotions + 1 if known is not None and recent else 1, now)
        elif ends and known is not None:
            counted[broker] = FlapCounter(known.demotions, now)
        elif known is not None and recent:
            counted[broker] = known
    return counted
