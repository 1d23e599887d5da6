"""Quarantine order: which broker is to be paused, since when, until when, and how the pause ended.

Durable in ``BrokerHealth.status.quarantine``, which the operator writes and the warden beside the broker reads. An
order that is not renewed is no order: whoever obeys it counts on its own clock from when it saw a renewal. Used by
``quarantine.pause_decision`` (who orders) and ``quarantine.agent`` (who obeys).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

RENEW_SECONDS = 3.0
"""How often the operator renews an order."""

EXPIRES_AFTER_SECONDS = 12.0
"""How long an order holds after its last renewal was seen."""


@dataclass(frozen=True, slots=True)
class QuarantineOrder:
    """One order to pause a broker. ``epoch`` and ``number`` name it; ``ended_at`` is None while it stands.

    ``obeyed_at`` is when the warden was first seen to have paused the broker. ``reason`` and ``message`` say why it was
    given, and once it has ended, why that.
    """

    broker: int
    epoch: int
    number: int
    since: datetime
    until: datetime
    renewed_at: datetime
    reason: str
    message: str
    obeyed_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended yet."""
        return self.ended_at is None
