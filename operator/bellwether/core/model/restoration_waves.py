"""Restoration waves of a broker: which partitions it may lead again, and which a later wave gives back.

A returning broker is well and no longer demoted, yet not first in the order of the partitions that its wave withholds
from it; it keeps its place otherwise. Durable in the undo record; ``planning.target_orders`` asks it, partition by
partition.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bellwether.core.model.cluster import PartitionKey


class RestorationTrigger(StrEnum):
    """From where a broker comes back, which says what it takes to go on."""

    RECOVERED = "Recovered"
    """Signals had demoted it: only signals that pass let it lead more."""
    RELEASED = "Released"
    """A person had demoted it: where nobody judges brokers, no signal is waited for."""
    RESTARTED = "Restarted"
    """It was down: as after a person's word."""


@dataclass(frozen=True, slots=True)
class ReturningBroker:
    """A broker that gets its leaders back in waves.

    ``share`` is the part of them, in percent, that it may lead by now, since ``waved_at``: 0 before the first wave.
    ``since`` is when its return began.
    """

    broker: int
    share: int
    since: datetime
    waved_at: datetime
    trigger: RestorationTrigger = RestorationTrigger.RECOVERED

    def withholds(self, key: PartitionKey) -> bool:
        """Whether the partition waits for a later wave. What one wave lets go no later one withholds."""
        return self.share < 100 and self.withholds_position(wave_position(key))

    def with_share(self, share: int, now: datetime) -> ReturningBroker:
        """The same with another share from now on."""
        return replace(self, share=share, waved_at=now)

    def withholds_position(self, turn: int) -> bool:
        """The same of a partition whose turn is known, so that many questions cost one hash."""
        return turn >= self.share


def wave_position(key: PartitionKey) -> int:
    """A partition's place among the waves, from 0 to 99, by its identity: shares above that include it, ever after."""
    digest = hashlib.blake2b(f"{key.topic_id}/{key.partition}".encode(), digest_size=8, person=b"waves").digest()
    return int.from_bytes(digest) % 100
