"""Restoration waves of a broker: which partitions it may lead again, and which a later wave gives back.

A returning broker is healthy and no longer demoted. It is not first in the order of the partitions that its wave
withholds, and keeps its position in all others. Stored in the undo record; ``planning.target_orders`` checks each
partition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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
    when the restoration began. Partitions whose position is below ``cutoff`` are released; None: below ``share``, as in
    records of versions that did not count.
    """

    broker: int
    share: int
    since: datetime
    waved_at: datetime
    trigger: RestorationTrigger = RestorationTrigger.RECOVERED
    cutoff: float | None = None

    def withholds(self, key: PartitionKey) -> bool:
        """Whether the partition waits for a later wave. No later wave withholds what an earlier one released."""
        return self.share < 100 and self.withholds_position(wave_position(key))

    def with_share(self, share: int, now: datetime, leaders: Iterable[PartitionKey]) -> ReturningBroker:
        """The same broker with a higher share from ``now``: of these ``leaders``, all that it should have in the end.

        The cutoff is set once, so that partitions that appear or vanish later change nothing for the others.
        """
        cutoff = max(self._cutoff, _cutoff(share, [wave_position(key) for key in leaders]))
        return replace(self, share=share, waved_at=now, cutoff=cutoff)

    def withholds_position(self, position: float) -> bool:
        """The same for a partition whose position is known, so that several checks need only one hash."""
        return position >= self._cutoff

    @property
    def _cutoff(self) -> float:
        return self.share if self.cutoff is None else self.cutoff


def _cutoff(share: int, positions: list[float]) -> float:
    """Position below which ``share`` percent of the positions are, to the nearest partition, and at least one."""
    if not positions or share >= 100:
        return share
    released = max(1, (len(positions) * share + 50) // 100)
    return sorted(positions)[released] if released < len(positions) else 100.0


def wave_position(key: PartitionKey) -> float:
    """Position of a partition among the waves, from 0 to below 100, by its identity: the same for every broker."""
    digest = hashlib.blake2b(f"{key.topic_id}/{key.partition}".encode(), digest_size=8, person=b"waves").digest()
    number = int.from_bytes(digest)
    return number % 100 + number // 100 % 1_000_000 / 1_000_000
