"""A quarantine as it was ordered: which broker is to be paused, since when, until when, and how it ended.

Durable in ``BrokerHealth.status.quarantine``, which the operator writes and the warden beside the broker reads. An
order that is not renewed is no order: whoever obeys it counts on its own clock from when it saw a renewal. Used by
``quarantine`` (who orders) and ``wardens`` (who obeys).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

WARDEN = "Quarantine"
"""The kind of a warden's entries in ``status.signals``; they are its word and no evidence about the broker.

``Passing``: it watches, and the broker runs; ``value`` is the number of the last order that it released. ``Failing``:
it has paused the broker by the order of that number. ``Unknown``: it cannot pause it, and the message says why.
"""

RENEW_SECONDS = 3.0
"""How often the operator renews an order."""

PATIENCE_SECONDS = 12.0
"""How long an order holds after its last renewal was seen."""

WORD_SECONDS = 15
"""How long a warden's word counts after it was last heard of."""


@dataclass(frozen=True, slots=True)
class Confinement:
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
    def stands(self) -> bool:
        """Whether it has not ended yet."""
        return self.ended_at is None
