"""Brokers in maintenance now, on whose request and until when: from overrides and from the brokers' pods.

Used by ``snapshot``. A broker in maintenance is drained; from then on its signals demote no broker, neither itself nor
its peers by comparison. The cap limits drains that a pod causes, not those that a person requests (invariant 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.signals import Override, OverrideState, Purpose


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Why a broker is in maintenance: ``asked`` by a person, otherwise detected from its pod.

    ``accept_unavailable_writes``: that person accepts that stopping it makes Kafka refuse ``acks=all`` writes.
    """

    broker: int
    reason: Reason
    message: str
    asked: bool
    accept_unavailable_writes: bool = False


def under_maintenance(
    overrides: Iterable[Override], pods: Mapping[int, Pod] | None, demoted: Mapping[int, DemotedBroker], now: datetime
) -> dict[int, Maintenance]:
    """Every broker that is in maintenance at ``now``.

    ``pods`` are the brokers' pods; None where they are not watched. A broker that was drained because of its pod stays
    in maintenance while the pod does not exist: it is being recreated; an ``UNMATCHED`` pod is no reason.
    """
    found: dict[int, Maintenance] = {}
    for broker, pod in (pods or {}).items():
        if pod.leaving or not pod.ready:
            how = "is terminating" if pod.leaving else "is not ready"
            found[broker] = Maintenance(broker, Reason.RESTARTING, f"pod {pod.name} {how}", asked=False)
    if pods is not None:
        for broker, one in demoted.items():
            if broker not in pods and (one.cause, one.reason) == (Cause.MAINTENANCE, Reason.RESTARTING):
                found[broker] = Maintenance(broker, Reason.RESTARTING, "its pod does not exist", asked=False)
    for override in overrides:
        if requests_maintenance(override) and override.active(now):
            broker, text, accepts = override.broker, override.reason, override.accept_unavailable_writes
            if override.until is not None:
                text = f"{text} (until {override.until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ})".lstrip()
            found[broker] = Maintenance(
                broker, Reason.IN_MAINTENANCE, text, asked=True, accept_unavailable_writes=accepts
            )
    return found


def requests_maintenance(override: Override) -> bool:
    """Whether an override puts its broker in maintenance."""
    return override.purpose is Purpose.MAINTENANCE and override.state is OverrideState.DEMOTED
