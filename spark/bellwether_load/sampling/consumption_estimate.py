"""Estimate the consumption of each partition from Prometheus' values by topic, or by broker and topic.

In: bytes/s of topics, and the ends of logs in this round and in the one before. Out: bytes/s of partitions. The bytes
of a topic are dealt to its partitions as its new records are, since consumers mostly read what has just been written.
Where a broker's bytes are known apart, they are dealt to the topic's partitions that it leads; what consumers read from
followers then counts for no partition, as it does not move with the leader. Called by ``rounds``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from bellwether.core.model.cluster import Partition, PartitionKey

# Enough digits for an estimate, and few enough for files to stay small.
_STEPS = 1 << 10


Consumption = Mapping[str | tuple[str, int], float]
"""Bytes/s by topic, or by topic and broker."""


def spread(
    topics: Consumption,
    partitions: Sequence[Partition],
    ends: Sequence[int | None],
    before: Mapping[PartitionKey, int],
) -> list[float | None]:
    """Bytes/s of each partition, in their order; None: unknown.

    Unknown is every partition of a topic (or of a topic on its leader) that Prometheus does not name, or of which some
    partition's end is not known now or was not known before (``before``, by topic id and partition), or that is read
    though nothing new came.
    """
    apart = {key[0] for key in topics if isinstance(key, tuple)}
    keys = [(p.topic, -1 if p.leader is None else p.leader) if p.topic in apart else p.topic for p in partitions]
    came: dict[str | tuple[str, int], list[int | None]] = defaultdict(list)
    for key, partition, end in zip(keys, partitions, ends, strict=True):
        if key in topics:
            came[key].append(_new(end, before.get(partition.key)))
    shares = {key: _share(topics[key], new) for key, new in came.items()}
    found: list[float | None] = []
    for key, partition, end in zip(keys, partitions, ends, strict=True):
        share = shares.get(key)
        new = _new(end, before.get(partition.key))
        found.append(None if share is None or new is None else _coarse(share * new))
    return found


def _new(end: int | None, before: int | None) -> int | None:
    """Records that came; None when that cannot be known, as after a topic was recreated or its log was truncated."""
    return None if end is None or before is None or end < before else end - before


def _share(bytes_per_second: float, new: Sequence[int | None]) -> float | None:
    """Bytes/s represented by one new record."""
    known = [count for count in new if count is not None]
    total = sum(known)
    if len(known) < len(new) or not (math.isfinite(bytes_per_second) and bytes_per_second >= 0):
        return None
    if total == 0:
        return 0.0 if bytes_per_second == 0 else None
    return bytes_per_second / total


def _coarse(value: float) -> float:
    """The value to about a tenth of a percent."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * _STEPS) / _STEPS, exponent)
