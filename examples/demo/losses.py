"""Which acknowledged records are gone. What was acknowledged and what was found in, what is missing out.

``acks=all`` is Kafka's promise, and one such record lost fails the demo. ``acks=1`` is none: whatever only the old
leader had when leadership moved is cut off by design, so its losses are counted and shown apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from demo.samples import Kind, Sample, key_of


@dataclass(frozen=True, slots=True)
class Loss:
    """Of one kind: how many were sent, acknowledged and failed, and which acknowledged ones were not found."""

    sent: int
    acknowledged: int
    failed: int
    lost: tuple[Sample, ...]


def losses(samples: Iterable[Sample], found: Collection[bytes], kind: Kind) -> Loss:
    """Compare the acknowledged records of one kind with the keys that were read back from the cluster."""
    sent = [s for s in samples if s.kind is kind]
    acknowledged = [s for s in sent if not s.error]
    return Loss(
        sent=len(sent),
        acknowledged=len(acknowledged),
        failed=len(sent) - len(acknowledged),
        lost=tuple(s for s in acknowledged if key_of(kind, s.sequence) not in found),
    )
