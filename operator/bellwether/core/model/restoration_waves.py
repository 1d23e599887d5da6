"""Restoration waves of a broker: which partitions it may lead again, and which a later wave gives back.

A returning broker is healthy and no longer demoted. It is not first in the order of the partitions that its wave
withholds, and keeps its position in all others. Stored in the undo record; ``planning.target_orders`` checks each
partition.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bellwether.core.model.cluster import PartitionKey


class RestorationTrigger(StrEnum):
    """Why a broker's leaders are being restored, which determines what the next wave requires."""

    RECOVERED = "Recovered"
    """Signals had demoted it: each wave needs passing signals."""
    RELEASED = "Released"
    """A person had demoted it: without any prober, no signal is needed."""
    RESTARTED = "Restarted"
    """It was down: same requirements as ``RELEASED``."""


@dataclass(frozen=True, slots=True)
class ReturningBroker:
    """A broker that gets its leaders back in waves.

    ``share`` is the percentage of them that it may lead now, since ``waved_at``; 0 before the first wave. ``since`` is
    when the restoration began.
    """

    broker: int
    share: int
    since: datetime
    waved_at: datetime
    trigger: RestorationTrigger = RestorationTrigger.RECOVERED

    def withholds(self, key: PartitionKey) -> bool:
        """Whether the partition waits for a later wave. No later wave withholds what an earlier one released."""
        return self.share < 100 and self.withholds_position(wave_position(key))

    def with_share(self, share: int, now: datetime) -> ReturningBroker:
        """The same broker with another share from ``now``."""
        return replace(self, share=share, waved_at=now)

    def withholds_position(self, position: int) -> bool:
        """The same for a partition whose position is known, so that several checks need only one hash."""
        return position >= self.share


def wave_position(key: PartitionKey) -> int:
    """Position of a partition among the waves, 0 to 99, by its identity: every higher share includes the partition."""
    digest = hashlib.blake2b(f"{key.topic_id}/{key.partition}".encode(), digest_size=8, person=b"waves").digest()
    return int.from_bytes(digest) % 100
