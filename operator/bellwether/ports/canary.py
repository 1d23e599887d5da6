"""Port to the requests of the canary probe: produce and fetch single small records.

Implemented by ``adapters.kafka.canary_client``; tests have a client of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

PRODUCE, FETCH = "produce", "fetch"


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """How one request ended: a record was acknowledged or arrived, with its ``offset``, or there was a ``problem``.

    ``seconds`` is the latency of a produce request; when a record arrived is for the caller to see. ``own_trouble``
    marks a failure that is no evidence about the broker.
    """

    partition: int
    kind: str
    seconds: float
    problem: str = ""
    own_trouble: bool = False
    offset: int | None = None


class CanaryClient(Protocol):
    """Requests to one topic. No call waits for a broker."""

    def produce(self, partition: int) -> None:
        """Start to produce a record."""

    def consume(self, partitions: Collection[int]) -> None:
        """Fetch the records of these partitions from now on, and of no others."""

    def results(self, timeout_seconds: float) -> list[CanaryResult]:
        """What has ended; waits so long for the first."""
